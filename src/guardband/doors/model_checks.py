"""Whether the parts of a model file fit each other: columns, weights, what calibration rows left, and the promise.

Each check raises ``ValueError`` with what is wrong. The entries have the right types already: see ``stored.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from msgspec import convert
from numpy.typing import NDArray
from torch import Tensor

from guardband.bands.certificate import Certificate
from guardband.bands.kept_promise import given_rows
from guardband.bands.parted_promise import PartedPromise
from guardband.bands.predicted import Context, Predicted
from guardband.bands.promise import Promise
from guardband.bands.risk_bounds import risk_budget
from guardband.calibration.conformal import Conformal
from guardband.calibration.counted import CountedSummary, Known
from guardband.calibration.counted_at import KnownAt, Weighed
from guardband.calibration.cut import RankCut
from guardband.calibration.grouped_cut import GroupedCut
from guardband.calibration.rejection_cut import RejectionCut
from guardband.calibration.risk_control import RiskControl
from guardband.calibration.rule import Calibration, Rule
from guardband.calibration.several import SeveralRule
from guardband.calibration.sided import Sided
from guardband.calibration.summary import Array, Summary
from guardband.calibration.weighted_cut import WeightedCut
from guardband.data.codes import FURTHEST, MOST_RANGES
from guardband.data.encoder import TableEncoder
from guardband.data.several_targets import SeveralTargets
from guardband.data.target import Target
from guardband.doors.group_checks import check_grouped
from guardband.doors.weight_checks import check_known_weights, check_shared, check_weighted
from guardband.training.members import Members, State

LARGEST = 1e37
"""Outputs of networks stay below this: single precision ends at 3e38."""
TRIED = 256
"""Rows for networks so deep that a bound says nothing."""
ROUNDING = 1.01
"""Sums of single precision may be larger than exact ones by a share far below one percent."""
MAY_MISS = frozenset({"rows.distance", "rows.each"})
"""What calibration rows may leave as NaN: bayes has no distance where the network predicts no finite number.

A row has no score for a target that is missing in it; a rule for all targets refuses that."""
FOUND = ("n_calibration", "rank", "whole_line", "tau", "covered")
"""What a promise says of the calibration rows; all else follows from the arguments."""


def check_columns(entries: Mapping[str, Any], encoder: Any) -> None:
    """Raise unless all that is said of columns is about the same ones."""
    columns, count = entries["reference"]["columns"], entries["features"]["count"]
    names, kinds = [own["name"] for own in columns], [own["kind"] for own in columns]
    _demand(len(columns) == count, "its summary of the training rows is of other columns")
    _demand(entries["features"]["names"] in ([], names), "its columns have two names")
    if isinstance(encoder, TableEncoder):
        _demand(list(encoder.kinds) == kinds, "its encoder is for other columns")
        _demand(entries["in_features"] == encoder.width, "its encoder does not make what its networks take")
    else:
        _demand(entries["in_features"] == count, "its networks take another number of columns")
    if entries["seen"] is not None:
        seen = entries["seen"]["columns"]
        # nothing is kept of columns that name entities, whatever they are
        told = [own for own in seen if own.get("prints") is not None or own["never_missing"] or "range" in own]
        alike = len(seen) == count and all(a["kind"] == b for a, b in zip(seen, kinds, strict=True) if a in told)
        _demand(alike, "what it has seen is of other columns")
    if entries["repeat_rule"] is not None:
        _demand(set(entries["repeat_rule"]["columns"]) <= set(names), "its repeated rows are of other columns")


def check_target(target: Target, asked: Target) -> None:
    """Raise unless the target is what the arguments ask for."""
    if isinstance(target, SeveralTargets) and isinstance(asked, SeveralTargets):
        _demand(target.names == asked.names, "its targets are not what its arguments ask for")
        for own, like in zip(target.each, asked.each, strict=True):
            check_target(own, like)
        return
    same = replace(
        asked,
        scales=target.scales,
        whole=target.whole,
        slack=target.slack,
        remarks=target.remarks,
    )
    _demand(target == same, "its target is not what its arguments ask for")
    is_plain = [scale.unit is None for scale in target.scales]
    possible = ([True], [True, False]) if target.quantiles else ([True],)
    _demand(is_plain in possible, "its target has other scales than its networks")


def check_tensors(tensors: Mapping[str, Tensor], names: Sequence[str], prefixes: tuple[str, ...]) -> None:
    """Raise unless fingerprints and entities are lists of whole numbers, and there is nothing unknown."""
    for name, t in tensors.items():
        if name in names:
            _demand(t.dtype == torch.int64 and t.ndim == 1, f"{name} is no list of whole numbers")
        else:
            _demand(name == "report" or name.startswith(prefixes), f"it holds something unknown, {name!r}")


def check_size(widths: Sequence[int], weights: State, members: int) -> None:
    """Raise if layers of these widths are more, or hold more, than the weights that there are: they are not built."""
    needed, held = sum(a * b for a, b in pairwise(widths)), sum(t.numel() for t in weights.values())
    _demand(
        2 * (len(widths) - 1) <= len(weights) and members * needed <= held, "its networks are larger than its weights"
    )


def check_weights(weights: State, like: Mapping[str, Tensor], members: int) -> None:
    """Raise unless weights have the names, shapes and types of so many networks like this one."""
    different = sorted(weights.keys() ^ like.keys())
    _demand(not different, f"it lacks weights of its networks, or holds others: see {different[:1]}")
    for name, t in weights.items():
        wanted, found = (members, *like[name].shape), tuple(t.shape)
        _demand(found == wanted, f"its networks need {name} of the shape {wanted}, found {found}")
        _demand(t.dtype == like[name].dtype, f"its networks need {name} in {like[name].dtype}, found {t.dtype}")


def check_finite(state: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> None:
    """Raise if there is an infinity or NaN where the network as it was built has none.

    A network of the user's own may hold infinities, as in the mask of an attention, or NaN for what is not known.
    """
    for name, t in state.items():
        if t.is_floating_point() or t.is_complex():
            odd = ~torch.isfinite(t)
            # only then is the other one looked at, which may lie on another device
            if odd.any():
                same = like[name].shape == t.shape and _alike(t[odd], like[name].to(t)[odd])
                _demand(same, f"{name} holds infinity or NaN")


def _alike(a: Tensor, b: Tensor) -> bool:
    return bool(((a == b) | (a.isnan() & b.isnan())).all())


@torch.no_grad()
def check_outputs(members: Members, state: State, encoder: TableEncoder, target: Target, device: torch.device) -> None:
    """Raise if networks of guardband's own could put out infinity or NaN for any row of a table.

    Their layers and activations are such that with all weights positive, on the largest input, each number is at least
    as large as it can be otherwise. A cosine is at most 1, and vectors of categories are at most the largest.
    """
    largest = {}
    for name, t in state.items():
        size = ROUNDING * t.abs()
        if name.startswith("embedding.") and name.endswith(("frequency", "phase")):
            _demand(float(size.max()) < LARGEST, f"{name} is too large")
            size = torch.zeros_like(t)
        elif name.startswith("vectors."):
            size = size.amax(-2, keepdim=True).expand_as(t)
        largest[name] = size.to(t.dtype)
    row = torch.full((1, 1, encoder.width), float(FURTHEST), device=device)
    row[..., : encoder.numbers] = ROUNDING * MOST_RANGES
    row[..., encoder.width - len(encoder.sizes) :] = 0  # the first of the vectors, which are equal here
    members.train(False)
    members.restore(largest)
    bound = float(members(row).abs().max())
    if not bound < LARGEST:  # many layers: all weights at their worst at once say little, so some rows are tried
        members.restore(state)
        rows = (2 * torch.rand(1, TRIED, encoder.width, generator=torch.Generator().manual_seed(0)) - 1).to(row) * row
        bound = float(members(rows).abs().max())
    within = bound < LARGEST and all(np.isfinite(scale.furthest(bound)) for scale in target.scales)
    _demand(within, "its networks could predict infinity")


def like_predicted(rule: Rule, predicted: Predicted) -> Summary:
    """Return what the rule would keep of one row of a prediction, for names, types and shapes."""
    of_uses: dict[str, Array] = {
        "entity": np.zeros(1, dtype=np.int64),
        "group": np.zeros((1, rule.group_columns), dtype=np.int64),
        "weight": np.full(1, 1e-300),  # below any bound on weights
        "fold": np.zeros(1, dtype=np.int64),
    }
    context = Context(**{name: of_uses[name] for name in rule.uses if name in of_uses})
    with np.errstate(all="ignore"):
        return rule.summarise(predicted, np.zeros((1, len(rule.target_names)) if rule.target_names else 1), context)


def check_summary(summary: Summary, like: Summary, n_rows: int) -> None:
    """Raise unless a summary of n rows, or of as many entities or fewer, is what the rule would keep."""
    found, wanted = summary.to_arrays(), like.to_arrays()
    _demand(found.keys() == wanted.keys(), "its calibration rows left something else than its method keeps")
    _demand(1 <= summary.n <= n_rows, "its number of calibration rows does not fit")
    for name, array in found.items():
        rows = name.startswith("rows.")
        shape = (summary.n, *wanted[name].shape[1:]) if rows else wanted[name].shape
        alike = array.dtype == wanted[name].dtype or (name == "rows.group" and array.dtype.kind == "i")
        fits = array.shape == shape and alike
        _demand(fits, f"what its calibration rows left has the wrong type or shape, {name}")
        if array.dtype.kind == "f":
            _demand(name in MAY_MISS or not np.isnan(array).any(), f"what its calibration rows left is NaN, {name}")
        elif not rows:
            _demand(bool(((array >= 0) & (array <= summary.n)).all()), f"{name} counts more rows than there are")


def check_counted(summary: CountedSummary, like: Summary) -> None:
    """Raise unless counted scores are those that the rule would keep, and what is known of them can be true."""
    wanted = {name for block in like.blocks for name in block if name.startswith("score")}
    _demand(set(summary.counted) == wanted and summary.n >= 1, "its calibration rows left other scores")
    for own in summary.counted.values():
        if isinstance(own, KnownAt):
            wrong = (check_known_weights if isinstance(own.own, Weighed) else check_shared)(own.own, summary.n)
            _demand(wrong is None, str(wrong))
            continue
        assert isinstance(own, Known)
        _demand(0 <= own.n <= summary.n, "it counts more rows than there are")
        known = own.ranks.dtype == own.number.dtype == own.beyond.dtype == np.int64 and own.scores.dtype == np.float64
        _demand(known and own.number.ndim == 1 and own.ranks.ndim == 2, "its counts have the wrong type or shape")
        fits = own.beyond.shape == own.number.shape == own.ranks.shape[:1] and own.ranks.shape == own.scores.shape
        _demand(fits, "its counts have the wrong type or shape")
        counts = (own.beyond >= 0) & (own.beyond <= own.number) & (own.number <= own.n)
        ranks = (own.ranks >= 0) & (own.ranks <= own.number[:, None])
        _demand(bool(counts.all() and ranks.all()), "it counts more rows than there are")
        in_order = (np.diff(own.ranks) >= 0).all() and (own.scores[:, 1:] >= own.scores[:, :-1]).all()
        _demand(bool(in_order) and not np.isnan(own.scores).any(), "its thresholds are not in order")


def check_calibration(
    rule: Rule, arrays: Mapping[str, NDArray[Any]], certificate: Certificate, predicted: Predicted
) -> None:
    """Raise unless the arrays of a calibrated network and its certificate are such as the rule makes."""
    like, among = rule.calibrate(like_predicted(rule, predicted)), certificate.promise.chosen_from
    _demand(isinstance(among, int) and among >= 1, "its certificate is for no number of candidates")
    if among > 1:
        delta = certificate.promise.delta or 0.0
        _demand(0 < delta < 1 and delta / among == like.promise.delta, "its certificate does not share its delta")
        like = replace(like, promise=like.promise.chosen_among(among, delta))
    said = certificate.method == rule.method and certificate.scalar == rule.levels.scalar
    _demand(said, "its certificate is for other levels")
    if isinstance(rule, SeveralRule):
        _check_targets(rule, arrays, certificate.promise, like, predicted)
    elif isinstance(rule, Sided):
        _check_sides(rule, arrays, certificate.promise, like, predicted)
    else:
        _check_found(rule, arrays, certificate.promise, like, predicted)


def _check_targets(
    rule: SeveralRule, arrays: Mapping[str, NDArray[Any]], promise: Promise, like: Calibration, predicted: Predicted
) -> None:
    """Raise unless the promise of all targets, or of each, is such as its rule makes."""
    _demand(type(promise) is type(like.promise), "its certificate is of another kind than its arguments ask for")
    _demand(arrays.keys() == like.arrays.keys(), "it is calibrated in another way than its arguments say")
    shapes = {name: array.shape for name, array in like.arrays.items()}
    _demand({name: array.shape for name, array in arrays.items()} == shapes, "its calibration has the wrong shape")
    each = [promise.of_target(j) for j in range(len(rule.targets))]
    _demand(promise == like.promise.with_targets(each, promise), "its certificate does not follow from its arguments")
    counts = [own.n_calibration for own in each]
    _demand(max(counts) <= promise.n_calibration <= sum(counts), "its certificate counts more rows than there are")
    for j, own in enumerate(each):
        extended = rule.score.extends or not promise.is_of_each_target
        made = replace(like.promise.of_target(j), extended=extended)  # type: ignore[call-arg]
        found = replace(own, extended=extended)  # type: ignore[call-arg]
        alone = Calibration(rule.target_arrays(j, like.arrays), made)
        _check_found(rule.of_target(j), rule.target_arrays(j, dict(arrays)), found, alone, predicted)


def _check_sides(
    rule: Sided, arrays: Mapping[str, NDArray[Any]], promise: Promise, like: Calibration, predicted: Predicted
) -> None:
    """Raise unless each side is such as its rule makes, and the promise is that of all sides."""
    _demand(type(promise) is type(like.promise), "its certificate is of another kind than its arguments ask for")
    _demand(arrays.keys() == like.arrays.keys(), "it is calibrated in another way than its arguments say")
    sides = [(part.group, part.side) for part in promise.statements()]
    wanted = [(part.group, part.side) for part in like.promise.statements()]
    _demand(sides == wanted, "its certificate is for other groups or sides")
    _demand(promise == rule.together(rule.apart(promise)), "its certificate does not follow from its parts")
    # whether bounds lie at the point, and cover more than their rank says, only the calibration rows tell
    each = (rule.apart(_unextended(own, rule.score.extends)) for own in (promise, like.promise))
    for own, side, found, other in zip(rule.rules, rule.sides, *each, strict=True):
        made = Calibration(rule.arrays_of(side, like.arrays), other)
        _check_found(own, rule.arrays_of(side, arrays), found, made, predicted)


def _unextended(promise: Promise, extends: bool) -> Promise:
    own = cast(PartedPromise, promise)
    parts = (replace(part, promise=replace(part.promise, extended=extends)) for part in own.parts)  # type: ignore[call-arg]
    return replace(own, parts=tuple(parts))


def _check_found(
    rule: Rule, arrays: Mapping[str, NDArray[Any]], promise: Promise, like: Calibration, predicted: Predicted
) -> None:
    """Raise unless arrays and promise are such as the rule makes; ``like`` is what it makes of one row."""
    _demand(type(promise) is type(like.promise), "its certificate is of another kind than its arguments ask for")
    _demand(promise.confidence_level == rule.levels.floats, "its certificate is for other levels")
    if isinstance(rule, Conformal) and isinstance(rule.cut, WeightedCut):
        wrong = check_weighted(rule, arrays, promise)
        _demand(wrong is None, str(wrong))
        return
    if isinstance(rule, Conformal) and isinstance(rule.cut, RejectionCut):
        rule = replace(rule, cut=rule.cut.base)  # the rows that are kept are calibrated as without weights
    if isinstance(rule, Conformal) and isinstance(rule.cut, GroupedCut):
        wrong = check_grouped(rule, arrays, promise, like)
        _demand(wrong is None, str(wrong))
        return
    _demand(arrays.keys() == like.arrays.keys(), "it is calibrated in another way than its arguments say")
    for name, array in arrays.items():
        wanted = like.arrays[name]
        fits = array.shape == wanted.shape and array.dtype == wanted.dtype
        _demand(fits, f"its calibration has the wrong type or shape, {name}")
        if array.dtype.kind == "f":
            _demand(not np.isnan(array).any(), f"its calibration is NaN, {name}")
        else:
            within = ((array >= -1) & (array < predicted.candidates)).all()
            _demand(bool(within), f"its calibration chose a network that there is not, {name}")
    if type(promise).__module__.startswith("guardband."):
        _check_promise(promise, like.promise, rule, arrays)


def _check_promise(promise: Promise, like: Promise, rule: Rule, arrays: Mapping[str, Array]) -> None:
    convert(vars(promise), type(promise))
    found = {name: getattr(promise, name) for name in FOUND if hasattr(promise, name)}
    kept = given_rows(promise)
    _demand(promise == replace(like, **found, **kept), "its certificate does not follow from its arguments")
    n, levels = promise.n_calibration, rule.levels.values
    per_level = [found[name] for name in FOUND[1:] if found.get(name) is not None]
    _demand(all(len(own) == len(levels) for own in per_level), "its certificate is for other levels")
    counts = [k for name in ("rank", "covered") for k in found.get(name) or ()]
    _demand(n >= (0 if kept else 1) and n <= kept.get("n_given", n), "its certificate counts more rows than there are")
    _demand(all(0 <= k <= n + 1 for k in counts), "its certificate counts more rows than there are")
    if isinstance(rule, RiskControl):
        is_infinite = bool(np.isinf(arrays["threshold"]).all())
        _demand(promise.whole_line == (is_infinite,), "its certificate does not fit its calibration")
        enough = risk_budget(rule.risk.limit, rule.risk.cap, n, rule.delta) >= 0
        _demand(enough or is_infinite, "its certificate counts too few rows for its risk")
    if isinstance(rule, Conformal) and isinstance(rule.cut, RankCut):
        ranks = tuple(rule.cut.rank(level, n) for level in levels)
        infinite = tuple(np.isinf(arrays["threshold"]).tolist())
        _demand((promise.rank, promise.whole_line) == (ranks, infinite), "its certificate does not fit its calibration")


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
