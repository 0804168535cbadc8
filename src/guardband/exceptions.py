"""What guardband raises and warns of.

    ValueError
    ├── ModelFileError                  a saved model cannot be loaded
    │   ├── MissingModelFileError       there is no such file (also a FileNotFoundError)
    │   └── SignatureError              it is not signed with the key that is trusted
    ├── InsufficientCalibrationError    too few calibration rows, and on_insufficient="raise"
    └── OverlapError                    calibration rows were already used for training
    UserWarning
    ├── InsufficientCalibrationWarning  too few calibration rows: intervals are infinite
    ├── MissingTargetWarning            rows without a target were left out
    ├── UnlikeRowsWarning               new rows are unlike all training rows
    ├── DependentRowsWarning            rows may depend on each other, and the promise may not hold
    ├── DegenerateBandWarning           a side of an interval has no width, or the mean lies outside
    ├── RepeatedRowsWarning             calibration rows come more than once
    ├── SlowTrainingWarning             networks train slower than they could, and why
    └── TargetWarning                   the target has too few or extreme values, or a model predicts one quantile

Every other bad argument is a plain ``ValueError`` or ``TypeError``.
"""

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's that called guardband, so that no later call is silenced by an earlier one."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


class ModelFileError(ValueError):
    """A saved model is damaged, tampered with, from a newer version, or no model at all."""


class MissingModelFileError(ModelFileError, FileNotFoundError):
    """There is no file at the path given."""


class SignatureError(ModelFileError):
    """A model is not signed with the key that is trusted, or a key or a signature cannot be used."""


class InsufficientCalibrationError(ValueError):
    """There are too few calibration rows for a finite interval at the level asked for."""


class OverlapError(ValueError):
    """Rows that trained the network were offered as calibration rows."""


class InsufficientCalibrationWarning(UserWarning):
    """There are too few calibration rows, and intervals are infinite."""


class MissingTargetWarning(UserWarning):
    """Rows were left out because their target is missing."""


class UnlikeRowsWarning(UserWarning):
    """New rows are unlike all training rows: the promise says little about rows such as these."""


class DegenerateBandWarning(UserWarning):
    """A side of an interval has no width, or a predicted mean lies outside its interval."""


class DependentRowsWarning(UserWarning):
    """Rows may depend on each other, by a column or in time: new rows may be covered less often than promised."""


class RepeatedRowsWarning(UserWarning):
    """Calibration rows occur more than once, and the promise counts each of them."""


class SlowTrainingWarning(UserWarning):
    """Networks cannot be trained together, or not as fast as possible. The result is the same, but takes longer."""


class TargetWarning(UserWarning):
    """The target is constant, has two values or some far beyond all others, or a model predicts one quantile of it."""
