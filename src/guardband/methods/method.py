"""The contract of a method: which networks to train, and which rule turns what they predict into intervals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np

from guardband.bands.levels import Levels, exact_share
from guardband.bands.pav_promise import PavRule
from guardband.bands.promise import DELTA, Side
from guardband.bands.risk import Risk, risk_of
from guardband.calibration.calibrated import OnInsufficient
from guardband.calibration.cut import Cut, MarginalCut, PacCut
from guardband.calibration.pav import Average
from guardband.calibration.rule import Rule
from guardband.nn.heads import Head
from guardband.nn.loss import Point

Guarantee = Literal["marginal", "pac"] | Cut
MOST_OUTSIDE = 0.49
"""A bound learns a quantile on its own side of the median: at most this share lies beyond it."""


@dataclass(frozen=True)
class Request:
    """What a user asks of a method: levels, guarantee, and the options of its rule and of its loss.

    An option that is None was not given. ``guarantee`` is a word, or a cut of the user's own.

    Parameters
    ----------
    levels : Levels, default 0.9
        The confidence levels, as exact fractions.
    guarantee : {"marginal", "pac"} or Cut, default "marginal"
        "marginal" promises the level on average over possible calibration sets. "pac" promises it with
        confidence 1 - ``delta`` for the calibration set you have; intervals are a little wider. A ``Cut``
        brings a guarantee of your own.
    delta : float, default None
        How often a "pac" guarantee may fail over possible calibration sets. None means 0.1. Lower it if you
        need more confidence.
    joint : bool, default False
        Whether a "pac" guarantee holds for all levels at once. Set it if you choose a level after looking at
        the intervals.
    side : {"both", "lower", "upper"}, default "both"
        Which bound the promise is about. "upper" promises that true values lie at or below the upper bound; the
        interval is then infinite below. "lower" is the reverse.
    tails : tuple of two Fractions, default None
        The share of new rows that may lie below their intervals, and the share that may lie above. Each has a promise
        of its own. Takes the place of a confidence level.
    tau : float, default None
        The level at which the network learns its bounds, ``tau / 2`` and ``1 - tau / 2``. None means alpha, the
        smallest if there are several. Rarely worth a change.
    taus : sequence of float, default None
        The levels of the networks that pav chooses from. None means a grid around alpha. Add smaller values if
        pav finds no network that is wide enough.
    rule : {"fixed-sequence", "nested", "paper"}, default None
        How pav chooses among its networks. None means "fixed-sequence". "paper" is the rule of the paper, with
        a weaker bound.
    average : {"sharp", "corollary"}, default None
        Ask pav for the level on average over calibration sets, by the exact bound ("sharp") or by the paper's
        ("corollary"). None keeps pav's own promise.
    on_insufficient : {"inf", "raise"}, default "inf"
        What happens with too few calibration rows. "inf" gives infinite intervals and a warning, "raise" an
        error. Use "raise" in programs that nobody watches.
    power : {1, 2}, default 1
        The power of the loss: 1 learns quantiles, 2 expectiles.
    point : {"median", "mean"}, default "median"
        What the prediction estimates.
    risk : Risk, default None
        The mean loss that new rows may have. Takes the place of a confidence level.
    """

    levels: Levels = field(default_factory=Levels.of)
    guarantee: Guarantee = "marginal"
    delta: float | None = None
    joint: bool = False
    side: Side = "both"
    tails: tuple[Fraction, Fraction] | None = None
    tau: float | None = None
    taus: Sequence[float] | None = None
    rule: PavRule | None = None
    average: Average | None = None
    on_insufficient: OnInsufficient = "inf"
    power: Literal[1, 2] = 1
    point: Point = "median"
    risk: Risk | None = None

    @classmethod
    def of(cls, confidence_level: Any = None, alpha: Any = None, **options: Any) -> Request:
        """Return the request for a level or levels, or for one minus them.

        Parameters
        ----------
        confidence_level : float or sequence of float, default None
            The share of new rows that should fall inside their intervals, or several such shares. None means 0.9,
            or the model's own level. Raise it if a miss is expensive; intervals become wider.
        alpha : float or sequence of float, default None
            One minus ``confidence_level``, for code that counts misses. Give one of the two.
        **options : keywords
            The other fields.
        """
        for name in ("delta", "tau"):
            if options.get(name) is not None:
                options[name] = float(options[name])
        tails = options.get("tails")
        risk_of(options.get("risk"))
        for name, given in (("confidence_level", confidence_level), ("alpha", alpha), ("tails", tails)):
            if given is not None and options.get("risk") is not None:
                raise ValueError(f"A risk takes the place of a confidence level. Remove {name}={given!r}, or risk.")
        if tails is None:
            return cls(Levels.of(confidence_level, alpha), **options)
        for name, given in (("confidence_level", confidence_level), ("alpha", alpha)):
            if given is not None:
                raise ValueError(f"tails take the place of a confidence level. Remove {name}={given!r}, or tails.")
        exact = exact_tails(tails)
        return cls(Levels((1 - exact[0] - exact[1],), scalar=True), **(options | {"tails": exact}))

    def __post_init__(self) -> None:
        for name, words in (
            ("guarantee", ("marginal", "pac")),
            ("rule", (None, *get_args(PavRule))),
            ("average", (None, *get_args(Average))),
            ("on_insufficient", get_args(OnInsufficient)),
            ("side", get_args(Side)),
        ):
            value = getattr(self, name)
            if value not in words and not (name == "guarantee" and isinstance(value, Cut)):
                listed = ", ".join(repr(word) for word in words if word is not None)
                other = " or a gb.Cut, such as PacCut()" if name == "guarantee" else ""
                raise ValueError(f"{name} must be one of {listed}{other}, found {value!r}.")
        if self.side != "both" and self.tails is not None:
            raise ValueError(f"Give side or tails, not both: found side={self.side!r} and tails. Remove one of them.")
        if self.risk is not None:
            self._check_risk()
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
                    f"taus must lie strictly between 0 and 1, found {list(self.taus)}. Leave out 0: guardband adds it."
                )
            if len(set(self.taus)) < len(self.taus):
                raise ValueError(f"taus must differ, found {list(self.taus)}.")

    def _check_risk(self) -> None:
        """Raise if something is asked for that a risk does not go with."""
        if isinstance(self.guarantee, Cut):
            raise ValueError(f'A risk needs guarantee="marginal" or "pac", found {self.guarantee!r}. Use one of them.')
        for name, given in (("side", self.side != "both"), ("joint", self.joint)):
            if given:
                raise ValueError(f"A risk does not go with {name}={getattr(self, name)!r}. Remove {name}, or risk.")

    @property
    def delta_or_default(self) -> float:
        """How often the promise may fail: 0.1 unless given."""
        return DELTA if self.delta is None else self.delta

    @property
    def is_sided(self) -> bool:
        """Whether one bound has a promise, or each of the two."""
        return self.side != "both" or self.tails is not None

    @property
    def shares_outside(self) -> tuple[float, float]:
        """How much may lie below the lower bound and above the upper: what a network learns.

        With one side the other bound learns as much. The smallest share counts if there are several levels.
        """
        if self.tails is not None:
            below, above = map(float, self.tails)
        else:
            below = above = min(self.levels.alphas) / (2 if self.side == "both" else 1)
        return min(below, MOST_OUTSIDE), min(above, MOST_OUTSIDE)

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


def exact_tails(tails: Any) -> tuple[Fraction, Fraction]:
    """Return the two tails as exact fractions; those that leave nothing in between are refused.

    Parameters
    ----------
    tails : sequence of two numbers
        The share of new rows that may lie below their intervals, and the share that may lie above.
    """
    wanted = "tails must be two numbers, such as (0.02, 0.08): the shares that may lie below and above"
    if isinstance(tails, str) or not isinstance(tails, Iterable) or len(own := list(tails)) != 2 or np.ndim(own) > 1:
        raise ValueError(f"{wanted}, found {tails!r}. Several levels cannot have tails: give one pair.")
    exact = exact_share("tails", own[0]), exact_share("tails", own[1])
    if sum(exact) >= 1:
        raise ValueError(f"tails must add up to less than 1, found {tails!r}. Make one of them smaller.")
    return exact


OPTIONS = frozenset(
    {"guarantee", "delta", "joint", "side", "tails", "tau", "taus", "rule", "average", "power", "point", "risk"}
)
"""What some methods use and others do not."""
CUTS = frozenset({"guarantee", "delta", "joint"})
"""The options of a method that ranks scores."""
SIDES = frozenset({"side", "tails"})
"""The options of a method that has a promise for one bound, or for each."""
LOSSES = frozenset({"power", "point"})
"""The options of a network that puts out lower bound, point and upper bound."""


@dataclass(frozen=True)
class NetworkSpec:
    """A network to train: its head, and its weight decay if the method sets that. Equal ones train once.

    Networks of the same ``copy`` start alike.

    Parameters
    ----------
    head : Head
        What the network puts out, and its loss.
    weight_decay : float, default None
        The weight decay, if the method sets it.
    copy : int, default 0
        Networks with the same number start alike.
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
        """Return the networks to train, with heads of one kind, in the order that the rule expects.

        Parameters
        ----------
        request : Request
            What the user asked for.
        """

    @abstractmethod
    def rule(self, request: Request) -> Rule:
        """Return the rule for predictions whose candidates stand in the order of ``networks``.

        Parameters
        ----------
        request : Request
            What the user asked for.
        """

    def order(self, request: Request, brought: int) -> list[int]:
        """Return where the candidates that a user brings stand in the order that the rule expects.

        Parameters
        ----------
        request : Request
            What the user asked for.
        brought : int
            How many candidates the user brings.
        """
        expected = len(self.networks(request))
        if brought != expected:
            raise ValueError(f"{self.name} takes {expected} interval(s) for each row, found {brought}.")
        return list(range(brought))

    def check_networks(self, request: Request) -> None:
        """Raise if the rule cannot use what the networks predict, or needs to know more of a row.

        Parameters
        ----------
        request : Request
            What the user asked for.
        """
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
        """Raise if something is asked for that this method has no use for.

        Parameters
        ----------
        request : Request
            What the user asked for.
        """
        for name, value in request.given().items():
            if name in self.options:
                continue
            if name == "guarantee":
                raise ValueError(
                    f'method="{self.name}" has no guarantee. Remove guarantee={value!r}, or use method="conf-nn" or '
                    '"pav".'
                )
            if name == "risk":
                raise ValueError(
                    f'method="{self.name}" has no promise for a risk. Remove risk, or use method="conf-nn", "conf-fw", '
                    '"cqr" or "cqr-r".'
                )
            if name in SIDES:
                raise ValueError(
                    f'method="{self.name}" has no promise for one side. Remove {name}, or use method="conf-nn", '
                    '"conf-fw", "cqr" or "cqr-r".'
                )
            raise ValueError(f'method="{self.name}" does not use {name}. Remove {name}={value!r}.')
        if request.delta is not None and request.guarantee != "pac" and "rule" not in self.options:
            asked = '"marginal"' if request.guarantee == "marginal" else repr(request.guarantee)
            raise ValueError(f'delta has no effect with guarantee={asked}. Remove it, or ask for guarantee="pac".')
