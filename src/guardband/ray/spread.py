"""Scores that stay where they were computed, in Ray's object store: workers answer questions about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.calibration.counted import Counted, Counts
from guardband.calibration.rejection_cut import kept_in_part
from guardband.calibration.summary import Array, Arrays
from guardband.calibration.weighted_search import AskedWeights, WeightTotals
from guardband.data.order_statistics import Digits, order_statistics
from guardband.ray.cluster import Shared, fetched, task, workers

GROUP = "group"


@dataclass(frozen=True)
class Held:
    """What a worker tells of the scores that it computed; they themselves stay in the object store.

    Parameters
    ----------
    n : dict of int
        The number of rows, by the name of the scores.
    number : dict of arrays of shape (G,)
        The number of rows of each group, by the name of the scores.
    infinite : dict of arrays of shape (G,)
        How many of these scores are infinite.
    """

    n: Mapping[str, int]
    number: Mapping[str, Counts]
    infinite: Mapping[str, Counts]

    @classmethod
    def of(cls, block: Mapping[str, Array], groups: int) -> Held:
        """Return what is told of one block of scores.

        Parameters
        ----------
        block : dict of arrays
            What a rule keeps of each row, as it is counted: scores, and the groups if there are any.
        groups : int
            How many groups there are, 0 for none.
        """
        names = [name for name in block if name.startswith("score")]
        codes = codes_in(block)
        n = {name: len(block[name]) for name in names}
        every = {name: _counts(codes, np.ones(n[name], dtype=bool), groups) for name in names}
        infinite = {name: _counts(codes, np.isinf(block[name]), groups) for name in names}
        return cls(n, every, infinite)


def as_it_is(block: Arrays) -> Arrays:
    """Return a block whose scores are counted as they are kept."""
    return block


class Spread(Counted):
    """Scores in blocks that lie apart.

    Parameters
    ----------
    name : str
        Under which name a block keeps these scores.
    blocks : sequence of references
        The blocks.
    held : sequence of Held
        What their workers told of them.
    countable : function, default as_it_is
        Returns a block as it is counted.
    """

    def __init__(
        self,
        name: str,
        blocks: Sequence[Any],
        held: Sequence[Held],
        countable: Callable[[Arrays], Arrays] = as_it_is,
    ) -> None:
        self._name, self._countable = name, countable
        self.n = sum(own.n[name] for own in held)
        self.number = np.sum([own.number[name] for own in held], axis=0)
        self._infinite: Counts = np.sum([own.infinite[name] for own in held], axis=0)
        self._blocks = Blocks(blocks)

    def infinite(self) -> Counts:
        """Return how many scores of each group are infinite, ``(G,)``."""
        return self._infinite

    def smallest(self, ranks: Counts) -> Array:
        """Return the k-th smallest scores of each group, ``(G, L) -> (G, L)``."""
        return order_statistics(np.asarray(ranks), self.number, self._ask)

    def _ask(self, question: Digits) -> Any:
        return self._blocks.asked(OfScores(question, self._name, self._countable))


@dataclass(frozen=True)
class OfScores:
    """Asks of scores what ``digits`` asks.

    Parameters
    ----------
    digits : Digits
        The question.
    name : str
        Under which name a block keeps the scores.
    countable : function, default as_it_is
        Returns a block as it is counted.
    """

    digits: Digits
    name: str
    countable: Callable[[Arrays], Arrays] = as_it_is

    def of_block(self, block: Arrays) -> Any:
        """Return the answer of a block."""
        block = self.countable(block)
        return self.digits.answer(block[self.name], codes_in(block))

    def together(self, answers: Sequence[Any]) -> Any:
        """Return several answers as one."""
        return self.digits.together(answers)


@dataclass(frozen=True)
class OfWeights:
    """Asks of scores and weights what another question asks.

    Parameters
    ----------
    question : object
        The question, with ``answer`` and ``together``.
    """

    question: Any

    def of_block(self, block: Mapping[str, Array]) -> Any:
        """Return the answer of a block."""
        return self.question.answer(block["score"], block["weight"])

    def together(self, answers: Sequence[Any]) -> Any:
        """Return several answers as one."""
        return self.question.together(answers)


class Blocks:
    """Blocks that lie apart, in as many shares as there are workers: each sends one answer to a question.

    Parameters
    ----------
    blocks : sequence of references
        The blocks.
    """

    def __init__(self, blocks: Sequence[Any]) -> None:
        count = min(workers(), len(blocks))
        self._shares = [list(blocks[i::count]) for i in range(count)]
        self._answer = task(_answer)

    def asked(self, question: Any) -> Any:
        """Return the answer of all blocks.

        Parameters
        ----------
        question : object
            The question, with ``of_block`` and ``together``.
        """
        asked = Shared(question)
        waiting = [self._answer.remote(asked, share) for share in self._shares]
        return question.together([fetched(own) for own in waiting])


def with_weights(blocks: Sequence[Any], totals: WeightTotals) -> AskedWeights:
    """Return scores of blocks that count by their weights.

    Parameters
    ----------
    blocks : sequence of references
        The blocks.
    totals : WeightTotals
        What their workers told of them.
    """
    own = Blocks(blocks)
    return AskedWeights(totals, lambda question: own.asked(OfWeights(question)))


def kept(
    blocks: Sequence[Any], sizes: Sequence[int], seed: int, max_weight: float, groups: int
) -> tuple[list[Any], list[Held]]:
    """Return blocks of the rows that their weights keep, and what workers tell of them.

    Parameters
    ----------
    blocks : sequence of references
        Blocks of rows with weights, in order.
    sizes : sequence of int
        How many rows each has.
    seed : int
        The sum of the hashes of all blocks.
    max_weight : float
        The weight of a row that is certainly kept.
    groups : int
        How many groups there are, 0 for none.
    """
    shared, run = Shared((seed, max_weight, groups)), task(_kept, returns=2)
    firsts = np.cumsum([0, *sizes]).tolist()
    begun = [run.remote(shared, block, first) for block, first in zip(blocks, firsts, strict=False)]
    return [block for _, block in begun], [fetched(held) for held, _ in begun]


def _kept(shared: Shared, block: Mapping[str, Array], first: int) -> tuple[Held, dict[str, Array]]:
    seed, max_weight, groups = shared.get()
    rows = kept_in_part(block["score"], block["weight"], max_weight, seed, first)
    own = {name: array[rows] for name, array in block.items() if name != "weight"}
    return Held.of(own, groups), own


def codes_in(block: Mapping[str, Array]) -> Any:
    """Return the groups of the rows of a block, ``(n, J)``, None if there are none.

    Parameters
    ----------
    block : dict of arrays
        What a rule keeps of each row.
    """
    codes = block.get(GROUP)
    return codes if codes is None or codes.ndim == 2 else codes[:, None]


def _counts(codes: Any, chosen: NDArray[np.bool_], groups: int) -> Counts:
    """Return how many chosen rows each group has; without groups all rows are one."""
    if codes is None:
        return np.array([chosen.sum()])
    own = codes[chosen]
    return np.bincount(own[own >= 0], minlength=groups)


def _answer(asked: Shared, share: Sequence[Any]) -> Any:
    """Return what a share of the blocks answers: of each block only one is in memory at a time."""
    import ray

    question, out = asked.get(), None
    for reference in share:
        own = question.of_block(ray.get(reference))
        out = own if out is None else question.together([out, own])
    return out
