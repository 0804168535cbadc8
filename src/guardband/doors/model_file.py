"""Models as files: ``save`` and ``load`` for every kind of model.

A file holds no code. What is the user's own (a network, a method, a guarantee, a function of outputs) is marked so,
and to be brought again. What is written of each kind of model, and how it comes back, is in the files ``*_file.py``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from guardband.bands.risk import Risk
from guardband.calibration.cut import Cut
from guardband.data.transforms import Functions
from guardband.doors.band_file import described_rule, restored_rule
from guardband.doors.bands import BandCalibrator
from guardband.doors.distribution_calibrator import DistributionCalibrator
from guardband.doors.file_arguments import restored_arguments
from guardband.doors.file_format import AGAIN, read, reason, write
from guardband.doors.guarded_model import GuardedModel
from guardband.doors.guarded_model_file import described_model, restored_model
from guardband.doors.kept_report import packed_report
from guardband.doors.network import GuardedNetwork
from guardband.doors.network_file import described_network, restored_network
from guardband.doors.online_file import restored_online
from guardband.doors.places_file import (
    described_distribution,
    restored_distribution,
)
from guardband.doors.signed_file import trusted_file
from guardband.doors.table_model import TableModel
from guardband.doors.table_model_file import described_table, restored_table
from guardband.exceptions import ModelFileError
from guardband.learning.architecture import Builder
from guardband.learning.options import resolve_device
from guardband.methods.method import Method
from guardband.training.threads import one_thread_each

TAKE_A_MODEL = ("model", "online", "distribution")
"""Kinds of files that hold no model, or whose own refusal says what they take."""
NO_FAULT_OF_THE_FILE = (Warning, torch.OutOfMemoryError, getattr(torch, "AcceleratorError", torch.OutOfMemoryError))
"""A warning that the user's own filter made an error, and a GPU that is full."""
Model = TableModel | GuardedNetwork | GuardedModel | BandCalibrator | DistributionCalibrator


def save(model: Model, path: str | os.PathLike[str], report: dict[str, Any] | None = None) -> None:
    """Write a model or a rule; the file appears whole or not at all.

    ``report`` is the document of its page, kept with a table's model and with a rule.
    """
    entries, tensors = _described(model)
    keeps_report = isinstance(model, TableModel | BandCalibrator)
    write(path, entries, tensors | (packed_report(report) if keeps_report else {}))


def _described(model: Model) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return entries and tensors of a model."""
    if isinstance(model, GuardedNetwork):
        return described_network(model)
    if isinstance(model, GuardedModel):
        return described_model(model)
    if isinstance(model, BandCalibrator):
        return described_rule(model)
    if isinstance(model, DistributionCalibrator):
        return described_distribution(model)
    return described_table(model)


def load(
    path: str | os.PathLike[str],
    *,
    model: Any = None,
    residuals: Any = None,
    network: Builder | nn.Module | Sequence[nn.Module] | None = None,
    method: Method | None = None,
    guarantee: Cut | None = None,
    risk: Risk | None = None,
    outputs: Any = None,
    split_by: Callable[[Any], Any] | None = None,
    groups: Callable[[Any], Any] | None = None,
    weights: Callable[[Any], Any] | None = None,
    target_transform: Functions | None = None,
    device: str = "auto",
    trusted: Any = None,
    signature: str | os.PathLike[str] | None = None,
) -> Any:
    """Return what was saved: an ``IntervalRegressor``, a calibrator, or what ``calibrate`` returned.

    A file holds no code. Whatever was your own when you saved the model, pass it again.

    Parameters
    ----------
    path : str or path
        The file to read.
    model : object, default None
        The model of another library, if the file holds its calibration. If all its columns are numbers, guardband
        compares its predictions for a few made-up rows, and refuses another model than the calibrated one. Also the
        model of an ``OnlineCalibrator``.
    residuals : (X, y), default None
        The rows given as ``residuals`` to ``calibrate``, if there were any.
    network : torch.nn.Module, sequence of these, or function, default None
        A calibrated network, built anew; its weights come from the file. For a table's model the function that builds
        its network.
    method : Method, default None
        The method, if it is your own.
    guarantee : Cut, default None
        The guarantee, if it is your own.
    risk : Risk, default None
        The risk, if its loss is your own. It must be the one that the model was calibrated with.
    outputs : function, default None
        The function that reads a network's outputs, if it is your own.
    split_by : function, default None
        The function that says what rows belong to, if it is your own.
    groups : function, default None
        The function that says which groups rows belong to, if it is your own.
    weights : function, default None
        The function that returns the weights of rows, if the model was calibrated with one.
    target_transform : pair of functions, default None
        The functions ``(forward, inverse)``, if they are your own.
    device : str, default "auto"
        Where a table's model computes. A network of your own stays where it is.
    trusted : path, str, bytes or public key, default None
        The public key of whoever must have signed the file: a PEM file, its text, or a key of the package
        cryptography. guardband checks the signature before it reads anything else, and refuses every other file.
        None checks no signature.
    signature : str or path, default None
        The signature of the file. None means the file beside it whose name has ``.sig`` added.

    Returns
    -------
    IntervalRegressor, GuardedNetwork, GuardedModel, BandCalibrator, DistributionCalibrator or OnlineCalibrator
        The model, with its certificate.

    Raises
    ------
    ModelFileError
        If the file cannot be loaded, with the reason. If it is not signed with the key that you trust, this is a
        ``SignatureError``.
    """
    path = trusted_file(path, trusted, signature)
    brought = {"network": network, "method": method, "guarantee": guarantee, "risk": risk, "outputs": outputs}
    brought |= {"split_by": split_by, "groups": groups, "weights": weights, "target_transform": target_transform}
    found = _load(path, brought, model, residuals, device)
    if not isinstance(found, TableModel):
        return found
    from guardband.doors.table import IntervalRegressor

    return IntervalRegressor.restored(found)


def load_to_predict(path: str | os.PathLike[str], device: str = "auto") -> TableModel | BandCalibrator:
    """Return a saved model that needs no code of the user's own; a table's comes without scikit-learn.

    scikit-learn takes as long to load as torch. ``IntervalRegressor.restored`` makes of it what ``load`` returns.
    """
    found: Any = _load(path, {}, None, None, device)
    if not isinstance(found, TableModel | BandCalibrator):
        raise ModelFileError(f"{path} holds no model of tables: use it in Python, by gb.load.")
    return found


def _load(path: str | os.PathLike[str], brought: Mapping[str, Any], model: Any, residuals: Any, device: str) -> Any:
    """Return a saved model; a table's as one that only predicts."""
    resolve_device(device)  # a device that is not here is no fault of the file
    entries, tensors = read(path)
    weights = brought.get("weights")
    try:
        if entries["kind"] not in TAKE_A_MODEL and (model is not None or residuals is not None):
            what = {"rule": "no model", "network": "a network"}.get(entries["kind"], "its own model")
            raise ModelFileError(f"it holds {what}: remove model=... and residuals=...")
        if entries["kind"] == "network":
            return restored_network(entries, tensors, brought)
        if entries["kind"] == "online":
            others = [own for name, own in brought.items() if name != "method"]
            if any(own is not None for own in (residuals, *others)):
                raise ModelFileError(
                    "it holds an OnlineCalibrator, which takes model=... and method=...: pass no more."
                )
            return restored_online(entries, tensors, model, method=brought.get("method"))
        if entries["kind"] == "model":
            return restored_model(
                entries, tensors, restored_arguments(entries["arguments"], brought), model, residuals, weights
            )
        if entries["kind"] == "distribution":
            if any(own is not None for own in (model, residuals, *brought.values())):
                raise ModelFileError(
                    "it holds a DistributionCalibrator, which needs nothing of your own: pass nothing."
                )
            return restored_distribution(entries, tensors)
        if entries["kind"] == "rule":
            return restored_rule(entries, tensors, restored_arguments(entries["arguments"], brought))
        params = restored_arguments(entries["params"], brought) | {"device": device}
        with one_thread_each():  # many short checks, at each of which threads would wait for each other
            return restored_table(dict(sorted(params.items())), entries, tensors, weights)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except NO_FAULT_OF_THE_FILE:
        raise
    except Exception as error:  # whatever follows from other entries, or from code that was brought
        check = AGAIN if all(value is None for value in brought.values()) else f"Check what you pass to load. {AGAIN}"
        why = f"{path} does not hold what this version of guardband can use: {reason(error)}."
        raise ModelFileError(f"{why} {check}") from error
