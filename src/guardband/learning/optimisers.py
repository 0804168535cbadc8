"""Muon or Adam: copies that Muon trains may fit noise from the first epochs on, where Adam's do better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from guardband.learning.architecture import Architecture
from guardband.learning.effort import Effort
from guardband.learning.learned import Learned
from guardband.learning.options import FitOptions
from guardband.training.recipe import Recipe

AT_ONCE = 3
"""Copies that do best after so few epochs, or fewer, may fit noise. Both ways to train end soon on such rows."""

Way = tuple[Architecture, Recipe, Effort]
"""A network, and how it is trained."""
Learn = Callable[[Mapping[int, Way]], Mapping[int, Learned]]
"""Learns from some of several sets of training rows, from each in its way."""


def learn_by_better(
    learn: Learn, options: FitOptions, n: int, long_tails: Sequence[bool], *, limited: bool
) -> list[Learned]:
    """Return what ``learn`` learns from each set of n rows, by Muon if it suits; by Adam too if copies stop at once.

    Then the lower loss on rows that did not train a copy decides. With a time limit (``limited``) there is no second
    try. Each set decides for itself: of the folds of a table, every other one holds rows that this one must not see.
    ``long_tails`` says of which sets the target has one.
    """
    muon, adam = (options.training_for(n, muon=own) for own in (True, False))
    learned = dict(learn({i: adam if has_one else muon for i, has_one in enumerate(long_tails)}))
    may_be_better = muon[1].muon and not limited
    again = [i for i, has_one in enumerate(long_tails) if may_be_better and not has_one and _stops_at_once(learned[i])]
    for i, other in (learn(dict.fromkeys(again, adam)) if again else {}).items():
        learned[i] = min(learned[i], other, key=_loss)
    return [learned[i] for i in range(len(long_tails))]


def _stops_at_once(learned: Learned) -> bool:
    return learned.left_out is not None and float(np.median(learned.epochs)) <= AT_ONCE


def _loss(learned: Learned) -> float:
    return float(np.mean(learned.losses))
