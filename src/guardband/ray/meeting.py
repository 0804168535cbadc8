"""How many rows each entity has, and which is drawn, if they lie in many files: workers exchange by ranges of labels.

A label is a hash, so that ranges of labels are about equally long. Every worker sends of its entities those of a range
to the one that adds up this range, and is told their sizes, or the least draw of each. No process holds all entities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.levels import Levels
from guardband.bands.ranks import marginal_rank
from guardband.calibration.counted_at import CountedAt, SharedFound
from guardband.calibration.cut import SAME
from guardband.calibration.summary import Array
from guardband.data.entities import Labels, draws
from guardband.data.order_statistics import replied
from guardband.data.weight_statistics import Inverses, reached
from guardband.ray.cluster import Shared, all_in_order, fetched, task, workers
from guardband.ray.spread import Blocks, Held, Spread

ROWS = 1 << 21
"""About so many rows one worker looks at together."""
SAMPLE = 1 << 14
"""So many labels are kept of entities that are only counted: an audit knows them again."""
AHEAD = 2
DRAW, SAID = "draw", "said"
TOP = 1 << 64

Keys = NDArray[np.uint64]
Records = Mapping[str, Any]
"""Of each entity its label, the number of its rows, and its lowest and highest score; labels in order."""


@dataclass(frozen=True, eq=False)
class Told:
    """What is told of the entities of a range.

    Parameters
    ----------
    entities : int
        How many there are.
    seen : int
        How many of them trained the model.
    sizes : array of shape (S,)
        The different numbers of rows that they have.
    alike : dict of bool
        Whether the rows of each score alike, by the name of the scores.
    held : Held or None
        What is told of the highest score of each, None if one row of each is drawn.
    labels : array of shape (m,)
        The smallest labels.
    least : dict of float
        The least score of all rows.
    """

    entities: int
    seen: int
    sizes: NDArray[np.int64]
    alike: Mapping[str, bool]
    held: Held | None
    labels: Keys
    least: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Met:
    """What workers found when the rows of each entity met.

    Parameters
    ----------
    told : sequence of Told
        What is told of each range of entities.
    blocks : sequence of references
        Scores, with the size of each row's entity in place of its label. If one row of each was drawn, those.
    highest : sequence of references
        The highest score of each entity.
    held : sequence of Held
        What is told of the rows that were drawn.
    """

    told: Sequence[Told]
    blocks: Sequence[Any]
    highest: Sequence[Any]
    held: Sequence[Held] = ()

    @property
    def entities(self) -> int:
        """How many entities there are."""
        return sum(own.entities for own in self.told)

    @property
    def seen(self) -> int:
        """How many of them trained the model."""
        return sum(own.seen for own in self.told)

    @property
    def labels(self) -> Labels:
        """The smallest labels, in order."""
        every = np.sort(np.concatenate([own.labels for own in self.told]))
        return every[:SAMPLE].view(np.int64)


class EntityScores(CountedAt[SharedFound]):
    """Scores of entities of which workers tell what they are asked.

    Parameters
    ----------
    met : Met
        What workers found when the rows of each entity met.
    name : str
        Under which name a block keeps these scores.
    held : sequence of Held
        What was told of the scores of all rows.
    """

    def __init__(self, met: Met, name: str, held: Sequence[Held]) -> None:
        self._met, self._name = met, name
        self.n = sum(own.n[name] for own in held)
        self.number = np.array([self.n])
        self._infinite = sum(int(own.infinite[name].sum()) for own in held)

    def at(self, levels: Levels) -> SharedFound:
        """Return the threshold of each level."""
        met, entities = self._met, self._met.entities
        least = min(own.least[self._name] for own in met.told)
        if all(own.alike[self._name] for own in met.told):
            highest = Spread(self._name, met.highest, [own.held for own in met.told if own.held is not None])
            ranks = np.array([[marginal_rank(level, entities) for level in levels.values]])
            return SharedFound(highest.smallest(ranks)[0], entities, True, int(highest.infinite().sum()), least)
        sizes = np.unique(np.concatenate([own.sizes for own in met.told]))
        sums = [level * Fraction(entities + 1) for level in levels.values]
        blocks = Blocks(met.blocks)
        found = replied(reached(sums, Inverses(sizes)), lambda question: blocks.asked(OfSizes(question, self._name)))
        return SharedFound(np.array([own.value for own in found]), entities, False, self._infinite, least)


@dataclass(frozen=True)
class OfSizes:
    """Asks of scores and the sizes of their entities what another question asks of scores and weights.

    Parameters
    ----------
    question : object
        The question, with ``answer`` and ``together``.
    name : str
        Under which name a block keeps the scores.
    """

    question: Any
    name: str

    def of_block(self, block: Mapping[str, Array]) -> Any:
        """Return the answer of a block."""
        return self.question.answer(block[self.name], block["size"])

    def together(self, answers: Sequence[Any]) -> Any:
        """Return several answers as one."""
        return self.question.together(answers)


@dataclass(frozen=True)
class Draw:
    """That one row of each entity is drawn.

    Parameters
    ----------
    seed : int
        The sum of the hashes of all rows.
    sizes : tuple of int
        How many rows each block has, in the order of the rows.
    groups : int
        How many groups there are, 0 for none.
    """

    seed: int
    sizes: tuple[int, ...]
    groups: int

    @property
    def firsts(self) -> list[int]:
        """The number of the first row of each block."""
        return [0, *np.cumsum(self.sizes).tolist()[:-1]]


def met(blocks: Sequence[Any], n: int, training: Labels | None, draw: Draw | None = None) -> Met:
    """Return what workers find when the rows of each entity meet.

    Parameters
    ----------
    blocks : sequence of references
        Scores and labels of rows.
    n : int
        How many rows there are.
    training : array of shape (m,) or None
        Labels of the entities that trained the model.
    draw : Draw, default None
        Draws one row of each entity. None gives all rows the sizes of their entities.
    """
    ranges = min(len(blocks), max(1, -(-n // ROWS)))
    firsts = [0] * len(blocks) if draw is None else draw.firsts
    shares = [list(zip(blocks[i::ranges], firsts[i::ranges], strict=True)) for i in range(ranges)]
    split, merge = task(_split, ranges + 1), task(_merge, ranges + 2)
    known = Shared((draw, None if training is None else np.sort(training.view(np.uint64))))
    ahead = AHEAD * workers()
    sent = [own[1:] for own in all_in_order((partial(split.remote, known, share, ranges) for share in shares), ahead)]
    parts = [[own[i] for own in sent] for i in range(ranges)]
    merged = list(all_in_order((partial(merge.remote, known, part) for part in parts), ahead))
    replies = [[own[2 + i] for own in merged] for i in range(ranges)]
    run = task(_sized if draw is None else _chosen, returns=2)
    made = [run.remote(known, share, reply) for share, reply in zip(shares, replies, strict=True)]
    held = [] if draw is None else [fetched(own) for own, _ in made]
    return Met([own[0] for own in merged], [own for _, own in made], [own[1] for own in merged], held)


def _names(block: Mapping[str, Array]) -> list[str]:
    return [name for name in block if name.startswith("score")]


def _records(block: Mapping[str, Array], first: int, draw: Draw | None) -> Records:
    label = block["entity"].view(np.uint64)
    out = {"label": label, "count": np.ones(len(label), dtype=np.int64)}
    if draw is not None:
        return {**out, "low": {DRAW: draws(draw.seed, first, len(label))}, "high": {}}
    own = {name: block[name] for name in _names(block)}
    return {**out, "low": own, "high": own}


def _added(records: Records) -> Records:
    """Return each entity once."""
    if not len(records["label"]):
        return records
    order = np.argsort(records["label"])
    label = records["label"][order]
    first = np.flatnonzero(_are_new(label))
    return {
        "label": label[first],
        "count": np.add.reduceat(records["count"][order], first),
        "low": {name: np.minimum.reduceat(own[order], first) for name, own in records["low"].items()},
        "high": {name: np.maximum.reduceat(own[order], first) for name, own in records["high"].items()},
    }


def _are_new(label: Keys) -> NDArray[np.bool_]:
    """Return where labels in order differ from the one before."""
    out: NDArray[np.bool_] = np.r_[True, label[1:] != label[:-1]]
    return out


def _together(several: Sequence[Records]) -> Records:
    first = several[0]
    return _added(
        {
            "label": np.concatenate([own["label"] for own in several]),
            "count": np.concatenate([own["count"] for own in several]),
            "low": {name: np.concatenate([own["low"][name] for own in several]) for name in first["low"]},
            "high": {name: np.concatenate([own["high"][name] for own in several]) for name in first["high"]},
        }
    )


def _split(known: Shared, share: Sequence[Any], ranges: int) -> tuple[Any, ...]:
    """Return the entities of a share of the rows, by ranges of their labels."""
    import ray

    draw, _ = known.get()
    own = _together([_records(ray.get(block), first, draw) for block, first in share])
    edges = np.array([i * TOP // ranges for i in range(1, ranges)], dtype=np.uint64)
    ends = [0, *np.searchsorted(own["label"], edges).tolist(), len(own["label"])]
    return (None, *(_rows_of(own, slice(*pair)) for pair in pairwise(ends)))


def _rows_of(records: Records, rows: slice) -> Records:
    ends = {side: {name: own[rows] for name, own in records[side].items()} for side in ("low", "high")}
    return {"label": records["label"][rows], "count": records["count"][rows], **ends}


def _merge(known: Shared, part: Sequence[Any]) -> tuple[Any, ...]:
    """Return what is told of a range, the highest scores, and to each share the sizes of its own, or the draws."""
    several = [fetched(own) for own in part]
    own, (draw, training) = _together(several), known.get()
    alike = {
        name: bool(np.isclose(own["low"][name], high, rtol=SAME, atol=0).all()) for name, high in own["high"].items()
    }
    told = Told(
        len(own["label"]),
        0 if training is None else int(np.isin(own["label"], training).sum()),
        np.unique(own["count"]),
        alike,
        None if draw is not None else Held.of(own["high"], 0),
        own["label"][:SAMPLE],
        {name: float(own["low"][name].min(initial=np.inf)) for name in own["high"]},
    )
    said = own["count"] if draw is None else own["low"][DRAW]
    replies = (said[np.searchsorted(own["label"], each["label"])] for each in several)
    return told, dict(own["high"]), *replies


def _sized(known: Shared, share: Sequence[Any], replies: Sequence[Any]) -> tuple[None, dict[str, Array]]:
    """Return the scores of a share of the rows, with the size of each row's entity."""
    whole = _whole(share, replies)
    whole["size"] = whole.pop(SAID).astype(np.float64)
    return None, {name: own for name, own in whole.items() if name == "size" or name.startswith("score")}


def _chosen(known: Shared, share: Sequence[Any], replies: Sequence[Any]) -> tuple[Held, dict[str, Array]]:
    """Return what is told of the rows of a share that are drawn, and what is kept of them."""
    import ray

    draw, _ = known.get()
    whole = _whole(share, replies)
    own = [draws(draw.seed, first, len(ray.get(block)["entity"])) for block, first in share]
    rows = whole.pop(SAID) == np.concatenate(own)
    out = {name: array[rows] for name, array in whole.items() if name not in ("entity", "y")}
    return Held.of(out, draw.groups), out


def _whole(share: Sequence[Any], replies: Sequence[Any]) -> dict[str, Array]:
    """Return the rows of a share as one block, with what was said of the entity of each."""
    import ray

    blocks = [ray.get(block) for block, _ in share]
    whole = {name: np.concatenate([own[name] for own in blocks]) for name in blocks[0]}
    label = whole["entity"].view(np.uint64)
    order = np.argsort(label)
    said = np.concatenate([fetched(own) for own in replies])  # in the order of labels, as ranges are
    whole[SAID] = np.empty(len(label), dtype=said.dtype)
    whole[SAID][order] = said[np.cumsum(_are_new(label[order])) - 1]
    return whole
