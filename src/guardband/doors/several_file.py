"""What a file says of several targets, and how their rule comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from guardband.calibration.joint import JointConformal
from guardband.calibration.rule import Rule
from guardband.calibration.several import SeveralRule
from guardband.data.several_targets import SeveralTargets
from guardband.data.target import Target
from guardband.learning.several import check_targets, several_rule
from guardband.methods.method import Method, Request


def several_entries(rule: Rule, target: Target) -> dict[str, Any] | None:
    """Return the names of several targets for JSON, what each is, and the scales of a promise for all of them.

    The first target has its place elsewhere. None stands for one target.
    """
    if not isinstance(target, SeveralTargets):
        return None
    scales = list(rule.scales) if isinstance(rule, JointConformal) else []
    return {"names": list(target.names), "others": [own.to_dict() for own in target.each[1:]], "scales": scales}


def restored_target(entries: Mapping[str, Any], asked: Target) -> Target:
    """Return the target that a file describes, or several."""
    if isinstance(asked, SeveralTargets):
        return asked.restored([entries["target"], *entries["several"]["others"]])
    return Target.from_dict(entries["target"], asked.transform)


def restored_several(
    method: Method, request: Request, targets: Any, names: Sequence[str] | None, scales: Sequence[float] | None
) -> SeveralRule | None:
    """Return the rule of several targets that a file describes, None if there is one target."""
    if (names is None) != (targets is None):
        raise ValueError("its targets are not what its arguments ask for")
    if names is None:
        return None
    if bool(scales) != (targets == "joint"):
        raise ValueError("its targets have other scales than its arguments ask for")
    check_targets(targets, request, method)
    return several_rule(method, request, targets, names, scales or ())
