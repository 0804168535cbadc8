"""What entries of a model file may be: for each type the last value that is accepted and the first that is refused.

These are the types of ``stored.py`` and of the files ``stored_*.py`` beside it.
"""

import json
import sys

import pytest
from msgspec import Meta
from msgspec.structs import fields

from guardband.calibration.cross import FOLDS
from guardband.data.grouping import BINS
from guardband.data.reference import CELLS, KNOTS, MOST_KEPT
from guardband.doors import (
    stored,
    stored_arguments,
    stored_certificate,
    stored_columns,
    stored_groups,
    stored_rows,
    stored_values,
)
from guardband.doors.stored import entries_of, schema_of

FILES = (
    stored_values,
    stored_groups,
    stored_arguments,
    stored_columns,
    stored_rows,
    stored_certificate,
    stored,
)

MAX, LEAST = sys.float_info.max, 5e-324
NUMBERS = {"name": "x", "count": 9, "missing": 2, "knots": [0.0, 1.0], "at_most": [3, 7]}
CATEGORIES = {
    "name": "x",
    "count": 9,
    "missing": 2,
    "categories": ["a", "b"],
    "counts": [3, 1],
    "rare": 3,
    "rare_cells": [0, CELLS - 1],
    "rare_counts": [2, 1],
}
GROUP = {"name": "x", "kind": "category", "values": ["a", "b"], "is_range": False}
GROUP |= {"members": False, "has_pool": False, "has_missing": False}
BRANCH = {"column": "x", "kind": "number", "cut": 0.5, "values": [], "known": [], "missing_left": True}
BRANCH |= {"may_miss": False, "left": {"group": 0, "branch": None}, "right": {"group": 1, "branch": None}}
SCALE = {"center": 0.0, "scale": 1.0, "origin": 0.0, "unit": None, "least": 0.0, "most": 0.0}
NUMBER = {"code": "number", "center": 0.0, "scale": 1.0, "fill": 0.0, "marks_missing": False, "kind": "number"}

BAD_DESCRIPTIONS = [[[0, 1, 2]] * 2, [[0, 1, 2]] * 4, [[0, 1]] * 3, [[0, 1, 2, 0]] * 3, [[0, 1, 4]] * 3]


MOST_CATEGORIES = CATEGORIES | {
    "categories": [str(i) for i in range(MOST_KEPT)],
    "counts": [1] * MOST_KEPT,
    "count": 5 + MOST_KEPT,
}


def type_of(kind):
    """Return the type with a name, from the file that it is in."""
    return next(getattr(file, kind) for file in FILES if hasattr(file, kind))


def many(n, value="a"):
    return [f"{value}{i}" for i in range(n)]


@pytest.mark.parametrize(
    ("kind", "accepted", "refused"),
    [
        ("Finite", [MAX, -MAX, 0, 0.5], ["1e400", "-1e400", '"1"', "NaN"]),
        ("Positive", [LEAST, MAX], [0, -1.0, "1e400"]),
        ("NotNegative", [0, LEAST, MAX], [-LEAST, "1e400"]),
        ("Robust", [-3, 3.0, 0], [-3.001, 3.001, "NaN"]),
        ("Share", [0, 0.999, 1 - 2**-53], [1, -LEAST]),
        ("Count", [0, 2**53], [-1, 2**53 + 1, 0.5]),
        ("Width", [1, 2**31], [0, 2**31 + 1]),
        ("Exact", [{"fraction": "9/10"}, {"fraction": "-" + 400 * "9"}, {"fraction": f"1/{401 * '9'}"}], []),
        ("Exact", [{"float32": "0.9"}, {"float32": f"-{60 * '1'}.{60 * '1'}e-10"}, {"float32": "1e9"}], []),
        ("Exact", [], [{}, {"fraction": "1", "float32": "1"}, {"fraction": 401 * "9"}, {"fraction": f"1/{402 * '9'}"}]),
        ("Exact", [], [{"fraction": "1/0"}, {"fraction": "0.9"}, {"fraction": "1\n"}, {"float32": "1\n"}]),
        ("Exact", [], [{"float32": 61 * "1"}, {"float32": f"0.{61 * '1'}"}, {"float32": "1e100"}, {"float32": "nan"}]),
        ("Levels", [None, 0.9, [0.9] * 1000, {"fraction": "9/10"}], [[0.9] * 1001, "0.9"]),
        ("RiskEntries", [{"limit": 1.0, "cap": 2.0}], [{"limit": 1.0}, {"limit": 1.0, "cap": 2.0, "more": 1}]),
        ("SideEntries", [{"group": 0, "branch": None}, {"group": None, "branch": 3}], []),
        ("SideEntries", [], [{"group": 0, "branch": 3}, {"group": None, "branch": None}]),
        ("BranchEntries", [BRANCH, BRANCH | {"kind": "category", "cut": None}], []),
        ("BranchEntries", [], [BRANCH | {"cut": None}, BRANCH | {"kind": "category"}]),
        ("TreeEntries", [{"branches": [BRANCH] * 100}], [{"branches": []}, {"branches": [BRANCH] * 101}]),
        ("GroupColumnEntries", [GROUP, GROUP | {"kind": "number", "values": [-1.0, 2.0]}], []),
        (
            "GroupColumnEntries",
            [GROUP | {"kind": "number", "values": [1.0], "members": True}, GROUP | {"values": []}],
            [],
        ),
        ("GroupColumnEntries", [], [GROUP | {"values": own} for own in (["b", "a"], ["a", "a"], [1.0, 2.0])]),
        (
            "GroupColumnEntries",
            [],
            [GROUP | {"kind": "number", "values": own} for own in (["a"], [2.0, 1.0], [1.0, 1.0])],
        ),
        ("GroupColumnEntries", [], [GROUP | {"kind": "number", "values": [2.0], "members": True}]),
        ("Groups", [[GROUP], {"branches": [BRANCH]}], [[]]),
        ("NumberEntries", [NUMBER], [NUMBER | {"scale": 0}, NUMBER | {"kind": "category"}]),
        ("CategoryEntries", [{"categories": ["a", "b"]}, {"categories": []}], [{"categories": ["a", "a"]}]),
        ("DescribedEntries", [{"code": "target", "categories": ["a"], "values": [[0, 1, -3]] * 3}], []),
        ("DescribedEntries", [], [{"code": "target", "categories": ["a"], "values": own} for own in BAD_DESCRIPTIONS]),
        ("NoEntries", [{"code": "none", "categories": []}], [{"code": "none", "categories": ["a"]}]),
        ("DateEntries", [{"code": "date", "parts": [["day", NUMBER]] * n} for n in (1, 4)], []),
        ("DateEntries", [], [{"code": "date", "parts": [["day", NUMBER]] * n} for n in (0, 5)]),
        ("ScaleEntries", [SCALE, SCALE | {"most": LEAST}], [SCALE | {"least": LEAST}, SCALE | {"unit": 0}]),
        ("NumberSummaryEntries", [{"kind": "number"} | NUMBERS | {"count": 9, "missing": 2}], []),
        ("NumberSummaryEntries", [{"kind": "number"} | NUMBERS | {"count": 7, "missing": 0}], []),
        ("NumberSummaryEntries", [{"kind": "number"} | NUMBERS | {"knots": [], "at_most": [], "count": 2}], []),
        (
            "NumberSummaryEntries",
            [
                {"kind": "number"}
                | NUMBERS
                | {"knots": [float(i) for i in range(KNOTS + 1)], "at_most": [1] * (KNOTS + 1)}
            ],
            [
                {"kind": "number"} | NUMBERS | own
                for own in (
                    {"knots": [1.0, 0.0]},
                    {"knots": [1.0, 1.0]},
                    {"at_most": [7, 3]},
                    {"at_most": [3]},
                    {"at_most": [3, 8]},
                    {"knots": [0.0, 1.0, 2.0], "at_most": [3, 7, 8]},
                    {"knots": [], "at_most": [], "count": 1},
                    {"knots": [float(i) for i in range(KNOTS + 2)], "at_most": [1] * (KNOTS + 2)},
                )
            ],
        ),
        (
            "CategorySummaryEntries",
            [{"kind": "category"} | CATEGORIES, {"kind": "category"} | MOST_CATEGORIES],
            [
                {"kind": "category"} | CATEGORIES | own
                for own in (
                    {"categories": ["a", "a"]},
                    {"rare_cells": [1, 1]},
                    {"counts": [4]},
                    {"rare_counts": [3]},
                    {"rare": 2, "count": 8},
                    {"count": 8},
                    {"count": 10},
                    {"rare_cells": [0, CELLS]},
                    {"rare_cells": [0, -1]},
                    {
                        "categories": many(MOST_KEPT + 1),
                        "counts": [1] * (MOST_KEPT + 1),
                        "count": 6 + MOST_KEPT,
                    },
                )
            ],
        ),
        (
            "SeenNumbersEntries",
            [{"kind": "number", "range": own, "never_missing": True} for own in ([0, 0], [None] * 2)],
            [],
        ),
        (
            "SeenNumbersEntries",
            [],
            [{"kind": "number", "range": own, "never_missing": True} for own in ([1, 0], [None, 0], [0, None])],
        ),
        (
            "SeenCategoriesEntries",
            [{"kind": "category", "prints": p, "never_missing": True} for p in (None, "AAAAAAAAAAA=")],
            [],
        ),
        (
            "SeenCategoriesEntries",
            [],
            [{"kind": "category", "prints": p, "never_missing": True} for p in ("AAAA", "é", "AAAAAAAAAAA=x")],
        ),
        ("ChosenEntries", [{"candidates": n, "delta": d} for n, d in ((2, LEAST), (10**6, 0.999))], []),
        ("ChosenEntries", [], [{"candidates": n, "delta": d} for n, d in ((1, 0.1), (10**6 + 1, 0.1), (2, 0), (2, 1))]),
        (
            "FeatureEntries",
            [{"names": [], "count": 3}, {"names": ["a", "b"], "count": 2}],
            [{"names": ["a"], "count": 2}],
        ),
        (
            "SeveralEntries",
            [{"names": many(n), "others": [], "scales": [1.0]} for n in (2, 1000)],
            [{"names": many(n), "others": [], "scales": [1.0]} for n in (1, 1001)],
        ),
        ("SeveralEntries", [{"names": ["a", "b"], "others": [], "scales": [1.0] * 1000}], []),
        ("SeveralEntries", [], [{"names": ["a", "b"], "others": [], "scales": own} for own in ([1.0] * 1001, [0.0])]),
        ("TallyEntries", [{"judged": 0, "misses": 0, "most_waiting": n} for n in (1, 2**53)], []),
        ("TallyEntries", [], [{"judged": 0, "misses": 0, "most_waiting": n} for n in (0, 2**53 + 1)]),
        (
            "OnlineArguments",
            [{"method": "x", "side": "both", "window": n, "crossing": "sort"} for n in (None, 1, 2**53)],
            [{"method": "x", "side": "both", "window": n, "crossing": "sort"} for n in (0, 2**53 + 1)],
        ),
    ],
)
def test_each_entry_has_its_limits(kind, accepted, refused):
    for value in accepted:
        stored._decoded(json.dumps(value), type_of(kind))
    for value in refused:
        text = value if isinstance(value, str) and kind == "Finite" else json.dumps(value)
        text = "1e400" if value == "1e400" else text
        with pytest.raises(ValueError, match="its entries are not what guardband writes"):
            stored._decoded(text, type_of(kind))


HEAD = {"schema": 8, "written_by": {}}
DISTRIBUTION = HEAD | {"kind": "distribution", "placement": "quantiles", "unit": None}
PROMISED = {
    "method": "conf-nn",
    "confidence_level": 0.9,
    "alpha": None,
    "guarantee": "marginal",
    "delta": None,
    "joint": False,
    "tau": None,
    "taus": None,
    "rule": None,
    "average": None,
    "on_insufficient": "inf",
}


@pytest.mark.parametrize(("levels", "fits"), [(None, True), (2, True), (1000, True), (1, False), (1001, False)])
def test_a_distribution_has_two_to_a_thousand_levels(levels, fits):
    own = levels if levels is None else [(i + 1) / (levels + 2) for i in range(levels)]
    text = json.dumps(DISTRIBUTION | {"levels": own})
    if fits:
        assert entries_of(text)["levels"] == own
    else:
        with pytest.raises(ValueError, match="its entries are not"):
            entries_of(text)


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.1])
def test_levels_of_a_distribution_lie_between_0_and_1(level):
    with pytest.raises(ValueError, match="its entries are not"):
        entries_of(json.dumps(DISTRIBUTION | {"levels": [0.5, level]}))


def test_what_a_file_leaves_out_has_the_value_that_it_had_before_it_was_written():
    found = stored.to_builtins(stored._decoded(json.dumps(PROMISED), stored_arguments.Promised))
    defaults = {name: value for name, value in found.items() if name not in PROMISED}
    assert defaults == {
        "side": "both",
        "tails": None,
        "risk": None,
        "groups": None,
        "small_groups": "inf",
        "missing_groups": False,
        "group_bins": BINS,
    }
    with pytest.raises(ValueError, match="its entries are not"):
        stored._decoded(json.dumps(PROMISED | {"group_bins": 1}), stored_arguments.Promised)
    stored._decoded(json.dumps(PROMISED | {"group_bins": 2}), stored_arguments.Promised)
    with pytest.raises(ValueError, match="its entries are not"):
        stored._decoded(json.dumps(PROMISED | {"more": 1}), stored_arguments.Promised)


def test_older_files_leave_out_what_their_models_did_not_have():
    found = stored._decoded(json.dumps(PROMISED), stored_arguments.Promised)
    assert {own.name for own in fields(found)} <= {own.name for own in fields(stored_arguments.Params)}
    for kind, wanted in (
        (
            stored_arguments.Params,
            {"calibration": "split", "folds": FOLDS, "split_by_time": False, "distribution": False},
        ),
        (stored.NetworkEntries, {"groups": None, "members": False, "several": None}),
    ):
        given = {own.name: own.default for own in fields(kind)}
        assert {name: given[name] for name in wanted} == wanted


def test_what_names_no_kind_or_is_no_json_is_refused():
    assert schema_of('{"schema": 7, "more": 1}') == 7
    for text in (
        "",
        "[]",
        "{}",
        '{"schema": "8"}',
        json.dumps(HEAD),
        json.dumps(HEAD | {"kind": "other"}),
        10**5 * "[",
    ):
        with pytest.raises(ValueError, match="its entries are not what guardband writes"):
            entries_of(text)


def test_limits_are_those_of_the_lists_that_they_are_for():
    assert stored_values.OfEach[int].__metadata__ == (Meta(max_length=stored_values.MOST_TARGETS),)
