"""What a user asked of an ``IntervalRegressor``, checked and sorted: method, network, training, target."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from numbers import Integral
from typing import Any

import torch

from guardband.calibration.cross import FEWEST_FOLDS, check_kind
from guardband.data.several_targets import SeveralTargets
from guardband.data.target import Target
from guardband.data.transforms import NAMED
from guardband.learning.architecture import Architecture
from guardband.learning.choice import AUTO, SCORES
from guardband.learning.effort import LONGEST_EPOCH, Effort
from guardband.learning.placed import with_levels
from guardband.learning.presets import FEW_ROWS, WITH_ADAM, presets_for
from guardband.learning.several import Targets, check_targets, refuse_options
from guardband.methods.method import Method, NetworkSpec, Request
from guardband.methods.registry import method_named
from guardband.nn.each_target import EachTarget
from guardband.nn.heads import NestedTriples, Triple
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
        "activation": "silu",
        "ordering": "softplus",
        "epochs": "early",
        "weight_decay": 0.0,
    },
    "plain": FULLY_CONNECTED | {"ordering": "softplus", "weight_decay": 1e-3, "epochs": "early"},
    "paper": FULLY_CONNECTED | {"ordering": "relu", "weight_decay": 0.0, "epochs": "cv"},
}
"""What the arguments of each network are unless they are given; presets have more for the one for tables."""
AVERAGING = 2.0
"""Over how many epochs the parameters of the network for tables are averaged."""
LARGEST_BATCH, SMALLEST_BATCH, BATCHES = 256, 32, 32
FEWEST_STEPS, MOST_STEPS = 200, 4000
FEWEST_EPOCHS, FEWEST_WITH_MUON = 8, 4
"""A copy goes on for so many epochs beyond its best one, but for no fewer and, if that is more than two epochs, no more
than so many steps."""
OF_TARGET = ("target_transform", "y_min", "y_max", "integer")
"""The arguments that say what a target is. With several targets each may have its own."""


@dataclass(frozen=True)
class FitOptions:
    """The arguments of an ``IntervalRegressor``, each where it is needed."""

    method: Method
    request: Request
    architecture: Architecture
    recipe: Recipe
    target: Target
    device: torch.device
    effort: Effort
    batch_size: int | None
    patience: int | None
    chooses_score: bool
    preset: str | None
    """The preset of the network for tables, None for others."""
    given: frozenset[str]
    """What of the preset arguments replace."""
    suits_muon: bool
    """Whether Muon may train the networks, if there are rows enough."""
    distribution: bool = False
    distills: bool = False
    targets: Targets | None = None
    given_target: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()
    """The names of the targets, once they are known, if there are several."""

    def training_for(self, n: int, *, muon: bool = True) -> tuple[Architecture, Recipe, Effort]:
        """Return the network that suits n rows, and how it is trained: by Muon where it can, if it may.

        Batches and patience follow from the rows if they are not given.
        """
        own: dict[str, Any] = {}
        if self.preset is not None:
            preset = asdict(presets_for(n, self.suits_muon and muon)[self.preset])
            own = {name: value for name, value in preset.items() if name not in self.given}
        shape = {name: own[name] for name in ("hidden", "dropout") if name in own}
        steps = {name: own[name] for name in ("learning_rate", "muon") if name in own}
        # the folds of a table share its copies, whatever the rows are
        copies = own.get("copies", self.effort.copies) if self.effort.folds == 1 else self.effort.copies
        recipe = replace(self.recipe, batch_size=self._batch_size(n), **steps)
        patience = self._patience(n // recipe.batch_size, FEWEST_WITH_MUON if recipe.muon else FEWEST_EPOCHS)
        return (
            replace(self.architecture, **shape),
            replace(recipe, patience=patience),
            replace(self.effort, copies=copies),
        )

    def possible_copies(self) -> set[int]:
        """Return how many copies there may be, whatever the rows are; once distilled, one for each turn."""
        if self.distills:
            return {1, 2}
        ways = product((1, FEW_ROWS), (False, True))
        return {self.training_for(n, muon=muon)[2].copies for n, muon in ways}

    def _batch_size(self, n: int) -> int:
        suited = min(LARGEST_BATCH, max(SMALLEST_BATCH, 2 ** round(math.log2(n / BATCHES))))
        return suited if self.batch_size is None else self.batch_size

    def _patience(self, steps: int, fewest: int) -> int:
        steps = min(LONGEST_EPOCH, max(1, steps))
        suited = max(2, min(fewest, math.ceil(MOST_STEPS / steps)), math.ceil(FEWEST_STEPS / steps))
        return suited if self.patience is None else self.patience

    def for_targets(self, names: Sequence[str]) -> FitOptions:
        """Return the options for several targets of these names; what was given for each of others is refused."""
        each = [_target(*own) for own in zip(*(_of_each(own, names) for own in self.given_target), strict=True)]
        quantiles = self.target.quantiles
        targets = SeveralTargets(names=tuple(names), each=tuple(replace(own, quantiles=quantiles) for own in each))
        return replace(self, target=targets, names=tuple(names))

    @property
    def specs(self) -> tuple[NetworkSpec, ...]:
        """The networks to train; of several targets, one network has the outputs of each."""
        if not self.names:
            return self._specs
        return tuple(replace(spec, head=EachTarget(spec.head, len(self.names))) for spec in self._specs)

    @property
    def _specs(self) -> tuple[NetworkSpec, ...]:
        """The networks of one target: one for all candidates, if they are triples that can be nested in one."""
        specs = self.method.networks(self.request)
        alike = [spec.head for spec in specs if spec.weight_decay is None and spec.copy == 0]
        plain = [head for head in alike if type(head) is Triple and head.power == 1 and head.point == "median"]
        nests = self.architecture.tabular and self.architecture.ordering == "softplus" and len(plain) == len(specs)
        if not nests:
            return specs
        if any(head.below is not None for head in plain):  # tails that differ come alone
            if len(plain) > 1:
                return specs
            nested = NestedTriples.of_tails(*plain[0].tails)
        else:
            nested = NestedTriples.of([head.tau for head in plain])
        return (NetworkSpec(with_levels(nested) if self.distribution else nested),)

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> FitOptions:
        """Return the options; what cannot be is refused."""
        network = params["network"]
        idle = [name for name in ("hidden", "activation", "dropout", "ordering") if params[name] is not None]
        if idle and callable(network) and not isinstance(network, torch.nn.Module):
            raise ValueError(f"A network of your own has its own shape. Remove {idle[0]}={params[idle[0]]!r}.")
        if params["patience"] is not None and isinstance(params["epochs"], int):
            raise ValueError('patience works with epochs="early" or "cv". Remove it, or the number of epochs.')
        check_kind(params["calibration"])
        default, given_decay = _defaults(network, params["preset"]), params["weight_decay"]
        preset = _preset_name(params["preset"]) if network == "tabular" else None
        given = frozenset(name for name in ("hidden", "dropout", "learning_rate") if params[name] is not None)
        params = {name: default.get(name) if value is None else value for name, value in params.items()}
        chooses_score = isinstance(params["method"], str) and params["method"] == AUTO
        method = method_named(SCORES[0] if chooses_score else params["method"])
        names = (
            "confidence_level",
            "alpha",
            "guarantee",
            "delta",
            "joint",
            "side",
            "tails",
            "risk",
            "tau",
            "taus",
            "rule",
            "average",
        )
        more = ("on_insufficient", "power", "point")
        request = Request.of(**{name: params[name] for name in (*names, *more)})
        method.check(request)
        method.check_networks(request)
        if request.risk is not None and params["groups"] is not None:
            method.rule(request).for_groups(())  # which says that a risk has none, before anything is trained
        check_targets(params.get("targets"), request, method)
        refuse_options(params)
        device = resolve_device(params["device"])
        if given_decay is not None and all(spec.weight_decay is not None for spec in method.networks(request)):
            raise ValueError(
                f"{method.name} chooses its weight decay on the calibration rows. Remove weight_decay={given_decay}."
            )
        options = cls(
            method=method,
            request=request,
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
            target=Target(None, None, None)
            if params.get("targets")
            else _target(*(params[name] for name in OF_TARGET)),
            device=device,
            effort=_effort(params["preset"], network, params["calibration"] != "split", params["folds"]),
            batch_size=params["batch_size"],
            patience=params["patience"],
            chooses_score=chooses_score,
            preset=preset,
            given=given,
            suits_muon=False,
            distribution=bool(params.get("distribution", False)),
            distills=bool(params.get("distill", False)),
            targets=params.get("targets"),
            given_target=tuple(params[name] for name in OF_TARGET),
        )
        nests = isinstance(options.specs[0].head, NestedTriples)
        for name in ("distribution", "distill"):
            if params.get(name, False) not in (True, False):
                raise ValueError(f"{name} must be True or False, found {params[name]!r}.")
        if options.distribution and params.get("groups") is not None:
            raise ValueError(
                "distribution=True has one promise for all rows, and groups ask for one each. Remove one of them."
            )
        if options.distribution and not nests:
            raise ValueError(
                'distribution=True needs network="tabular", ordering="softplus", power=1, point="median", and a method '
                'that learns quantiles, such as "conf-nn". Change these arguments, or remove distribution=True.'
            )
        if options.distills:
            _refuse_to_distill(params, nests)
        # by cross-validation no rows are left that did not see a choice: the first score stays
        chooses_score &= nests and options.recipe.epochs == "early" and params["calibration"] == "split"
        return replace(
            options,
            target=replace(options.target, quantiles=nests),
            chooses_score=chooses_score,
            suits_muon=nests and not any(options.recipe.decays()),
        )


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


def _refuse_to_distill(params: Mapping[str, Any], nests: bool) -> None:
    """Raise if the copies of what is asked for cannot become one network."""
    if params["calibration"] != "split":
        raise ValueError(
            f"distill=True needs calibration rows that are held out, and calibration={params['calibration']!r} holds "
            "out none. Remove one of them."
        )
    if not isinstance(params["preset"], str):
        raise ValueError(
            f"distill=True takes time of its own, which preset={params['preset']!r} does not leave. Remove one of them."
        )
    if not nests:
        raise ValueError(
            'distill=True needs network="tabular", ordering="softplus", power=1, point="median", and a method that '
            'learns quantiles, such as "conf-nn". Change these arguments, or remove distill=True.'
        )


def _preset_name(preset: Any) -> str:
    """Return the preset's name; a time limit has the copies of the default."""
    seconds = isinstance(preset, int | float) and not isinstance(preset, bool) and 0 < preset < math.inf
    if not seconds and not (isinstance(preset, str) and preset in WITH_ADAM):
        words = ", ".join(f'"{name}"' for name in WITH_ADAM)
        raise ValueError(f"preset must be {words} or a number of seconds, found {preset!r}.")
    return "default" if seconds else preset


def _effort(preset: Any, network: Any, is_crossed: bool, folds: Any) -> Effort:
    """Return how much to train: a preset is for the network for tables, the others are trained once."""
    if isinstance(folds, bool) or not isinstance(folds, Integral) or folds < FEWEST_FOLDS:
        raise ValueError(f"folds must be a whole number of at least {FEWEST_FOLDS}, found {folds!r}.")
    name = _preset_name(preset)
    if network != "tabular":
        if preset != "default":
            raise ValueError(f'preset works with network="tabular" only. Remove preset={preset!r}.')
        return Effort()
    effort = Effort(WITH_ADAM[name].copies, math.inf if name == preset else float(preset))
    return effort.crossed(int(folds)) if is_crossed else effort


def _defaults(network: Any, preset: Any) -> dict[str, Any]:
    if callable(network) and not isinstance(network, torch.nn.Module):
        return NETWORKS["plain"]
    if not isinstance(network, str) or network not in NETWORKS:
        raise ValueError(
            f"network must be one of {', '.join(NETWORKS)}, or a function of the number of columns that builds a "
            f"module, found {network!r}."
        )
    if network != "tabular":
        return NETWORKS[network]
    own = WITH_ADAM[_preset_name(preset)]
    return NETWORKS[network] | {name: getattr(own, name) for name in ("hidden", "dropout", "learning_rate")}


def _widths(hidden: Any) -> tuple[int, ...]:
    if not isinstance(hidden, Iterable):
        raise ValueError(f"hidden must be a sequence of widths, such as (200,), found {hidden!r}.")
    return tuple(hidden)


def _of_each(value: Any, names: Sequence[str]) -> list[Any]:
    """Return an argument for each of several targets: one for all of them, or a sequence with one for each."""
    is_pair = isinstance(value, tuple | list) and len(value) == 2 and all(map(callable, value))
    if is_pair or isinstance(value, str) or not isinstance(value, Iterable):
        return [value] * len(names)
    own = list(value)
    if len(own) != len(names):
        raise ValueError(
            f"What is given for each target must have {len(names)} entries, one for each of {', '.join(names)}, found "
            f"{own!r}. Give one value for all targets, or one for each."
        )
    return own


def _target(transform: Any, y_min: Any, y_max: Any, integer: Any) -> Target:
    functions = isinstance(transform, tuple | list) and len(transform) == 2 and all(map(callable, transform))
    if functions:
        transform = tuple(transform)
    elif transform is not None and not (isinstance(transform, str) and transform in NAMED):
        names = ", ".join(f'"{name}"' for name in NAMED)
        raise ValueError(
            f"target_transform must be None, {names}, or a pair of functions (forward, inverse), found {transform!r}."
        )
    low, high = (None if bound is None else float(bound) for bound in (y_min, y_max))
    if not all(math.isfinite(bound) for bound in (low, high) if bound is not None):
        raise ValueError(f"y_min and y_max must be finite or None, found {low} and {high}.")
    if low is not None and high is not None and not low < high:
        raise ValueError(f"y_min must be below y_max, found {low} and {high}.")
    if integer not in (None, True, False):
        raise ValueError(f"integer must be True, False, or None to look at the target, found {integer!r}.")
    if integer and low is not None and high is not None and math.ceil(low) > math.floor(high):
        raise ValueError(f"There is no whole number between y_min = {low} and y_max = {high}. Use integer=False.")
    return Target(transform, low, high, integer=None if integer is None else bool(integer))
