"""What is each network's own in a fit of several: its loss, its decay, the limit of its gradient and its seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from guardband.methods.method import NetworkSpec
from guardband.nn.mixed import stack_losses
from guardband.training.recipe import Recipe

SEEDS_OF_A_COPY = 1000


def loss_of_each(specs: Sequence[NetworkSpec], device: torch.device) -> Any:
    """Return the losses of networks as one."""
    return stack_losses([spec.head.loss().to(device) for spec in specs], device)


def recipe_of_each(recipe: Recipe, specs: Sequence[NetworkSpec]) -> Recipe:
    """Return the recipe with each network's own weight decay and limit of the gradient."""
    decays: list[Any] = [recipe.weight_decay if spec.weight_decay is None else spec.weight_decay for spec in specs]
    limits: list[Any] = [spec.head.clip if recipe.clip is None else recipe.clip for spec in specs]
    return replace(recipe, weight_decay=decays, clip=limits)


def seed_of(seed: int, copy: int, spec: NetworkSpec, attempt: int = 0) -> int:
    """Return the seed of a copy of a network."""
    return seed + attempt + SEEDS_OF_A_COPY * (copy + spec.copy)
