"""Whether a monitor's file holds a promise that can be watched; whoever writes a file can write any promise into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import Any

from msgspec import convert

from guardband.bands.certificate import Certificate
from guardband.doors.file_format import reason
from guardband.doors.stored_certificate import CertificateEntries
from guardband.exceptions import ModelFileError
from guardband.monitor.rows import PredictedRows
from guardband.monitor.state_checks import MOST
from guardband.monitor.state_file import AGAIN


@contextmanager
def refused_in_words(path: str | PathLike[str]) -> Iterator[None]:
    """Refuse a file in one sentence, whatever follows inside from what it holds."""
    try:
        yield
    except Exception as error:
        raise ModelFileError(f"{path} is no valid state of a monitor: {reason(error)}. {AGAIN}") from error


def certificate_in(entries: Mapping[str, Any]) -> Certificate:
    """Return the certificate in a file; raise unless it can be said in words and as JSON, and expects something."""
    convert(entries, CertificateEntries)
    _check_numbers(entries["promise"])
    certificate = Certificate.from_dict(entries)
    str(certificate), certificate.to_dict(), certificate.promise.headline(certificate.method)
    certificate.promise.expectations()
    return certificate


def _check_numbers(value: Any) -> None:
    """Raise if a number anywhere inside is none, or a count is too large to compute with; widths may be of any size."""
    if isinstance(value, dict | list):
        for own in value.values() if isinstance(value, dict) else value:
            _check_numbers(own)
    elif (isinstance(value, int) and abs(value) >= MOST) or value != value:
        raise ValueError("a number of its promise is out of range")


def need_waiting_at(waiting: PredictedRows | None, levels: int) -> None:
    """Raise unless the rows that wait have intervals at so many levels."""
    if waiting is not None and waiting.lower.shape[1] != levels:
        raise ValueError("rows that wait have another number of levels")
