"""Muon or Adam: copies that Muon trains may fit noise from the first epochs on, where Adam's do better."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from guardband.learning.architecture import Architecture
from guardband.learning.effort import Effort
from guardband.learning.learned import Learned
from guardband.learning.options import FitOptions
from guardband.training.recipe import Recipe

AT_ONCE = 3
"""Copies that do best after so few epochs, or fewer, may fit noise. Both ways to train end soon on such rows."""

Learn = Callable[[Architecture, Recipe, Effort], list[Learned]]


def learn_by_better(learn: Learn, options: FitOptions, n: int, *, long_tail: bool, limited: bool) -> list[Learned]:
    """Return what ``learn`` learns from n rows, by Muon if it suits; by Adam too if copies stop at once.

    Then the lower loss on rows that did not train a copy decides. With a time limit (``limited``) there is no second
    try.
    """
    first = options.training_for(n, muon=not long_tail)
    learned = learn(*first)
    if limited or not first[1].muon or not _stops_at_once(learned):
        return learned
    return min(learned, learn(*options.training_for(n, muon=False)), key=_loss)


def _stops_at_once(learned: Sequence[Learned]) -> bool:
    epochs = [count for own in learned for count in own.epochs]
    return all(own.left_out is not None for own in learned) and float(np.median(epochs)) <= AT_ONCE


def _loss(learned: Sequence[Learned]) -> float:
    return float(np.mean([loss for own in learned for loss in own.losses]))
