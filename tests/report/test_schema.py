"""What guardband writes passes; what anybody else wrote is refused in a sentence, or is a page like any other.

Here three wrong values are tried at each place; ``benchmarks/attacks/page.py`` tries all of them.
"""

import copy
import math

import pytest

import guardband as gb
from guardband.report.page import render
from guardband.report.schema import checked
from reported import documents, found, places, put

KINDS = ("entities", "pav", "unchecked", "groups", "several joint", "several each")
WRONG = [
    None,
    True,
    -1,
    0,
    10**400,
    2**53 + 1,
    1e308,
    -0.5,
    math.nan,
    -math.inf,
    "",
    "\ud800",
    "x" * 20_001,
    [],
    {},
    [[]],
]


def test_every_document_that_guardband_makes_passes_and_gives_the_same_page():
    assert len(documents()) >= 16
    for name, own in documents().items():
        before, after = (render(page).split('<script type="application/json"')[0] for page in (own, checked(own)))
        assert before == after, name


def harmless(document):
    """Return whether a document is refused; if not, its page must be made without any other error."""
    try:
        kept = checked(document)
    except gb.ModelFileError as error:
        said = str(error)
    else:
        render(kept).encode()
        return False
    assert said.isprintable()
    assert len(said) < 400
    assert said.endswith("Make a new one with `guardband audit MODEL TABLE --report PAGE`.")
    return True


@pytest.mark.parametrize("name", KINDS)
def test_wrong_values_anywhere_are_refused_or_do_no_harm(name):
    own = documents()[name]
    tried = [harmless(put(own, at, WRONG[i % len(WRONG)])) for i, at in enumerate([*places(checked(own))] * 3)]
    assert sum(tried) > len(tried) / 2


@pytest.mark.parametrize("name", KINDS)
def test_whatever_a_page_uses_must_be_there(name):
    """Every entry of what ``checked`` keeps is needed: without it the document is refused, and never a KeyError."""
    own = documents()[name]
    inner = {at[:i] for at in places(checked(own)) for i in range(len(at) + 1)}
    dropped = 0
    for at in inner:
        part = found(checked(own), at)
        if isinstance(part, dict):
            for key in part:
                less = {name: value for name, value in found(own, at).items() if name != key}
                assert harmless(put(own, at, less)) or key in ("side", "history", "risk", "quantiles"), (
                    at,
                    key,
                )  # not in older ones
                dropped += 1
        elif isinstance(part, list) and part and at[-1] in ("y", "lower", "inside", "covered", "edges", "cells"):
            assert harmless(put(own, at, found(own, at)[:-1])) or at[-1] == "cells", at
    assert dropped >= 13


def changed(at, value):
    return put(documents()["entities"], at, value)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (("audit", "families", 0, "key"), "width\n"),
        (("audit", "families", 0, "key"), "__proto__"),
        (("audit", "families", 0, "strata", 0, "flag"), "low high"),
        (("status",), "unchecked"),
        (("rows", "headline"), 10_000),
        (("rows", "widest", 0), 10_000),
        (("rows", "inside", 0), "2" * 25),
        (("rows", "strata", "width"), "z" * 25),
        (("rows", "row"), list(range(20_000))),
        (("audit", "curve", "levels", 0), 0.999),
        (("audit", "levels", 0, "n"), 0),
        (("audit", "levels", 0, "covered"), 2**40),
        (("audit", "notes"), ["x"] * 100_000),
        (("audit", "notes"), {"x": 1}),
        (("schema",), 4.0),
        (("schema",), 3),
        (("schema",), [4]),
        (("rows", "telling", 0), 10_000),
        (("rows", "examples", 0, 1), 10_000),
        (("rows", "examples", 0, 0), "odd"),
    ],
)
def test_what_does_not_fit_together_is_refused(at, value):
    assert harmless(changed(at, value))


@pytest.mark.parametrize("document", [None, [], "x", 4, {}, {"schema": 4}])
def test_what_is_no_document_is_refused(document):
    assert harmless(document)


def test_depth_and_what_no_page_uses_do_no_harm():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert harmless(changed(("audit", "families"), deep))
    own = copy.copy(documents()["entities"]) | {"more": deep}
    assert "more" not in checked(own)


def test_two_families_of_one_key_are_refused():
    own = documents()["entities"]
    assert harmless(put(own, ("audit", "families"), own["audit"]["families"] * 2))


def test_groups_without_any_row_are_refused():
    own = documents()["entities"]
    empty = [stratum | {"n": 0, "covered": 0, "low": 0, "high": 0} for stratum in own["audit"]["families"][0]["strata"]]
    assert harmless(put(own, ("audit", "families", 0, "strata"), empty))
