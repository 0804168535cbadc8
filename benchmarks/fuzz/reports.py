"""Stored reports: any document of JSON is refused, or becomes a page that can be written."""

from __future__ import annotations

import json
import random
import zlib

from judging import Target, refused
from mutate import Raw, changed_json

from guardband.report.page import render
from guardband.report.schema import checked


def report(data: bytes) -> None:
    """Check a document, and draw some of those that pass."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return

    def work() -> None:
        own = checked(document)
        if zlib.crc32(data) % 4 == 0:  # drawing takes longer than all the rest
            render(own).encode()

    refused(work)


def _documents() -> dict[str, bytes]:

    from guardband.report.document import document
    from reported import documents, evidence_of, fitted

    made = {"unchecked": documents()["unchecked"], "few": document(fitted(), evidence_of(n=12))}
    made |= {name: documents()[name] for name in ("one row", "thirty rows", "infinite", "groups", "several joint")}
    return {name: json.dumps(own).encode() for name, own in made.items()}


def _changed(data: bytes, most: int, seed: int, raw: Raw) -> bytes:
    return changed_json(data, most, random.Random(seed), raw)


TARGETS = {"reports": Target(report, _documents, _changed, longest=100_000)}
