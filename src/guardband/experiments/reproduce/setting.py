"""A setting: everything that the paper leaves open, or that is varied, in an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from guardband.bands.pav_promise import PavRule
from guardband.learning.architecture import Architecture
from guardband.methods.method import Method, Request
from guardband.methods.registry import method_named
from guardband.nn.ordering import Ordering
from guardband.training.recipe import Recipe

ALPHA = 0.1
TAUS = tuple(round(ALPHA - 0.01 * i, 2) for i in range(10))
FOLDS = 3


@dataclass(frozen=True)
class Contestant:
    """A method as it enters the comparison, under the name that results carry."""

    label: str
    method: str
    rule: PavRule = "paper"

    def asked(self, setting: Setting) -> tuple[Method, Request]:
        """Return the method, and what is asked of it."""
        method = method_named(self.method)
        grid: dict[str, Any] = {"rule": self.rule, "taus": TAUS} if "taus" in method.options else {}
        return method, Request(power=setting.power if "power" in method.options else 1, **grid)


CONF_NN, PAV, QREG_UN = (Contestant(name, name) for name in ("conf-nn", "pav", "qreg-un"))
PAV_FIXED = Contestant("pav-fixed-sequence", "pav", "fixed-sequence")
CQR = Contestant("cqr", "cqr"), Contestant("cqr-r", "cqr-r")
TRIPLES = (PAV, CONF_NN, QREG_UN, PAV_FIXED, *CQR)
EVERYONE = (*TRIPLES, *(Contestant(name, name) for name in ("high-q", "neg-ll", "conf-fw", "bayes")))


@dataclass(frozen=True)
class Setting:
    """How networks are built and trained in a cell, and by which methods they are used.

    The paper's: one hidden layer, Adam at 0.01 without a schedule, epochs by cross-validation on the training rows.
    ``decays`` are weight decays to choose from: each kind of head takes the one with the least loss in the
    cross-validation of its first network. So the training rows of each repetition choose it, as they choose the epochs.
    ``copies`` networks that differ in their start are averaged. ``standardise`` is of the response. ``fine_tune``
    trains a whole network for images.
    """

    name: str
    hidden: tuple[int, ...] = (200,)
    contestants: tuple[Contestant, ...] = EVERYONE
    ordering: Ordering = "softplus"
    power: Literal[1, 2] = 1
    batch_size: int = 1024
    learning_rate: float = 0.01
    dropout: float = 0.0
    schedule: str | None = None
    epochs: int | Literal["cv"] = "cv"
    max_epochs: int = 100
    patience: int = 20
    decays: tuple[float, ...] = (0.0,)
    copies: int = 1
    standardise: bool = True
    encoding: str = ""
    fine_tune: bool = False

    def __post_init__(self) -> None:
        assert len(self.decays) == 1 or self.epochs == "cv", "only cross-validation can choose a weight decay"

    @property
    def architecture(self) -> Architecture:
        """The network, but for its head."""
        return Architecture(self.hidden, dropout=self.dropout, ordering=self.ordering)

    @property
    def recipe(self) -> Recipe:
        """The training, but for weight decay."""
        return Recipe(
            self.epochs,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            max_epochs=self.max_epochs,
            patience=self.patience,
            folds=FOLDS,
            schedule=self.schedule,
        )
