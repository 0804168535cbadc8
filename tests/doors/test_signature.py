"""Signatures: whatever is changed in a file, in its signature or in what it is for, nothing passes."""

import hashlib
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from guardband.doors.keys import PrivateKey, PublicKey
from guardband.doors.signature import DOMAIN, LARGEST, LONGEST_COMMENT, MODEL, check_signature, signature_of
from guardband.doors.signed_file import check_file
from guardband.exceptions import SignatureError

SECRETS = [Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32) for i in range(2)]
PUBLIC, OTHER = (PublicKey.of(secret.public_key()) for secret in SECRETS)
PRIVATE = PrivateKey(PUBLIC.fingerprint, SECRETS[0].sign)
BODY = bytes(range(64))
SIGNATURE = signature_of(BODY, PRIVATE, MODEL, "house prices")


def check(signature=SIGNATURE, key=PUBLIC, purpose=MODEL):
    return check_signature(signature, key, purpose, "m.guardband", "m.guardband.sig")


def check_with(body, folder, signature=SIGNATURE):
    (folder / "m").write_bytes(body)
    (folder / "m.sig").write_bytes(signature)
    return check_file(folder / "m", SECRETS[0].public_key())


def changed(**fields):
    """Return a signature's file with other fields, written as guardband would."""
    return json.dumps(json.loads(SIGNATURE) | fields, sort_keys=True).encode()


def signed_anew(key=SECRETS[0], **fields):
    """Return a signature's file with other fields, signed with a key."""
    known = {name: value for name, value in (json.loads(SIGNATURE) | fields).items() if name != "signature"}
    signature = key.sign(DOMAIN + json.dumps(known, sort_keys=True).encode())
    return json.dumps(known | {"signature": signature.hex()}, sort_keys=True).encode()


def flips(body):
    for at in range(8 * len(body)):
        damaged = bytearray(body)
        damaged[at // 8] ^= 1 << at % 8
        yield bytes(damaged)


def test_a_good_signature_says_who_vouches_and_for_what():
    assert check().key == PUBLIC.fingerprint
    assert check().comment == "house prices"
    assert check().sha512 == hashlib.sha512(BODY).hexdigest()
    assert len(SIGNATURE) < LARGEST


def test_what_is_signed_is_the_domain_and_every_field_with_the_sha512_of_the_file():
    fields = {
        "algorithm": "Ed25519",
        "comment": "house prices",
        "key": PUBLIC.fingerprint,
        "purpose": "model",
        "schema": 1,
        "sha512": hashlib.sha512(BODY).hexdigest(),
    }
    message = b"guardband signature\n" + json.dumps(fields).encode()
    SECRETS[0].public_key().verify(bytes.fromhex(json.loads(SIGNATURE)["signature"]), message)


def test_any_flipped_bit_of_the_file_is_refused(tmp_path):
    file, signed = check_with(BODY, tmp_path)
    assert (file.body, signed) == (BODY, check())
    for body in flips(BODY):
        with pytest.raises(SignatureError, match="is not the file that was signed"):
            check_with(body, tmp_path)


def test_any_flipped_bit_of_the_signature_is_refused():
    for signature in flips(SIGNATURE):
        with pytest.raises(SignatureError):
            check(signature=signature)


def test_a_signature_that_is_cut_short_or_longer_is_refused(tmp_path):
    for n in range(len(SIGNATURE)):
        with pytest.raises(SignatureError):
            check(signature=SIGNATURE[:n])
    for more in (b" ", b"\n", b"\0", b"{}", SIGNATURE):
        for signature in (SIGNATURE + more, more + SIGNATURE):
            with pytest.raises(SignatureError):
                check(signature=signature)
    for body in (BODY[:-1], b"", BODY + b"\0"):
        with pytest.raises(SignatureError, match="is not the file that was signed"):
            check_with(body, tmp_path)


@given(st.binary(max_size=600))
@settings(max_examples=300, deadline=None)
def test_no_other_bytes_are_a_signature(signature):
    with pytest.raises(SignatureError):
        check(signature=signature)


@given(st.integers(0, len(SIGNATURE)), st.integers(0, 40), st.binary(max_size=40))
@settings(max_examples=500, deadline=None)
def test_no_edited_signature_passes(at, dropped, added):
    edited = SIGNATURE[:at] + added + SIGNATURE[at + dropped :]
    if edited != SIGNATURE:
        with pytest.raises(SignatureError):
            check(signature=edited)


def test_another_key_is_refused_by_its_fingerprint():
    with pytest.raises(SignatureError, match=f"another key than the one you trust: {PUBLIC.fingerprint}, not"):
        check(key=OTHER)


def test_who_writes_a_trusted_fingerprint_still_lacks_the_key():
    with pytest.raises(SignatureError, match="forged or damaged"):
        check(signature=signed_anew(SECRETS[1]))
    with pytest.raises(SignatureError, match="forged or damaged"):
        check(signed_anew(SECRETS[1], sha512=hashlib.sha512(b"another file").hexdigest()))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"algorithm": "none"}, "uses the algorithm none, and guardband checks Ed25519"),
        ({"algorithm": "HMAC"}, "uses the algorithm HMAC"),
        ({"purpose": "state"}, "is the signature of a state, not of a model"),
        ({"schema": 2}, r"by a newer guardband\. Upgrade guardband\."),
        ({"schema": 0}, "is no signature that guardband wrote"),
        ({"comment": "another"}, "forged or damaged"),
        ({"signature": ""}, "forged or damaged"),
        ({"signature": "00" * 64}, "forged or damaged"),
        ({"signature": json.loads(SIGNATURE)["signature"].upper()}, "forged or damaged"),
        ({"signature": " " + json.loads(SIGNATURE)["signature"]}, "forged or damaged"),
        ({"signature": "no digits"}, "forged or damaged"),
        ({"sha512": json.loads(SIGNATURE)["sha512"].upper()}, "forged or damaged"),
        ({"extra": 1}, "is no signature that guardband wrote"),
        ({"schema": "1"}, "is no signature that guardband wrote"),
        ({"schema": True}, "is no signature that guardband wrote"),
        ({"schema": 1.0}, "is no signature that guardband wrote"),
        ({"key": None}, "is no signature that guardband wrote"),
        ({"algorithm": "\x1b[31m\n" * 1000}, r"\\x1b\[31m"),
    ],
)
def test_changed_fields_are_refused_with_the_reason(fields, words):
    with pytest.raises(SignatureError, match=words) as error:
        check(signature=changed(**fields))
    assert "\x1b" not in str(error.value)
    assert len(str(error.value)) < 2000


@pytest.mark.parametrize("fields", [{"algorithm": "none"}, {"purpose": "state"}, {"schema": 2}, {"schema": 0}])
def test_a_signature_for_something_else_is_refused_though_the_key_made_it(fields):
    with pytest.raises(SignatureError):
        check(signature=signed_anew(**fields))


def test_a_signature_of_one_kind_of_file_does_not_fit_another_kind():
    with pytest.raises(SignatureError, match="is the signature of a state, not of a model"):
        check(signature=signature_of(BODY, PRIVATE, "state"))
    with pytest.raises(SignatureError, match="forged or damaged"):
        check(
            signature=changed(signature=json.loads(signature_of(BODY, PRIVATE, "state", "house prices"))["signature"])
        )


def test_the_bytes_signed_without_the_domain_do_not_pass():
    known = {name: value for name, value in json.loads(SIGNATURE).items() if name != "signature"}
    bare = SECRETS[0].sign(json.dumps(known, sort_keys=True).encode())
    for signature in (bare, SECRETS[0].sign(BODY), SECRETS[0].sign(hashlib.sha512(BODY).digest())):
        with pytest.raises(SignatureError, match="forged or damaged"):
            check(signature=changed(signature=signature.hex()))


def test_a_second_statement_of_a_field_is_refused():
    twice = SIGNATURE[:-1] + b', "comment": "house prices"}'
    with pytest.raises(SignatureError, match="is no signature that guardband wrote"):
        check(signature=twice)


def test_deep_json_is_refused():
    for signature in (b"[" * LARGEST, b'{"a":' * (LARGEST // 5)):
        with pytest.raises(SignatureError, match="is no signature that guardband wrote"):
            check(signature=signature)


@pytest.mark.parametrize("comment", ["", "größe", "日付", "\N{GRINNING FACE}" * LONGEST_COMMENT, 'say "hi" \\'])
def test_comments_come_back_and_fit(comment):
    signature = signature_of(BODY, PRIVATE, MODEL, comment)
    assert len(signature) <= LARGEST
    assert check(signature=signature).comment == comment


@pytest.mark.parametrize("comment", ["two\nlines", "\x1b[31m", "a" * (LONGEST_COMMENT + 1), "\ud800"])
def test_a_comment_is_one_printable_line(comment):
    with pytest.raises(ValueError, match="one line of at most 200 letters"):
        signature_of(BODY, PRIVATE, MODEL, comment)
