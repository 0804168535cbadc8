"""Scores that stay where they were computed, in Ray's object store: workers answer questions about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.calibration.counted import Counted, Counts
from guardband.calibration.summary import Array, Arrays
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
    countable : function
        Returns a block as it is counted.
    """

    def __init__(
        self, name: str, blocks: Sequence[Any], held: Sequence[Held], countable: Callable[[Arrays], Arrays]
    ) -> None:
        self._name, self._countable = name, countable
        self.n = sum(own.n[name] for own in held)
        self.number = np.sum([own.number[name] for own in held], axis=0)
        self._infinite: Counts = np.sum([own.infinite[name] for own in held], axis=0)
        self._shares = _shares(blocks)
        self._answer = task(_answer)

    def infinite(self) -> Counts:
        """Return how many scores of each group are infinite, ``(G,)``."""
        return self._infinite

    def smallest(self, ranks: Counts) -> Array:
        """Return the k-th smallest scores of each group, ``(G, L) -> (G, L)``."""
        return order_statistics(np.asarray(ranks), self.number, self._ask)

    def _ask(self, question: Digits) -> NDArray[np.generic]:
        asked = Shared((question, self._countable))
        waiting = [self._answer.remote(asked, self._name, share) for share in self._shares]
        return question.together([fetched(own) for own in waiting])


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


def _shares(blocks: Sequence[Any]) -> list[list[Any]]:
    """Return the blocks in as many shares as there are workers: each sends one answer to a question."""
    count = min(workers(), len(blocks))
    return [list(blocks[i::count]) for i in range(count)]


def _answer(asked: Shared, name: str, share: Sequence[Any]) -> NDArray[np.generic]:
    """Return what a share of the blocks answers: of each block only one is in memory at a time."""
    import ray

    question: Digits
    question, countable = asked.get()
    out: NDArray[np.generic] | None = None
    for reference in share:
        block = countable(ray.get(reference))
        own = question.answer(block[name], codes_in(block))
        out = own if out is None else question.together([out, own])
    assert out is not None
    return out
