"""The contract of a method: which networks to train, and which rule to apply to their bands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from guardband.bands.levels import Levels
from guardband.calibration.conformal import Guarantee
from guardband.calibration.pav import Average, PavRule
from guardband.calibration.rule import OnInsufficient, Rule
from guardband.nn.heads import Head
from guardband.nn.loss import Point


@dataclass(frozen=True)
class Wish:
    """What a user asks of a method: levels, guarantee, and the settings of its rule and of its loss."""

    levels: Levels = field(default_factory=Levels.of)
    guarantee: Guarantee = "marginal"
    delta: float = 0.1
    joint: bool = False
    tau: float | None = None
    taus: Sequence[float] | None = None
    rule: PavRule = "fixed-sequence"
    average: Average | None = None
    on_insufficient: OnInsufficient = "inf"
    power: Literal[1, 2] = 1
    point: Point = "median"

    def __post_init__(self) -> None:
        for name, words in (
            ("guarantee", get_args(Guarantee)),
            ("rule", get_args(PavRule)),
            ("average", (None, *get_args(Average))),
            ("on_insufficient", get_args(OnInsufficient)),
        ):
            if getattr(self, name) not in words:
                listed = ", ".join(repr(word) for word in words)
                raise ValueError(f"{name} must be one of {listed}, found {getattr(self, name)!r}.")
        if self.joint and self.guarantee != "pac":
            raise ValueError(f'joint=True must go with guarantee="pac", found guarantee={self.guarantee!r}.')
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1, found {self.delta}.")
        if self.tau is not None and not 0 < self.tau < 1:
            raise ValueError(f"tau must lie strictly between 0 and 1, found {self.tau}.")
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
    def shares(self) -> int:
        """Among how many levels delta is shared."""
        return len(self.levels) if self.joint else 1


SETTINGS = {"tau": None, "taus": None, "average": None, "power": 1, "point": "median"}
"""What some methods have a use for and others have not, with the value that asks for nothing."""


@dataclass(frozen=True)
class NetworkSpec:
    """A network to train: its head, and its weight decay if the method sets that. Equal ones train once.

    Networks of the same ``copy`` start alike.
    """

    head: Head
    weight_decay: float | None = None
    copy: int = 0


class Method(ABC):
    """A way to get intervals: networks to train, and a rule that turns their bands into intervals.

    ``settings`` names those of ``SETTINGS`` that it has a use for, and ``promises`` tells whether its certificate
    promises anything.
    """

    name: str
    settings: frozenset[str] = frozenset(SETTINGS)
    promises: bool = True

    @abstractmethod
    def networks(self, wish: Wish) -> tuple[NetworkSpec, ...]:
        """Return the networks to train, with heads of one kind, in the order that the rule expects."""

    @abstractmethod
    def rule(self, wish: Wish) -> Rule:
        """Return the rule for bands that stand in the order of ``networks``."""

    def order(self, wish: Wish, brought: int) -> list[int]:
        """Return where the bands that a user brings stand in the order that the rule expects."""
        expected = len(self.networks(wish))
        if brought != expected:
            raise ValueError(f"{self.name} takes {expected} band(s), found {brought}.")
        return list(range(brought))

    def check(self, wish: Wish) -> None:
        """Raise if something is asked for that this method has no use for."""
        for name in SETTINGS.keys() - self.settings:
            value = getattr(wish, name)
            if value is not SETTINGS[name] and value != SETTINGS[name]:
                raise ValueError(f"{self.name} has no use for {name}, which must not be given, found {name}={value!r}.")
        if not self.promises and wish.guarantee != "marginal":
            raise ValueError(
                f"{self.name} promises nothing, so that guarantee must be left alone, found {wish.guarantee!r}: "
                'use "conf-nn" or "pav".'
            )
