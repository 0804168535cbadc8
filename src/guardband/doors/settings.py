"""What a user asked of Door 1, checked and sorted: method, guarantee, network, training, response."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from guardband.bands.levels import Levels
from guardband.data.target import Target
from guardband.doors.choice import AUTO, SCORES
from guardband.doors.ensemble import FEWEST_EPOCHS, LARGEST_BATCH, Ensemble, nest_of, suited
from guardband.doors.learning import Architecture
from guardband.methods.method import Method, Wish
from guardband.methods.registry import method_named
from guardband.nn.heads import Nest
from guardband.training.precision import has_fast_bf16
from guardband.training.recipe import Recipe

FULLY_CONNECTED: dict[str, Any] = {
    "hidden": (200,),
    "activation": "relu",
    "dropout": 0.0,
    "learning_rate": 0.01,
    "batch_size": 256,
    "patience": 20,
}
NETWORKS: dict[str, dict[str, Any]] = {
    "tabular": {
        "hidden": (256, 256, 256),
        "activation": "silu",
        "dropout": 0.0,
        "ordering": "softplus",
        "epochs": "early",
        "learning_rate": 0.003,
        "weight_decay": 0.0,
    },
    "plain": FULLY_CONNECTED | {"ordering": "softplus", "weight_decay": 1e-3, "epochs": "early"},
    "paper": FULLY_CONNECTED | {"ordering": "relu", "weight_decay": 0.0, "epochs": "cv"},
}
"""What the arguments of each network are unless they are given; the one for tables suits some to the rows."""
AVERAGING = 2.0
"""Over how many epochs the parameters of the network for tables are averaged."""
COPIES = {"fast": 2, "default": 8, "best": 24}
FAST: dict[str, Any] = {"hidden": (128, 128), "dropout": 0.03, "learning_rate": 0.005}
FEW_ROWS = 4000
FOR_FEW_ROWS: dict[str, Any] = {"hidden": (128, 128, 128), "dropout": 0.03}
"""What is otherwise with fewer rows to train on."""


@dataclass(frozen=True)
class Settings:
    """The arguments of an ``IntervalRegressor``, each where it is needed."""

    method: Method
    wish: Wish
    architecture: Architecture
    recipe: Recipe
    target: Target
    device: torch.device
    ensemble: Ensemble
    batch_size: int | None
    patience: int | None
    chooses_score: bool
    for_few_rows: Mapping[str, Any]

    def architecture_for(self, n: int) -> Architecture:
        """Return the architecture for so many rows."""
        return replace(self.architecture, **self.for_few_rows) if n < FEW_ROWS else self.architecture

    def recipe_for(self, n: int) -> Recipe:
        """Return the recipe for so many rows."""
        return suited(self.recipe, n, self.batch_size, self.patience)

    @property
    def nest(self) -> Nest | None:
        """The head of the ensemble, if what is asked can be had from one."""
        return nest_of(self.method.networks(self.wish), self.architecture)

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Settings:
        """Return the settings; what cannot be is refused."""
        network = params["network"]
        default, given_decay = _defaults(network, params["preset"]), params["weight_decay"]
        suits = network == "tabular" and params["preset"] != "fast"
        for_few_rows = {name: value for name, value in FOR_FEW_ROWS.items() if suits and params[name] is None}
        params = {name: default.get(name) if value is None else value for name, value in params.items()}
        chooses_score = isinstance(params["method"], str) and params["method"] == AUTO
        method = method_named(SCORES[0] if chooses_score else params["method"])
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
        device = resolve_device(params["device"])
        if given_decay is not None and all(spec.weight_decay is not None for spec in method.networks(wish)):
            raise ValueError(
                f"{method.name} chooses its weight decay on D2: weight_decay must not be given, found {given_decay}."
            )
        settings = cls(
            method=method,
            wish=wish,
            architecture=Architecture(
                _widths(params["hidden"]),
                params["activation"],
                params["dropout"],
                params["ordering"],
                network if callable(network) else None,
                network == "tabular",
            ),
            recipe=Recipe(
                params["epochs"],
                params["learning_rate"],
                params["weight_decay"],
                LARGEST_BATCH if params["batch_size"] is None else params["batch_size"],
                params["max_epochs"],
                FEWEST_EPOCHS if params["patience"] is None else params["patience"],
                averaging=AVERAGING if network == "tabular" else 0.0,
                precision="bf16" if network == "tabular" and has_fast_bf16(device) else "float32",
            ),
            target=_target(params["target_transform"], params["y_min"], params["y_max"]),
            device=device,
            ensemble=_ensemble(params["preset"]),
            batch_size=params["batch_size"],
            patience=params["patience"],
            chooses_score=chooses_score,
            for_few_rows=for_few_rows,
        )
        if chooses_score and (settings.nest is None or settings.recipe.epochs != "early"):
            raise ValueError(
                'method="auto" chooses on the folds of network="tabular", which needs epochs="early", point="median", '
                f"power=1 and the softplus ordering: name a method, such as {SCORES[0]!r}."
            )
        return settings


def resolve_device(name: str) -> torch.device:
    """Return the device of that name, or for ``"auto"`` a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()  # a device such as "meta" makes tensors, and never a number
    except (RuntimeError, AssertionError, ImportError) as error:
        reason = str(error).split("\n")[0].split(". ")[0].rstrip(".")
        raise ValueError(f"device must be 'auto' or one that torch has here, found {name!r}: {reason}.") from error
    return device


def _ensemble(preset: Any) -> Ensemble:
    if isinstance(preset, str) and preset in COPIES:
        return Ensemble(COPIES[preset])
    if isinstance(preset, int | float) and not isinstance(preset, bool) and 0 < preset < math.inf:
        return Ensemble(COPIES["default"], float(preset))
    words = ", ".join(f'"{name}"' for name in COPIES)
    raise ValueError(f"preset must be {words} or a number of seconds, found {preset!r}.")


def _defaults(network: Any, preset: Any) -> dict[str, Any]:
    if callable(network) and not isinstance(network, torch.nn.Module):
        return NETWORKS["plain"]
    if not isinstance(network, str) or network not in NETWORKS:
        raise ValueError(
            f"network must be one of {', '.join(NETWORKS)}, or a function of the number of columns that builds a "
            f"module, found {network!r}."
        )
    return NETWORKS[network] | (FAST if network == "tabular" and preset == "fast" else {})


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
