"""Arguments in a model file: what it can hold, and what is the user's own and must be brought again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guardband.bands.risk import Risk
from guardband.calibration.cut import Cut
from guardband.doors.file_format import plain, rich
from guardband.exceptions import ModelFileError
from guardband.methods.method import Method
from guardband.methods.registry import method_named, method_names

CUSTOM = "custom"


def plain_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for JSON; objects that a file cannot hold are marked as the user's own."""
    return {name: _plain_argument(name, value) for name, value in arguments.items()}


def _plain_argument(name: str, value: Any) -> Any:
    if name == "method" and isinstance(value, Method):
        return value.name if value.name in method_names() and method_named(value.name) is value else CUSTOM
    if name == "target_transform" and isinstance(value, tuple | list):
        return CUSTOM if any(callable(own) or isinstance(own, tuple | list) for own in value) else plain(value)
    if isinstance(value, Risk):
        return CUSTOM if callable(value.loss) else {"limit": value.limit, "cap": value.cap}
    return CUSTOM if callable(value) or isinstance(value, Cut) else plain(value)


def restored_arguments(saved: Mapping[str, Any], brought: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a file, with what the user brought in the place of what it cannot hold."""
    arguments = {name: rich(value) for name, value in saved.items() if name != "risk"}
    if "risk" in saved:
        own = saved["risk"]
        arguments["risk"] = Risk(**own) if isinstance(own, dict) else own
    idle = [name for name, value in brought.items() if value is not None and saved.get(name, CUSTOM) != CUSTOM]
    if idle:
        raise ModelFileError(f"it holds its own {idle[0]}: remove {idle[0]}=...")
    for name in [name for name, value in arguments.items() if value == CUSTOM]:
        if brought.get(name) is None:
            raise ModelFileError(f"it was made with a {name} of your own: pass it as load(..., {name}=...).")
        arguments[name] = brought[name]
    return arguments
