"""The state of an online rule as a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from guardband.calibration.online.past_scores import PastScores
from guardband.calibration.online.registry import RULES
from guardband.calibration.online.rule import OnlineRule, Tally
from guardband.doors.file_format import plain, read, reason, rich, write
from guardband.doors.online import OnlineCalibrator
from guardband.exceptions import ModelFileError
from guardband.methods.method import Method
from guardband.methods.registry import method_named, method_names

CUSTOM = "custom"
PAST, STATE, WAITING = "past_scores", "rule_state", "waiting"
ANOTHER = "Use the last state that you saved, or start a new one."


def save_online(online: OnlineCalibrator, path: str | os.PathLike[str]) -> None:
    """Write a state; the file appears whole or not at all."""
    stream, rule = online.stream, online.rule
    is_ours = RULES.get(rule.word) is type(rule)
    method = method_named(online.arguments["method"])
    known = method.name in method_names() and method_named(method.name) is method
    entries = {
        "kind": "online",
        "rule": rule.word if is_ours else CUSTOM,
        "options": asdict(rule) if is_ours and is_dataclass(rule) else {},
        "arguments": online.arguments | {"method": method.name if known else CUSTOM},
        "alpha": plain(stream.alpha),
        "meaning": online.meaning,
        "has_model": online.has_model,
        "tally": asdict(stream.tally),
        "n_calibration": stream.n_calibration,
        "given": stream.given,
        "keys": list(stream.waiting),
    }
    waiting = np.array(list(stream.waiting.values()), dtype=np.float64).reshape(-1, 1 + stream.parts)
    tensors = {
        PAST: torch.from_numpy(stream.past.in_time()),
        STATE: torch.tensor(stream.state, dtype=torch.float64),
        WAITING: torch.from_numpy(waiting),
    }
    write(path, entries, tensors)


def load_online(
    path: str | os.PathLike[str],
    *,
    model: Any = None,
    rule: OnlineRule | None = None,
    method: Method | None = None,
) -> OnlineCalibrator:
    """Return a saved state, as ``OnlineCalibrator.load`` says."""
    entries, tensors = read(path)
    try:
        if entries["kind"] != "online":
            raise ModelFileError("it holds a model, not the state of an OnlineCalibrator: use gb.load.")
        return restored_online(entries, tensors, model, rule, method)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except Exception as error:
        why = f"{path} does not hold what this version of guardband can use: {reason(error)}."
        raise ModelFileError(f"{why} {ANOTHER}") from error


def restored_online(
    entries: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    model: Any,
    rule: OnlineRule | None = None,
    method: Method | None = None,
) -> OnlineCalibrator:
    """Return the state of a file; contradictions are refused."""
    arguments = dict(entries["arguments"])
    for name, own, saved in (("rule", rule, entries["rule"]), ("method", method, arguments["method"])):
        if (own is None) == (saved == CUSTOM):
            hint = f"remove {name}=..." if own is not None else f"pass it: gb.OnlineCalibrator.load(path, {name}=...)."
            raise ModelFileError(f"it was made with a {name} of {'your' if own is None else 'its'} own: {hint}")
    if entries["has_model"] != (model is not None):
        raise ModelFileError(
            "it was saved with a model: pass model=..." if entries["has_model"] else "it has no model: remove model=..."
        )
    shown = arguments | (
        {"method": None, "side": None} if entries["has_model"] else {"method": method or arguments["method"]}
    )
    own_rule = rule or RULES[entries["rule"]](**entries["options"])
    online = OnlineCalibrator(own_rule, alpha=rich(entries["alpha"]), model=model, **shown)
    if online.meaning != entries["meaning"]:
        raise ModelFileError(
            "its scores are of another kind of model: pass a model with the same method and transform."
        )
    _restore(online, entries, tensors)
    return online


def _restore(online: OnlineCalibrator, entries: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Give a new calibrator the state of a file, after a look at each number."""
    stream, tally, keys = online.stream, Tally(**entries["tally"]), entries["keys"]
    if tensors.keys() != {PAST, STATE, WAITING} or any(t.dtype != torch.float64 for t in tensors.values()):
        raise ValueError("it holds other numbers than a state has")
    past, state, waiting = (tensors[name].numpy() for name in (PAST, STATE, WAITING))
    expected = (len(keys), 1 + stream.parts)
    if past.ndim != 1 or state.shape != (len(stream.state),) or waiting.shape != expected:
        raise ValueError("its numbers do not fit each other")
    if np.isnan(past).any() or np.isnan(state).any() or np.isnan(waiting[:, :1]).any():
        raise ValueError("it holds a number that is none")
    window = stream.past.window
    if len(set(keys)) < len(keys) or tally.misses > tally.judged or (window is not None and len(past) > window):
        raise ValueError("its counts contradict each other")
    if not max(1, len(keys)) <= tally.most_waiting or tally.judged + len(keys) > entries["given"]:
        raise ValueError("its counts contradict each other")
    if len(past) > entries["n_calibration"] + tally.judged:
        raise ValueError("it has more scores than rows")
    stream.past, stream.state, stream.tally = PastScores(window, past.tolist()), tuple(state.tolist()), tally
    stream.n_calibration, stream.given = entries["n_calibration"], entries["given"]
    stream.waiting = dict(zip(keys, map(tuple, waiting.tolist()), strict=True))
    later = replace(tally, judged=max(1, tally.judged))  # a rule may look at its numbers only after the first row
    online.rule.threshold(stream.alpha, later, stream.state, stream.past)
    str(online.certificate)
