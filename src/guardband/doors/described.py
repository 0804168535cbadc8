"""A model of which a page shows no more than its promise and a few words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from guardband.audit.guarded import Guarded
from guardband.bands.certificate import Certificate


@dataclass(frozen=True)
class _Calibrated:
    certificate: Certificate


@dataclass(frozen=True)
class _Described:
    calibration_: _Calibrated
    made: tuple[tuple[str, str], ...]
    python_only: bool = True

    def made_by(self) -> Sequence[tuple[str, str]]:
        return self.made

    def settings(self) -> Sequence[tuple[str, str]]:
        return ()


def described_model(certificate: Certificate, *made: tuple[str, str]) -> Guarded:
    """Return what a page needs of a model that Python alone loads: its certificate, and how it was made."""
    return cast(Guarded, _Described(_Calibrated(certificate), made))
