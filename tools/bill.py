"""Writes bill-of-materials.json: the packages that users install, in the format CycloneDX 1.6.

    python tools/bill.py

It needs the environment of make test, in which every package is installed. The same versions give the same bytes.
"""

from __future__ import annotations

import json
from typing import Any

from packages import ROOT, Package, packages
from packaging.utils import canonicalize_name

FILE = ROOT / "bill-of-materials.json"


def bill() -> dict[str, Any]:
    """Return the bill: guardband, and what it needs always or with an extra."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "name": "guardband",
                "licenses": [{"expression": "BSD-3-Clause"}],
            }
        },
        "components": [_component(own) for own in packages() if own.is_for_users],
    }


def _component(own: Package) -> dict[str, Any]:
    purl = f"pkg:pypi/{canonicalize_name(own.name)}@{own.version}"
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": own.name,
        "version": own.version,
        "purl": purl,
        "scope": "optional" if own.used_for else "required",
        "licenses": [{"expression": own.licence}],
    }
    if own.hashes:
        found["hashes"] = [{"alg": "SHA-256", "content": content} for content in own.hashes]
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(bill(), indent=1) + "\n")
