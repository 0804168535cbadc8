"""Detached signatures: a small JSON file that says who vouches for the bytes of another file.

What Ed25519 signs is ``DOMAIN`` followed by the JSON of all fields of the signature's file but ``signature`` itself:
schema, algorithm, purpose, fingerprint of the key, comment, and the SHA-512 of the whole file. Every byte of a
signature's file is therefore signed, or is the signature.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import MsgspecError, Struct, convert
from msgspec.json import decode

from guardband.doors.keys import PrivateKey, PublicKey
from guardband.exceptions import SignatureError
from guardband.words import visible

SCHEMA, ALGORITHM = 1, "Ed25519"
DOMAIN = b"guardband signature\n"
"""No other program signs messages that begin so: no signature made for another purpose fits."""
MODEL = "model"
"""The purpose of a signature: a file of another kind needs a signature of its own kind."""
ENDING = ".sig"
LARGEST = 4_000
"""Bytes of a signature's file: with the longest comment, each letter an escape of twelve bytes, less than 3,000."""
LONGEST_COMMENT = 200
AGAIN = "Get both files again from whoever signed them."


class _Schema(Struct):
    schema: int


class _Fields(Struct, forbid_unknown_fields=True):
    """A signature's file."""

    schema: int
    algorithm: str
    purpose: str
    key: str
    comment: str
    sha512: str
    signature: str


@dataclass(frozen=True)
class Signed:
    """What a good signature says: which key vouches for the file of which SHA-512, and in which words."""

    key: str
    comment: str
    sha512: str


def signature_of(body: bytes, key: PrivateKey, purpose: str, comment: str = "") -> bytes:
    """Return a signature's file for the bytes of a file."""
    if len(comment) > LONGEST_COMMENT or not comment.isprintable():
        raise ValueError(f"A comment must be one line of at most {LONGEST_COMMENT} letters. Write a shorter one.")
    signed = {
        "schema": SCHEMA,
        "algorithm": ALGORITHM,
        "purpose": purpose,
        "key": key.fingerprint,
        "comment": comment,
        "sha512": hashlib.sha512(body).hexdigest(),
    }
    return _text({**signed, "signature": key.sign(DOMAIN + _text(signed)).hex()})


def check_signature(signature: bytes, key: PublicKey, purpose: str, path: str, beside: str) -> Signed:
    """Return what a signature says of a file; raise unless the key confirms it, for this purpose.

    Whether the file is the one that was signed is still to be asked: it is if it has the same SHA-512. ``path`` and
    ``beside`` name the file and its signature in errors.
    """
    found = _read(signature, beside)
    if found.algorithm != ALGORITHM:
        raise SignatureError(
            f"{beside} uses the algorithm {_shown(found.algorithm)}, and guardband checks {ALGORITHM}. Ask for a "
            "signature made by guardband sign."
        )
    if found.purpose != purpose:
        raise SignatureError(
            f"{beside} is the signature of a {_shown(found.purpose)}, not of a {purpose}. Name the signature of {path}."
        )
    if found.key != key.fingerprint:
        raise SignatureError(
            f"{path} was signed with another key than the one you trust: {_shown(found.key)}, not {key.fingerprint}. "
            "Ask whoever signed it for the public key, in a way that you trust."
        )
    signed = {name: value for name, value in _as_dict(found).items() if name != "signature"}
    if not key.confirms(_bytes(found.signature), DOMAIN + _text(signed)):
        raise SignatureError(f"{beside} is forged or damaged: the key you trust did not sign what it says. {AGAIN}")
    return Signed(found.key, found.comment, found.sha512)


def _read(signature: bytes, beside: str) -> _Fields:
    """Return the fields of a signature's file; only the one way in which guardband writes them is read."""
    why = f"{beside} is no signature that guardband wrote, or it was changed or cut short. {AGAIN}"
    try:
        raw = decode(signature)
        schema = convert(raw, _Schema).schema
        found = convert(raw, _Fields) if schema == SCHEMA else None
    except (MsgspecError, ValueError, RecursionError):
        raise SignatureError(why) from None
    if schema > SCHEMA:
        raise SignatureError(f"{beside} was written by a newer guardband. Upgrade guardband.")
    if found is None or _text(_as_dict(found)) != signature:
        raise SignatureError(why)
    return found


def _as_dict(found: _Fields) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__struct_fields__}


def _text(fields: Mapping[str, Any]) -> bytes:
    """Return fields as JSON, in one way only: sorted, in ASCII, on one line."""
    return json.dumps(dict(fields), sort_keys=True, ensure_ascii=True).encode("ascii")


def _bytes(text: str) -> bytes:
    """Return what text says in hexadecimal digits; only small ones without blanks are read, and otherwise nothing."""
    try:
        found = bytes.fromhex(text)
    except ValueError:
        return b""
    return found if found.hex() == text else b""


def _shown(text: str) -> str:
    return visible(" ".join(text[:LONGEST_COMMENT].split()))
