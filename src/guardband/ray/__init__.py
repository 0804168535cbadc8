"""guardband on Ray: tables of many files, on one machine or many.

``fit``, ``calibrate``, ``predict``, ``audit`` and ``update`` take files or a Ray dataset, and ``train`` takes many
networks. They need the extra ``ray``, and ray is loaded when they are used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guardband.ray.calibrating import calibrate as calibrate
    from guardband.ray.cluster import connect as connect
    from guardband.ray.fitting import fit as fit
    from guardband.ray.fleets import train as train
    from guardband.ray.judging import audit as audit
    from guardband.ray.scoring import predict as predict
    from guardband.ray.sources import read as read
    from guardband.ray.watching import update as update

# A function must not have the name of its module: the module would take its place when it is loaded.
_HOME = {
    "audit": "guardband.ray.judging",
    "calibrate": "guardband.ray.calibrating",
    "connect": "guardband.ray.cluster",
    "fit": "guardband.ray.fitting",
    "predict": "guardband.ray.scoring",
    "read": "guardband.ray.sources",
    "train": "guardband.ray.fleets",
    "update": "guardband.ray.watching",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'guardband.ray' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
