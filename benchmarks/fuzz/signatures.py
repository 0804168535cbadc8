"""Signatures and keys: no other file than the one that was signed may pass, and no other key than the right one."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from judging import Find, Target, refused
from mutate import Raw, changed_json

from guardband.doors.keys import PrivateKey, PublicKey
from guardband.doors.signature import MODEL, check_signature, signature_of
from guardband.exceptions import SignatureError

SECRET = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PEM = serialization.Encoding.PEM
PRIVATE = SECRET.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
PUBLIC = SECRET.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
BODY = b"the bytes of a model"


def _key() -> PrivateKey:
    path = Path("key.private.pem")
    path.write_bytes(PRIVATE)
    path.chmod(0o600)
    return PrivateKey.read(path)


def signature(data: bytes) -> None:
    """Check a signature: of all files, only one that guardband can have written passes."""
    key = PublicKey.of(PUBLIC)

    def check() -> None:
        found = check_signature(data, key, MODEL, "model", "model.sig")
        if signature_of(BODY, PrivateKey(key.fingerprint, SECRET.sign), MODEL, found.comment) != data:
            raise Find("a signature passes that nobody made")

    refused(check)


def key(data: bytes) -> None:
    """Read a public and a private key."""
    path = Path("key")
    path.write_bytes(data)
    path.chmod(0o600)
    for read in (lambda: PublicKey.of(data), lambda: PublicKey.of(path), lambda: PrivateKey.read(path)):
        try:
            if not refused(read) and not (b"PUBLIC" in data or b"PRIVATE" in data):
                raise Find("a key is read that is none")
        except SignatureError as error:
            raise Find("a refusal passed") from error


def _signatures() -> dict[str, bytes]:
    own = _key()
    return {name: signature_of(BODY, own, MODEL, name) for name in ("", "house prices, é")} | {
        "other purpose": signature_of(BODY, own, "other")
    }


def _changed(data: bytes, most: int, seed: int, raw: Raw) -> bytes:
    chance = random.Random(seed)
    made = changed_json(data, most, chance, raw)
    if chance.random() < 0.7:  # in the way in which guardband writes it
        with suppress(ValueError, RecursionError, TypeError):
            made = json.dumps(json.loads(made), sort_keys=True).encode()[:most]
    return made


def _keys() -> dict[str, bytes]:
    other = ec.generate_private_key(ec.SECP256R1())
    return {
        "public": PUBLIC,
        "private": PRIVATE,
        "other": other.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        "passphrase": SECRET.private_bytes(
            PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
        ),
    }


WORDS = ("-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----", "-----BEGIN PRIVATE KEY-----", "RSA ", "EC ", "DSA ")
TARGETS = {
    "signatures": Target(signature, _signatures, _changed, longest=4_500),
    "keys": Target(key, _keys, longest=1_000, words=WORDS),
}
