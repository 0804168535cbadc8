"""What an audit and its page need of a calibrated model, whoever trained it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from guardband.bands.predicted import Predicted
from guardband.calibration.calibrated import Calibrated
from guardband.data.labelled_rows import Belonging
from guardband.data.table import Table
from guardband.data.target import Target
from guardband.data.used_rows import UsedRows


class Guarded(Protocol):
    """A calibrated model of tables."""

    @property
    def calibration_(self) -> Calibrated:
        """The calibrated rule."""

    @property
    def fitted_(self) -> UsedRows:
        """What is known of the rows that the model was made from."""

    @property
    def target_(self) -> Target:
        """The scale of the target."""

    @property
    def belonging(self) -> Belonging:
        """How the model knows which rows belong together."""

    @property
    def python_only(self) -> bool:
        """Whether the command line cannot load the model, because it needs an object that only Python has."""

    def made_by(self) -> Sequence[tuple[str, str]]:
        """Return how the model was made, by name and in words."""

    def settings(self) -> Sequence[tuple[str, str]]:
        """Return what was asked for other than by default, by name and in words."""

    def read_rows(self, X: Any, *, weights: Any = None) -> Table:
        """Return rows as the model reads them, with their weights if it needs them."""

    def outputs(self, X: Any, table: Table) -> tuple[Predicted, NDArray[np.float32]]:
        """Return what the model predicts for rows that ``read_rows`` returned, and their columns as numbers."""


def need_entities(model: Guarded, entities: Any) -> None:
    """Raise if the promise is for new entities, and nothing says what these rows belong to."""
    if entities is None and model.belonging.split_by is None and model.fitted_.has_labels:
        raise ValueError(
            "The promise of this model is for new entities, as fit was told by entities=, and these rows do not "
            "say what they belong to. Pass entities= here too, or on the command line --split-by."
        )
