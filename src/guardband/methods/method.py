"""The contract of a method: which bands to train, and which rule to apply to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import get_args

from guardband.bands.levels import Levels
from guardband.calibration.conformal import Guarantee
from guardband.calibration.pav import Average, PavRule
from guardband.calibration.rule import OnInsufficient, Rule


@dataclass(frozen=True)
class Wish:
    """What a user asks of a method: levels, guarantee and the settings of its rule."""

    levels: Levels = field(default_factory=Levels.of)
    guarantee: Guarantee = "marginal"
    delta: float = 0.1
    joint: bool = False
    tau: float | None = None
    taus: Sequence[float] | None = None
    rule: PavRule = "fixed-sequence"
    average: Average | None = None
    on_insufficient: OnInsufficient = "inf"

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


class Method(ABC):
    """A way to get intervals: one band per tau, and a rule that turns these bands into intervals."""

    name: str

    @abstractmethod
    def taus(self, wish: Wish) -> tuple[float, ...]:
        """Return the levels of the bands to train, narrowest first."""

    def order(self, wish: Wish) -> list[int]:
        """Return where the bands that a user brings, one per tau as given, stand in the order of ``taus``."""
        given = self.taus(wish) if wish.taus is None else list(wish.taus)
        return sorted(range(len(given)), key=lambda i: -given[i])

    @abstractmethod
    def rule(self, wish: Wish) -> Rule:
        """Return the rule for bands that stand in the order of ``taus``."""
