"""Keys of Ed25519 that sign models: made in pairs, read from PEM files, told apart by their fingerprints."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from guardband.data.files import sweep, write_new
from guardband.data.packages import need_packages
from guardband.doors.read_once import read_once
from guardband.exceptions import SignatureError

PRIVATE, PUBLIC = ".private.pem", ".public.pem"
"""How the names of the two files of a pair end."""
LARGEST = 10_000
"""Bytes of a key's file: a PEM file of Ed25519 has about 120."""
HOW_TO_MAKE = "guardband keys NAME makes a pair of keys."


@dataclass(frozen=True)
class PublicKey:
    """A public key: its fingerprint, and whether it confirms the signature of a message."""

    fingerprint: str
    confirms: Callable[[bytes, bytes], bool] = field(repr=False)

    @classmethod
    def of(cls, trusted: Any) -> PublicKey:
        """Return the key in a PEM file, in PEM text, or in an object of the package cryptography."""
        package = _cryptography()
        key, where = trusted, "trusted"
        if not hasattr(trusted, "public_bytes") and not hasattr(trusted, "private_bytes"):
            text, where = _pem_of(trusted)
            if b"PRIVATE KEY" in text:
                raise SignatureError(_not_the_private(where))
            try:
                key = package.serialization.load_pem_public_key(text)
            except (ValueError, package.UnsupportedAlgorithm):
                raise SignatureError(f"{where} is no public key in PEM format. {HOW_TO_MAKE}") from None
        if hasattr(key, "private_bytes"):
            raise SignatureError(_not_the_private(where))
        if not isinstance(key, package.ed25519.Ed25519PublicKey):
            raise SignatureError(f"{where} is a key of another algorithm than Ed25519. {HOW_TO_MAKE}")

        def confirms(signature: bytes, message: bytes) -> bool:
            try:
                key.verify(signature, message)
            except package.InvalidSignature:
                return False
            return True

        return cls(_fingerprint(key), confirms)


@dataclass(frozen=True)
class PrivateKey:
    """A private key: the fingerprint of its public key, and the function that signs a message."""

    fingerprint: str
    sign: Callable[[bytes], bytes] = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> PrivateKey:
        """Return the key in a PEM file that nobody else may read."""
        key = _private_key(path)
        return cls(_fingerprint(key.public_key()), key.sign)


@dataclass(frozen=True)
class KeyPair:
    """The files of a pair of keys, its fingerprint, and whether its private key is new."""

    private: Path
    public: Path
    fingerprint: str
    is_new: bool


def make_keys(name: Path) -> KeyPair:
    """Write ``NAME.private.pem``, which only its owner may read, and ``NAME.public.pem``; nothing is overwritten.

    A private key of yours without its public key, as a process leaves it that was killed, gets its public key.
    """
    if not name.name:
        raise ValueError(f"A pair of keys needs a name, found {str(name)!r}. Use a name such as release.")
    package = _cryptography()
    private, public = (name.with_name(name.name + ending) for ending in (PRIVATE, PUBLIC))
    if os.path.lexists(public):
        raise _is_there(public)
    pem, nothing = package.serialization.Encoding.PEM, package.serialization.NoEncryption()
    is_new = not os.path.lexists(private)
    if is_new:
        key = package.ed25519.Ed25519PrivateKey.generate()
        _write_new(private, key.private_bytes(pem, package.serialization.PrivateFormat.PKCS8, nothing), 0o600)
    else:
        key = _left_alone(private)
        sweep(private)
    known = key.public_key().public_bytes(pem, package.serialization.PublicFormat.SubjectPublicKeyInfo)
    _write_new(public, known, 0o644)
    return KeyPair(private, public, _fingerprint(key.public_key()), is_new)


def _left_alone(path: Path) -> Any:
    """Return a private key whose public key is missing, if it is our own: nobody else may give us one."""
    if path.is_symlink() or (hasattr(os, "geteuid") and path.stat().st_uid != os.geteuid()):
        raise _is_there(path)
    try:
        return _private_key(path)
    except SignatureError:
        raise _is_there(path) from None


def _private_key(path: Path) -> Any:
    package = _cryptography()
    text = read_once(path, "key", LARGEST, lambda status: _need_own(status, path))
    if b"PUBLIC KEY" in text:
        raise SignatureError(f"{path} is a public key, and cannot sign. Name the private key.")
    try:
        key = package.serialization.load_pem_private_key(text, password=None)
    except TypeError:
        raise SignatureError(
            f"{path} has a passphrase, and guardband reads only keys without one. {HOW_TO_MAKE}"
        ) from None
    except (ValueError, package.UnsupportedAlgorithm):
        raise SignatureError(f"{path} is no private key in PEM format. {HOW_TO_MAKE}") from None
    if not isinstance(key, package.ed25519.Ed25519PrivateKey):
        raise SignatureError(f"{path} is a key of another algorithm than Ed25519. {HOW_TO_MAKE}")
    return key


def _cryptography() -> SimpleNamespace:
    """Return what is used of the package cryptography."""
    need_packages("sign", "cryptography")
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    return SimpleNamespace(
        InvalidSignature=InvalidSignature,
        UnsupportedAlgorithm=UnsupportedAlgorithm,
        serialization=serialization,
        ed25519=ed25519,
    )


def _fingerprint(key: Any) -> str:
    """Return the SHA-256 of a public key as its PEM file holds it: of the bytes between the first and last line."""
    formats = _cryptography().serialization
    return hashlib.sha256(key.public_bytes(formats.Encoding.DER, formats.PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _write_new(path: Path, body: bytes, mode: int) -> None:
    try:
        write_new(path, body, mode)
    except FileExistsError:
        raise _is_there(path) from None


def _is_there(path: Path) -> FileExistsError:
    return FileExistsError(f"{path} is there already, and guardband replaces no key. Choose another name.")


def _need_own(status: os.stat_result, path: Path) -> None:
    """Raise if others than the owner may read a private key; Windows has other rights."""
    if os.name == "posix" and stat.S_IMODE(status.st_mode) & 0o077:
        raise SignatureError(
            f"Others may read the private key {path}. If nobody has, forbid it with: chmod 600 {path}. Otherwise make "
            "a new pair of keys."
        )


def _pem_of(trusted: Any) -> tuple[bytes, str]:
    """Return PEM text, and where it comes from in words."""
    if isinstance(trusted, str) and trusted.lstrip().startswith("-----BEGIN"):
        return trusted.encode(), "trusted"
    if isinstance(trusted, bytes):
        return trusted, "trusted"
    if isinstance(trusted, str | os.PathLike):
        return read_once(Path(trusted), "key", LARGEST), str(trusted)
    raise TypeError(
        f"trusted must be a public key: the path of a PEM file, or its text, found {type(trusted).__name__}. "
        f"{HOW_TO_MAKE}"
    )


def _not_the_private(where: str) -> str:
    return f"{where} is a private key, which must stay with whoever signs. Use the public key."
