"""Model files that a trusted key vouches for: their very bytes are checked before anything of them is parsed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from guardband.doors.keys import PrivateKey, PublicKey
from guardband.doors.read_once import AnyPath, ReadFile, read_known, read_once
from guardband.doors.signature import AGAIN, ENDING, LARGEST, MODEL, Signed, check_signature, signature_of
from guardband.exceptions import SignatureError


def signature_beside(path: AnyPath) -> Path:
    """Return where the signature of a file is looked for: ``house.guardband.sig``."""
    place = Path(path)
    return place.with_name(place.name + ENDING)


def check_file(
    path: AnyPath, trusted: Any, signature: AnyPath | None = None, otherwise: str = ""
) -> tuple[ReadFile, Signed]:
    """Return a model file and what its signature says; raise ``SignatureError`` unless a trusted key has signed it.

    ``otherwise`` says what else to do if there is no signature.
    """
    key = PublicKey.of(trusted)
    beside = signature_beside(path) if signature is None else Path(signature)
    if signature is None and Path(path).exists() and not os.path.lexists(beside):
        raise SignatureError(f"{path} has no signature ({beside}). Sign it with guardband sign{otherwise}.")
    signed = check_signature(read_once(beside, "signature", LARGEST), key, MODEL, str(path), str(beside))
    body = read_known(Path(path), "model", signed.sha512)
    if body is None:
        raise SignatureError(f"{path} is not the file that was signed: it was changed, or is another one. {AGAIN}")
    return ReadFile(Path(path), body), signed


def trusted_file(path: AnyPath, trusted: Any, signature: AnyPath | None = None) -> AnyPath:
    """Return a model file that a trusted key has signed; without a key, the path as it is."""
    if trusted is not None:
        return check_file(path, trusted, signature, ", or remove --trusted (in Python, trusted)")[0]
    if signature is not None:
        raise ValueError("A signature is checked with a public key, and there is none. Pass trusted=... too.")
    return path


def sign_file(path: Path, key: PrivateKey, output: Path, comment: str = "") -> None:
    """Write the signature of a model file; what is no model is not signed."""
    from guardband.data.files import write_whole
    from guardband.doors.file_format import read

    file = ReadFile(path, read_once(path, "model"))
    read(file)
    text = signature_of(file.body, key, MODEL, comment)
    write_whole(output, lambda part: part.write_bytes(text))
