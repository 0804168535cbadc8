"""Whether what a checkpoint holds fits the run that is to go on from it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from guardband.training.job import Job

SEARCH = {"least": torch.float32, "best": torch.int32, "searching": torch.bool}
Form = tuple[tuple[int, ...], torch.dtype]
"""Shape and kind of number of a tensor."""


def fits(saved: dict[str, Any], job: Job) -> bool:
    """Whether the members that were kept, and what is known of each, are those of this run."""
    if "phase" not in saved or ("best" not in saved and saved["phase"] != "done"):
        return False
    size, best = job.size, saved.get("best")
    if best is not None and not (_listed(best, size, int) and all(1 <= own <= job.recipe.max_epochs for own in best)):
        return False
    if saved["phase"] is None:  # between two phases, or before the first
        if best is None:
            return saved.keys() == {"phase", "best"}
        return saved.keys() == {"phase", "best", "losses"} and _listed(saved["losses"], size, float)
    return (
        saved["phase"] in ("training", "cross-validation", "done")
        and _listed(saved.get("losses"), size, float)
        and _forms(saved.get("kept")) == _stacked(_member_forms(job), size)
        and _forms({"": saved.get("kept_epochs")}) == {"": ((size,), torch.int32)}
    )


def fleet_fits(saved: dict[str, Any], job: Job, epochs: int, searched: int | None) -> bool:
    """Whether a fleet of this job can go on from there, with the search of so many members if there is one."""
    epoch, parts = saved.get("epoch"), saved.get("fleet")
    if not isinstance(epoch, int) or not 1 <= epoch <= epochs or not isinstance(parts, list):
        return False
    if not all(isinstance(part, dict) and isinstance(part.get("ids"), list) for part in parts):
        return False
    ids = [i for part in parts for i in part["ids"]]
    if not all(isinstance(i, int) for i in ids) or sorted(ids) != list(range(job.size)):
        return False
    if searched is not None and _forms(saved.get("search")) != {n: ((searched,), kind) for n, kind in SEARCH.items()}:
        return False
    return all(_part_fits(part, job) for part in parts)


def _part_fits(part: dict[str, Any], job: Job) -> bool:
    """Whether the state of a squad, or of members that are finished, has the form of such a squad's."""
    size = len(part["ids"])
    members = _stacked(_member_forms(job), size)
    if part.keys() == {"ids", "members"}:
        return _forms(part["members"]) == members
    if part.keys() != {"ids", "members", "averaged", "adam", "done"}:
        return False
    trained = [_form(p) for p in job.take([0]).members().parameters()]
    moments = {f"{name}.{i}": form for name in ("first", "second") for i, form in enumerate(trained)}
    return (
        _forms(part["members"]) == members
        and _forms(part["averaged"]) == (members if job.recipe.averaging else {})
        and _forms(part["adam"]) == _stacked(moments, size)
        and isinstance(part["done"], int)
        and part["done"] >= 0
    )


def _member_forms(job: Job) -> dict[str, Form]:
    return {name: _form(t) for name, t in job.take([0]).members().snapshot().items()}


def _stacked(forms: dict[str, Form], size: int) -> dict[str, Form]:
    return {name: ((size, *shape[1:]), kind) for name, (shape, kind) in forms.items()}


def _form(tensor: Tensor) -> Form:
    return tuple(tensor.shape), tensor.dtype


def _forms(tensors: Any) -> dict[str, Form] | None:
    """Return the forms of tensors by name, None if they are anything else."""
    if not isinstance(tensors, dict) or not all(isinstance(t, Tensor) for t in tensors.values()):
        return None
    return {name: _form(t) for name, t in tensors.items()}


def _listed(values: Any, size: int, kind: type) -> bool:
    return isinstance(values, list) and len(values) == size and all(isinstance(own, kind) for own in values)
