"""The network for tables by preset, number of training rows and kind of target, unless arguments say otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FEW_ROWS = 4000
MUON = 20 / 3
"""Muon's learning rate relative to Adam's."""


@dataclass(frozen=True)
class Preset:
    """How wide the network is, how many copies it has, and how they are trained: by Adam alone if ``muon`` is 0."""

    hidden: tuple[int, ...]
    copies: int
    dropout: float = 0.0
    learning_rate: float = 0.003
    muon: float = 0.0


FOR_FEW_ROWS: dict[str, Preset] = {
    "fast": Preset((128, 128), 2, 0.03, 0.005),
    "default": Preset((128, 128, 128), 8, 0.03),
    "best": Preset((128, 128, 128), 24, 0.03),
}
WITH_ADAM: dict[str, Preset] = {
    "fast": Preset((128, 128), 2, 0.03, 0.005),
    "default": Preset((256, 256, 256), 8),
    "best": Preset((256, 256, 256), 24),
}
WITH_MUON: dict[str, Preset] = {
    "fast": Preset((128, 128), 3, muon=MUON),
    "default": Preset((128, 128, 128), 16, muon=MUON),
    "best": Preset((128, 128, 128), 24, muon=MUON),
}
"""Half of the width leaves the time for more copies."""


def presets_for(n: int, suits_muon: bool) -> Mapping[str, Preset]:
    """Return the presets for n training rows, and for networks that Muon may train or may not."""
    if n < FEW_ROWS:
        return FOR_FEW_ROWS
    return WITH_MUON if suits_muon else WITH_ADAM
