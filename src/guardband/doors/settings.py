"""What a user asked of Door 1, checked and sorted: method, guarantee, network, training, response."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from guardband.bands.levels import Levels
from guardband.data.target import Target
from guardband.doors.learning import Architecture
from guardband.methods.method import Method, Wish
from guardband.methods.registry import method_named
from guardband.training.recipe import Recipe

NETWORKS: dict[str, dict[str, Any]] = {
    "tabular": {"ordering": "softplus", "weight_decay": 1e-3, "epochs": "early"},
    "paper": {"ordering": "relu", "weight_decay": 0.0, "epochs": "cv"},
}
"""What ``ordering``, ``weight_decay`` and ``epochs`` are for each network unless they are given."""


@dataclass(frozen=True)
class Settings:
    """The arguments of an ``IntervalRegressor``, each where it is needed."""

    method: Method
    wish: Wish
    architecture: Architecture
    recipe: Recipe
    target: Target
    device: torch.device

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Settings:
        """Return the settings; what cannot be is refused."""
        network = params["network"]
        default, given_decay = _defaults(network), params["weight_decay"]
        params = {name: default.get(name) if value is None else value for name, value in params.items()}
        method = method_named(params["method"])
        wish = Wish(
            levels=Levels.of(params["confidence_level"], params["alpha"]),
            guarantee=params["guarantee"],
            delta=float(params["delta"]),
            joint=params["joint"],
            tau=None if params["tau"] is None else float(params["tau"]),
            taus=params["taus"],
            rule=params["rule"],
            average=params["average"],
            on_insufficient=params["on_insufficient"],
            power=params["power"],
            point=params["point"],
        )
        method.check(wish)
        if given_decay is not None and all(spec.weight_decay is not None for spec in method.networks(wish)):
            raise ValueError(
                f"{method.name} chooses its weight decay on D2: weight_decay must not be given, found {given_decay}."
            )
        return cls(
            method=method,
            wish=wish,
            architecture=Architecture(
                _widths(params["hidden"]),
                params["activation"],
                params["dropout"],
                params["ordering"],
                network if callable(network) else None,
            ),
            recipe=Recipe(
                params["epochs"],
                params["learning_rate"],
                params["weight_decay"],
                params["batch_size"],
                params["max_epochs"],
                params["patience"],
            ),
            target=_target(params["target_transform"], params["y_min"], params["y_max"]),
            device=resolve_device(params["device"]),
        )


def resolve_device(name: str) -> torch.device:
    """Return the device of that name, or for ``"auto"`` a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device must be 'auto' or one that torch has here, found {name!r}: {error}") from error
    return device


def _defaults(network: Any) -> dict[str, Any]:
    if callable(network) and not isinstance(network, torch.nn.Module):
        return NETWORKS["tabular"]
    if not isinstance(network, str) or network not in NETWORKS:
        raise ValueError(
            f"network must be one of {', '.join(NETWORKS)}, or a function of the number of columns that builds a "
            f"module, found {network!r}."
        )
    return NETWORKS[network]


def _widths(hidden: Any) -> tuple[int, ...]:
    if not isinstance(hidden, Iterable):
        raise ValueError(f"hidden must be a sequence of widths, such as (200,), found {hidden!r}.")
    return tuple(hidden)


def _target(transform: Any, y_min: Any, y_max: Any) -> Target:
    if transform not in (None, "log"):
        raise ValueError(f"target_transform must be None or 'log', found {transform!r}.")
    low, high = (None if bound is None else float(bound) for bound in (y_min, y_max))
    if not all(math.isfinite(bound) for bound in (low, high) if bound is not None):
        raise ValueError(f"y_min and y_max must be finite or None, found {low} and {high}.")
    if low is not None and high is not None and not low < high:
        raise ValueError(f"y_min must be below y_max, found {low} and {high}.")
    return Target(transform, low, high)
