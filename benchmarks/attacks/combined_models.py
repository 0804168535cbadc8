"""Files of models with combined promises, forged one entry or tensor at a time, with a checksum that is right.

python benchmarks/attacks/combined_models.py [--share 0.15] [--seed 1] [--seconds 150] [--only WORDS]

``model_files.py`` has models of every method; these have sides, tails, groups, entities, weights, folds and several
targets. Two tensors of one shape are also swapped, and each tensor turned round. A file must be refused with a
ModelFileError that says what to do, or give a model that predicts no NaN and no interval that ends before it begins.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import guardband as gb
from guardband.data.codes import TargetCode

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import tiny_models as tiny
from forged_models import bounds, entry_mutants, forged, numbers, opened, refuse_other_words, tensor_mutants

N, SECONDS, ROOM = 60, 20, 2**30
EVEN = np.arange(N) % 2
OVERLAPPING = np.stack([EVEN, np.arange(N) // 7 % 2], axis=1)
PAIRS = np.arange(N) // 2
WEIGHTS = 0.5 + np.random.default_rng(0).random(N)
NEW = slice(10)
Kind = tuple[Callable[[], Any], dict[str, Any] | str, Callable[[Any], Any]]
"""What makes a model, what ``load`` needs besides, and how it predicts."""


def some_numbers() -> Any:
    """Return a few rows and targets."""
    return numbers(N)


def many_categories() -> Any:
    """Return rows of many categories with a few rows each, which are described by the target."""
    random, place = np.random.default_rng(0), np.repeat(np.arange(150), 6)
    rows = pd.DataFrame({"place": [f"p{i}" for i in place], "x": random.standard_normal(900)})
    return rows, 3 * random.standard_normal(150)[place] + 0.3 * random.standard_normal(900)


def described(**asked: Any) -> Kind:
    """Return a table's model that reads categories by what the target is like in each."""

    def make() -> Any:
        own = gb.IntervalRegressor(hidden=(4,), max_epochs=4, preset="fast", random_state=0, split_by=[], **asked)
        own.fit(*many_categories())
        assert any(isinstance(code, TargetCode) for each in own.fitted_.learned.each for code in each.encoder.codes)
        return own

    return make, {}, lambda own: own.predict_interval(many_categories()[0][NEW])


def table(rows: Callable[[], Any] = some_numbers, **asked: Any) -> Kind:
    """Return a table's model."""
    return tiny.table(rows, **tiny.PLAIN, **asked), {}, lambda own: own.predict_interval(rows()[0][NEW])


def rule(side: str = "both", new: dict[str, Any] | None = None, columns: int = 0, **asked: Any) -> Kind:
    """Return a rule; ``fit`` gets what begins with ``fit_``."""
    given = {name.removeprefix("fit_"): asked.pop(name) for name in list(asked) if name.startswith("fit_")}
    *bands, y = bounds(N)
    if columns:
        *bands, y = (np.stack([own] * columns, axis=1) for own in (*bands, y))
    bands = [None if (i, side) in ((0, "upper"), (2, "lower")) else own for i, own in enumerate(bands)]

    def make() -> Any:
        return gb.BandCalibrator(side=side, **asked).fit(*bands, y, **given)

    def predict(own: Any) -> Any:
        rows = [band if band is None else band[NEW] for band in bands]
        if "calibration" in asked:
            rows = [np.stack([band] * 3) for band in rows]
        return own.transform(*rows, **(new or {}))

    return make, {}, predict


def any_model(**asked: Any) -> Kind:
    """Return a calibrated function."""
    own = {name: value for name, value in asked.items() if callable(value)}
    return (
        lambda: gb.calibrate(tiny.line, numbers(N), **asked),
        {"model": tiny.line, **own},
        lambda own: own.predict_interval(numbers(N)[0][NEW]),
    )


def network(name: str) -> Kind:
    """Return a network of the tests."""
    rows = torch.from_numpy(numbers(N)[0][NEW]).float()
    return tiny.EVERY[name][0], name, lambda own: own(rows)


GROUPS, GROUPED = {"fit_groups": EVEN}, {"groups": EVEN[NEW]}
KINDS: dict[str, Kind] = {
    "table, one side": table(side="upper"),
    "table, tails": table(tails=(0.1, 0.2)),
    "table, groups": table(tiny.frame, groups="shop", confidence_level=0.6),
    "table, groups, pac": table(tiny.frame, groups="shop", guarantee="pac", confidence_level=0.6),
    "table, entities, pac": table(tiny.frame, split_by="shop", guarantee="pac", confidence_level=0.5),
    "table, cv-minmax": table(calibration="cv-minmax", folds=3),
    "table, described": described(),
    "table, described, cv+": described(calibration="cv+", folds=2),
    "table, targets, pac": table(tiny.both, targets="joint", guarantee="pac", confidence_level=0.5),
    "rule, one side": rule("lower", guarantee="pac", confidence_level=0.8),
    "rule, tails": rule(tails=(0.05, 0.2)),
    "rule, groups": rule(**GROUPS, new=GROUPED, confidence_level=[0.8, 0.5]),
    "rule, groups, pac": rule(**GROUPS, new=GROUPED, guarantee="pac", confidence_level=0.7),
    "rule, groups, tails": rule(**GROUPS, new=GROUPED, tails=(0.1, 0.1)),
    "rule, groups, entities": rule(fit_groups=EVEN[PAIRS], fit_entities=PAIRS, new=GROUPED, confidence_level=0.7),
    "rule, overlapping": rule(fit_groups=OVERLAPPING, new={"groups": OVERLAPPING[NEW]}, confidence_level=0.7),
    "rule, weights": rule(fit_weights=WEIGHTS, new={"weights": WEIGHTS[NEW]}, confidence_level=[0.8, 0.5]),
    "rule, weights, groups, pac": rule(
        **GROUPS, fit_weights=WEIGHTS, fit_max_weight=1.5, new=GROUPED, guarantee="pac", confidence_level=0.6
    ),
    "rule, cv+": rule(calibration="cv+", fit_folds=np.arange(N) % 3),
    "rule, targets, entities, pac": rule(
        columns=2, targets="joint", scales=[1.0, 2.0], fit_entities=PAIRS, guarantee="pac", confidence_level=0.7
    ),
    "model, pac": any_model(guarantee="pac", confidence_level=0.8),
    "model, groups": any_model(groups=tiny.first_positive),
    "model, weights": any_model(weights=tiny.first_positive),
    **{name: network(name) for name in ("network-groups", "network-members", "network-weights", "network-several")},
}


def brought(kind: Kind) -> dict[str, Any]:
    """Return what is passed to ``load``."""
    return tiny.brought(kind[1]) if isinstance(kind[1], str) else kind[1]


def changes(entries: Any, tensors: Any) -> Iterator[tuple[str, Callable[[], Any], Any]]:
    """Yield what is done, and the entries and tensors that it leaves."""
    for what, change in entry_mutants(entries):
        yield what, change, tensors
    for what, own in tensor_mutants(tensors):
        yield what, lambda: entries, own
    for name, t in tensors.items():
        if t.ndim:
            yield f"{name} turned round", lambda: entries, tensors | {name: t.flip(0).contiguous()}
        for other, o in tensors.items():
            if name < other and (t.shape, t.dtype) == (o.shape, o.dtype):
                yield f"{name} for {other}", lambda: entries, tensors | {name: o, other: t}


def judged(path: Path, kind: Kind) -> str:
    """Return "refused" or "loaded"; raise what else comes of a file."""
    try:
        model = gb.load(path, **brought(kind))
    except gb.ModelFileError as error:
        refuse_other_words(str(error).removeprefix(str(path)), error.__cause__)
        return "refused"
    found = kind[2](model)
    if isinstance(found, torch.Tensor | tuple | list):
        for own in [found] if isinstance(found, torch.Tensor) else found:
            assert not own.isnan().any(), "it predicts NaN"
        return "loaded"
    lower, upper = np.asarray(found.lower), np.asarray(found.upper)
    assert not np.isnan(np.stack([lower, upper])).any(), "it predicts NaN"
    assert (lower <= upper).all(), "an interval ends before it begins"
    return "loaded"


def main() -> None:
    """Forge files for some time, and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.15, help="of all files, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--only", default="", help="only kinds whose name contains this")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    chance, counts, until = random.Random(given.seed), Counter[str](), time.monotonic() + given.seconds
    with tempfile.TemporaryDirectory() as folder:
        jobs, out = [], Path(folder) / "forged"
        kinds = {name: kind for name, kind in KINDS.items() if given.only in name}
        for name, kind in kinds.items():
            kind[0]().save(Path(folder) / name)
            assert judged(Path(folder) / name, kind) == "loaded", name
            every = changes(*opened(Path(folder) / name))
            jobs += [(name, *own) for own in every if chance.random() < given.share]
        chance.shuffle(jobs)
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, taken + ROOM))
        for name, what, change, tensors in jobs:
            if time.monotonic() > until:
                break
            forged(out, change(), tensors)
            signal.alarm(SECONDS)  # which ends the program, after the last line that it printed
            try:
                counts[judged(out, KINDS[name])] += 1
            except Exception as error:
                counts["fault"] += 1
                print(f"{name}: {what} | {type(error).__name__}: {error}"[:300], flush=True)
            signal.alarm(0)
    print(f"{sum(counts.values()):,} files of {len(kinds)} kinds: {dict(counts)}")


if __name__ == "__main__":
    main()
