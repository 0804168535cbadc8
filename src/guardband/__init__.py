"""guardband: prediction intervals for neural networks, with a guarantee you can check.

Three ways in: ``IntervalRegressor`` for a table, ``calibrate`` for a torch network, ``BandCalibrator`` for predictions
from anywhere. Each returns intervals together with a ``Certificate``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from guardband import extend as extend
    from guardband import images as images
    from guardband import metrics as metrics
    from guardband import mlflow as mlflow
    from guardband import nn as nn
    from guardband import planning as planning
    from guardband import ray as ray
    from guardband.bands.boxes import Boxes as Boxes
    from guardband.bands.certificate import Certificate as Certificate
    from guardband.bands.distribution import Distribution as Distribution
    from guardband.bands.intervals import Intervals as Intervals
    from guardband.bands.predicted import Context as Context
    from guardband.bands.predicted import Predicted as Predicted
    from guardband.bands.promise import Promise as Promise
    from guardband.bands.risk import Risk as Risk
    from guardband.bands.stated import Probabilities as Probabilities
    from guardband.bands.stated import Selection as Selection
    from guardband.calibration.cut import Cut as Cut
    from guardband.calibration.score import Score as Score
    from guardband.doors.bands import BandCalibrator as BandCalibrator
    from guardband.doors.calibrate import calibrate as calibrate
    from guardband.doors.choose import Choice as Choice
    from guardband.doors.choose import choose as choose
    from guardband.doors.distribution_calibrator import DistributionCalibrator as DistributionCalibrator
    from guardband.doors.export import export_onnx as export_onnx
    from guardband.doors.guarded_model import GuardedModel as GuardedModel
    from guardband.doors.model_file import load as load
    from guardband.doors.monitor import Monitor as Monitor
    from guardband.doors.network import GuardedNetwork as GuardedNetwork
    from guardband.doors.online import OnlineCalibrator as OnlineCalibrator
    from guardband.doors.replace import with_intervals as with_intervals
    from guardband.doors.table import IntervalRegressor as IntervalRegressor
    from guardband.doors.train import train as train
    from guardband.exceptions import DegenerateBandWarning as DegenerateBandWarning
    from guardband.exceptions import DependentRowsWarning as DependentRowsWarning
    from guardband.exceptions import InsufficientCalibrationError as InsufficientCalibrationError
    from guardband.exceptions import InsufficientCalibrationWarning as InsufficientCalibrationWarning
    from guardband.exceptions import MissingTargetWarning as MissingTargetWarning
    from guardband.exceptions import ModelFileError as ModelFileError
    from guardband.exceptions import OverlapError as OverlapError
    from guardband.exceptions import RepeatedRowsWarning as RepeatedRowsWarning
    from guardband.exceptions import SlowTrainingWarning as SlowTrainingWarning
    from guardband.exceptions import TargetWarning as TargetWarning
    from guardband.exceptions import UnlikeRowsWarning as UnlikeRowsWarning
    from guardband.explain.explanation import Explanation as Explanation
    from guardband.methods.method import Method as Method
    from guardband.methods.method import NetworkSpec as NetworkSpec
    from guardband.methods.method import Request as Request
    from guardband.nn.heads import Head as Head
    from guardband.pipelines import predict_interval as predict_interval

_HOME = {
    "BandCalibrator": "guardband.doors.bands",
    "Boxes": "guardband.bands.boxes",
    "Certificate": "guardband.bands.certificate",
    "Choice": "guardband.doors.choose",
    "Context": "guardband.bands.predicted",
    "Cut": "guardband.calibration.cut",
    "DegenerateBandWarning": "guardband.exceptions",
    "DependentRowsWarning": "guardband.exceptions",
    "Distribution": "guardband.bands.distribution",
    "DistributionCalibrator": "guardband.doors.distribution_calibrator",
    "Explanation": "guardband.explain.explanation",
    "GuardedModel": "guardband.doors.guarded_model",
    "GuardedNetwork": "guardband.doors.network",
    "Head": "guardband.nn.heads",
    "InsufficientCalibrationError": "guardband.exceptions",
    "InsufficientCalibrationWarning": "guardband.exceptions",
    "IntervalRegressor": "guardband.doors.table",
    "Intervals": "guardband.bands.intervals",
    "Method": "guardband.methods.method",
    "MissingTargetWarning": "guardband.exceptions",
    "ModelFileError": "guardband.exceptions",
    "Monitor": "guardband.doors.monitor",
    "NetworkSpec": "guardband.methods.method",
    "OnlineCalibrator": "guardband.doors.online",
    "OverlapError": "guardband.exceptions",
    "Predicted": "guardband.bands.predicted",
    "Probabilities": "guardband.bands.stated",
    "Promise": "guardband.bands.promise",
    "RepeatedRowsWarning": "guardband.exceptions",
    "Request": "guardband.methods.method",
    "Risk": "guardband.bands.risk",
    "Score": "guardband.calibration.score",
    "Selection": "guardband.bands.stated",
    "SlowTrainingWarning": "guardband.exceptions",
    "TargetWarning": "guardband.exceptions",
    "UnlikeRowsWarning": "guardband.exceptions",
    "calibrate": "guardband.doors.calibrate",
    "choose": "guardband.doors.choose",
    "export_onnx": "guardband.doors.export",
    "load": "guardband.doors.model_file",
    "predict_interval": "guardband.pipelines",
    "train": "guardband.doors.train",
    "with_intervals": "guardband.doors.replace",
}
_MODULES = ("extend", "images", "metrics", "mlflow", "nn", "planning", "ray")

__all__ = [*_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: torch and scikit-learn take seconds to load."""
    if name in _MODULES:
        return import_module(f"guardband.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'guardband' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
