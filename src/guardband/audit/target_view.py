"""A model of several targets, seen as a model of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.audit.guarded import Guarded
from guardband.bands.predicted import Predicted
from guardband.bands.predicted_several import PredictedSeveral
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.target_calibrated import target_calibrated
from guardband.data.labelled_rows import Belonging
from guardband.data.several_targets import SeveralTargets
from guardband.data.table import Table, take_rows
from guardband.data.target import Target
from guardband.data.used_rows import UsedRows


@dataclass(frozen=True, eq=False)
class TargetView:
    """The target at position ``j`` of a model: its rule, its scale and what is known of the rows.

    Whether rows were used before, or belong together, is asked of all targets: here rows stand alone.
    """

    model: Guarded
    j: int

    @cached_property
    def calibration_(self) -> Calibrated:
        """The calibrated rule of the target."""
        return target_calibrated(self.model.calibration_, self.j)

    @property
    def fitted_(self) -> UsedRows:
        """What is known of the rows that the model was made from."""
        used = self.model.fitted_
        none = used.training_prints[:0]
        return UsedRows(
            training_prints=none,
            calibration_prints=none,
            reference=used.reference.of_target(self.j),
            doubts=used.doubts,
        )

    @property
    def target_(self) -> Target:
        """The scale of the target."""
        every = self.model.target_
        return every.each[self.j] if isinstance(every, SeveralTargets) else every

    @property
    def belonging(self) -> Belonging:
        """That rows stand alone."""
        return Belonging(())

    @property
    def python_only(self) -> bool:
        """Whether the command line cannot load the model."""
        return self.model.python_only

    def made_by(self) -> Sequence[tuple[str, str]]:
        """Return how the model was made."""
        return self.model.made_by()

    def settings(self) -> Sequence[tuple[str, str]]:
        """Return what was asked for other than by default."""
        return self.model.settings()

    def read_rows(self, X: Any, *, weights: Any = None) -> Table:
        """Return rows as the model reads them."""
        return self.model.read_rows(X)

    def outputs(self, X: Any, table: Table) -> tuple[Predicted, NDArray[np.float32]]:
        """Return what the model predicts of the target, and the columns as numbers."""
        predicted, inputs = self.model.outputs(X, table)
        assert isinstance(predicted, PredictedSeveral)
        return predicted.targets[self.j], inputs


def of_rows(side: Any, rows: NDArray[np.intp]) -> Any:
    """Return a column beside the rows for some of them; the name of a column stays."""
    return side if side is None or isinstance(side, str) else take_rows(side, rows)
