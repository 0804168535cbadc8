"""The contract of a method: which networks to train, and which rule turns what they predict into intervals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from guardband.bands.levels import Levels
from guardband.bands.pav_promise import PavRule
from guardband.bands.promise import DELTA
from guardband.calibration.calibrated import OnInsufficient
from guardband.calibration.cut import Cut, MarginalCut, PacCut
from guardband.calibration.pav import Average
from guardband.calibration.rule import Rule
from guardband.nn.heads import Head
from guardband.nn.loss import Point

Guarantee = Literal["marginal", "pac"] | Cut


@dataclass(frozen=True)
class Request:
    """What a user asks of a method: levels, guarantee, and the options of its rule and of its loss.

    An option that is None was not given. ``guarantee`` is a word, or a cut of the user's own.
    """

    levels: Levels = field(default_factory=Levels.of)
    guarantee: Guarantee = "marginal"
    delta: float | None = None
    joint: bool = False
    tau: float | None = None
    taus: Sequence[float] | None = None
    rule: PavRule | None = None
    average: Average | None = None
    on_insufficient: OnInsufficient = "inf"
    power: Literal[1, 2] = 1
    point: Point = "median"

    @classmethod
    def of(cls, confidence_level: Any = None, alpha: Any = None, **options: Any) -> Request:
        """Return the request for a level or levels, or for one minus them."""
        for name in ("delta", "tau"):
            if options.get(name) is not None:
                options[name] = float(options[name])
        return cls(Levels.of(confidence_level, alpha), **options)

    def __post_init__(self) -> None:
        for name, words in (
            ("guarantee", ("marginal", "pac")),
            ("rule", (None, *get_args(PavRule))),
            ("average", (None, *get_args(Average))),
            ("on_insufficient", get_args(OnInsufficient)),
        ):
            value = getattr(self, name)
            if value not in words and not (name == "guarantee" and isinstance(value, Cut)):
                listed = ", ".join(repr(word) for word in words if word is not None)
                other = " or a gb.Cut, such as PacCut()" if name == "guarantee" else ""
                raise ValueError(f"{name} must be one of {listed}{other}, found {value!r}.")
        if self.joint and self.guarantee != "pac":
            raise ValueError(f'joint=True must go with guarantee="pac", found guarantee={self.guarantee!r}.')
        for name in ("delta", "tau"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise ValueError(f"{name} must lie strictly between 0 and 1, found {value}.")
        if self.taus is not None:
            if not isinstance(self.taus, Iterable):
                raise ValueError(f"taus must be a sequence of levels, found {self.taus!r}.")
            if len(self.taus) == 0 or not all(0 < tau < 1 for tau in self.taus):
                raise ValueError(
                    f"taus must be levels strictly between 0 and 1, found {list(self.taus)} "
                    "(0, the whole line, is always the last resort)."
                )
            if len(set(self.taus)) < len(self.taus):
                raise ValueError(f"taus must differ, found {list(self.taus)}.")

    @property
    def delta_or_default(self) -> float:
        """How often the promise may fail: 0.1 unless given."""
        return DELTA if self.delta is None else self.delta

    @property
    def cut(self) -> Cut:
        """The cut that the guarantee stands for."""
        if isinstance(self.guarantee, Cut):
            return self.guarantee
        return PacCut(self.delta_or_default, joint=self.joint) if self.guarantee == "pac" else MarginalCut()

    def given(self) -> dict[str, Any]:
        """Return the options that ask for something, by name."""
        every = [(own.name, getattr(self, own.name), own.default) for own in fields(self) if own.name in OPTIONS]
        return {name: v for name, v, default in every if (v is not None if default is None else v != default)}


OPTIONS = frozenset({"guarantee", "delta", "joint", "tau", "taus", "rule", "average", "power", "point"})
"""What some methods use and others do not."""
CUTS = frozenset({"guarantee", "delta", "joint"})
"""The options of a method that ranks scores."""
LOSSES = frozenset({"power", "point"})
"""The options of a network that puts out lower bound, point and upper bound."""


@dataclass(frozen=True)
class NetworkSpec:
    """A network to train: its head, and its weight decay if the method sets that. Equal ones train once.

    Networks of the same ``copy`` start alike.
    """

    head: Head
    weight_decay: float | None = None
    copy: int = 0


class Method(ABC):
    """A way to get intervals: networks to train, and a rule for what they predict.

    ``options`` names those of ``OPTIONS`` that it uses; the others are refused.
    """

    name: str
    options: frozenset[str] = frozenset()

    @abstractmethod
    def networks(self, request: Request) -> tuple[NetworkSpec, ...]:
        """Return the networks to train, with heads of one kind, in the order that the rule expects."""

    @abstractmethod
    def rule(self, request: Request) -> Rule:
        """Return the rule for predictions whose candidates stand in the order of ``networks``."""

    def order(self, request: Request, brought: int) -> list[int]:
        """Return where the candidates that a user brings stand in the order that the rule expects."""
        expected = len(self.networks(request))
        if brought != expected:
            raise ValueError(f"{self.name} takes {expected} band(s), found {brought}.")
        return list(range(brought))

    def check_networks(self, request: Request) -> None:
        """Raise if the rule cannot use what the networks predict, or needs to know more of a row."""
        rule, heads = self.rule(request), [spec.head for spec in self.networks(request)]
        if len({type(head) for head in heads}) != 1:
            raise ValueError(f"The heads of {self.name} must be of one kind, found {heads}.")
        if not issubclass(heads[0].predicts, rule.takes):
            raise ValueError(f"{self.name} needs {rule.takes.what}, and its networks predict {heads[0].predicts.what}.")
        if rule.uses:
            (name, *_) = sorted(rule.uses)
            raise ValueError(
                f"{self.name} with this guarantee needs the {name} of every row, which only BandCalibrator takes: "
                f"BandCalibrator(...).fit(..., context=gb.Context({name}=...))."
            )

    def check(self, request: Request) -> None:
        """Raise if something is asked for that this method has no use for."""
        for name, value in request.given().items():
            if name in self.options:
                continue
            if name == "guarantee":
                raise ValueError(
                    f'method="{self.name}" has no guarantee. Remove guarantee={value!r}, or use method="conf-nn" or '
                    '"pav".'
                )
            raise ValueError(f'method="{self.name}" does not use {name}. Remove {name}={value!r}.')
        if request.delta is not None and request.guarantee != "pac" and "rule" not in self.options:
            asked = '"marginal"' if request.guarantee == "marginal" else repr(request.guarantee)
            raise ValueError(f'delta has no effect with guarantee={asked}. Remove it, or ask for guarantee="pac".')
