"""Keys: made in pairs and never replaced, read only from plain PEM files of Ed25519, private ones from their owner."""

import hashlib
import os
import signal
import stat
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from guardband.doors.keys import PrivateKey, PublicKey, make_keys
from guardband.exceptions import SignatureError

PEM, DER = serialization.Encoding.PEM, serialization.Encoding.DER
PKCS8, KNOWN = serialization.PrivateFormat.PKCS8, serialization.PublicFormat.SubjectPublicKeyInfo
OPEN = serialization.NoEncryption()


@pytest.fixture
def pair(tmp_path):
    return make_keys(tmp_path / "release")


def own_file(path, body):
    path.write_bytes(body)
    path.chmod(0o600)
    return path


def test_a_pair_signs_and_confirms(pair):
    private, public = PrivateKey.read(pair.private), PublicKey.of(pair.public)
    assert private.fingerprint == public.fingerprint == pair.fingerprint
    assert public.confirms(private.sign(b"words"), b"words")
    assert not public.confirms(private.sign(b"words"), b"other words")


def test_the_fingerprint_is_the_sha256_of_the_public_key(pair):
    key = serialization.load_pem_public_key(pair.public.read_bytes())
    assert pair.fingerprint == hashlib.sha256(key.public_bytes(DER, KNOWN)).hexdigest()


@pytest.mark.skipif(os.name != "posix", reason="Windows has other rights")
@pytest.mark.parametrize("mask", [0, 0o022, 0o277])
def test_only_the_owner_may_read_a_private_key_whatever_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        pair = make_keys(tmp_path / "k")
    finally:
        os.umask(before)
    assert stat.S_IMODE(pair.private.stat().st_mode) & 0o177 == 0


def test_two_pairs_differ(tmp_path):
    assert make_keys(tmp_path / "a").fingerprint != make_keys(tmp_path / "b").fingerprint


@pytest.mark.parametrize("ending", [".private.pem", ".public.pem"])
@pytest.mark.parametrize("kind", ["file", "link", "link to nothing"])
def test_no_key_is_replaced_and_no_link_followed(tmp_path, ending, kind):
    there, other = tmp_path / f"k{ending}", tmp_path / "other"
    other.write_text("precious")
    if kind == "file":
        there.write_text("precious")
    else:
        there.symlink_to(other if kind == "link" else tmp_path / "nothing")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(FileExistsError, match="guardband replaces no key"):
        make_keys(tmp_path / "k")
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert other.read_text() == "precious"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork to be killed")
@pytest.mark.parametrize("call", ["fsync", "link", "chmod", "unlink"])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("after", [False, True])
def test_whenever_a_process_is_killed_the_same_call_makes_the_pair(tmp_path, call, number, after):
    """It is killed before or after its n-th call of the system."""
    child = os.fork()
    if child == 0:
        own, calls = getattr(os, call), []

        def killed(*given, **named):
            calls.append(given)
            if after:
                own(*given, **named)
            if len(calls) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return None if after else own(*given, **named)

        setattr(os, call, killed)
        make_keys(tmp_path / "k")
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if not path.name.startswith(".")}
    if tmp_path / "k.public.pem" in before:
        assert len(before) == 2
        (tmp_path / "k.public.pem").unlink()
    pair = make_keys(tmp_path / "k")
    assert PrivateKey.read(pair.private).fingerprint == PublicKey.of(pair.public).fingerprint == pair.fingerprint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.private.pem", "k.public.pem"]
    assert all(path.read_bytes() == body for path, body in before.items())
    assert pair.is_new == (pair.private not in before)


def test_a_private_key_of_somebody_else_gets_no_public_key(pair, tmp_path, monkeypatch):
    """Who may write into the same folder could have put it there, and could sign in our name."""
    pair.public.unlink()
    (tmp_path / "link.private.pem").symlink_to(pair.private)
    with pytest.raises(FileExistsError, match="guardband replaces no key"):
        make_keys(tmp_path / "link")
    if hasattr(os, "geteuid"):
        monkeypatch.setattr(os, "geteuid", lambda: pair.private.stat().st_uid + 1)
        with pytest.raises(FileExistsError, match="guardband replaces no key"):
            make_keys(tmp_path / "release")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.private.pem", "release.private.pem"]


def test_a_pair_needs_a_name():
    with pytest.raises(ValueError, match="needs a name"):
        make_keys(Path(""))


@pytest.mark.skipif(os.name != "posix", reason="Windows has other rights")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o644, 0o777])
def test_a_private_key_that_others_may_use_is_refused(pair, mode):
    pair.private.chmod(mode)
    with pytest.raises(SignatureError, match=r"Others may read the private key .* chmod 600"):
        PrivateKey.read(pair.private)


def test_a_public_key_may_be_text_or_bytes_or_an_object(pair):
    text = pair.public.read_text()
    key = serialization.load_pem_public_key(text.encode())
    for given in (pair.public, str(pair.public), text, f"\n{text}", text.encode(), key):
        assert PublicKey.of(given).fingerprint == pair.fingerprint


def test_the_two_keys_cannot_be_mistaken_for_each_other(pair):
    private = serialization.load_pem_private_key(pair.private.read_bytes(), None)
    for given in (pair.private, pair.private.read_text(), private):
        with pytest.raises(SignatureError, match=r"a private key, .* Use the public key\."):
            PublicKey.of(given)
    pair.public.chmod(0o600)
    with pytest.raises(SignatureError, match="Name the private key"):
        PrivateKey.read(pair.public)


@pytest.mark.parametrize(
    "make", [lambda: ec.generate_private_key(ec.SECP256R1()), lambda: rsa.generate_private_key(65537, 2048)]
)
def test_keys_of_other_algorithms_are_refused(make, tmp_path):
    key = make()
    with pytest.raises(SignatureError, match="another algorithm than Ed25519"):
        PublicKey.of(key.public_key().public_bytes(PEM, KNOWN))
    with pytest.raises(SignatureError, match="another algorithm than Ed25519"):
        PublicKey.of(key.public_key())
    with pytest.raises(SignatureError, match="another algorithm than Ed25519"):
        PrivateKey.read(own_file(tmp_path / "k", key.private_bytes(PEM, PKCS8, OPEN)))


def test_a_key_with_a_passphrase_is_refused(tmp_path):
    locked = ed25519.Ed25519PrivateKey.generate().private_bytes(
        PEM, PKCS8, serialization.BestAvailableEncryption(b"secret")
    )
    with pytest.raises(SignatureError, match="has a passphrase"):
        PrivateKey.read(own_file(tmp_path / "k", locked))


@pytest.mark.parametrize(
    "body", [b"", b"words", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", b"\0" * 99]
)
def test_what_is_no_key_is_refused(tmp_path, body):
    path = own_file(tmp_path / "k", body)
    with pytest.raises(SignatureError, match="no public key in PEM format"):
        PublicKey.of(path)
    with pytest.raises(SignatureError, match=r"no private key in PEM format|is a public key"):
        PrivateKey.read(path)


def test_what_is_no_key_file_is_refused(tmp_path):
    for path, words in [(tmp_path / "none", "cannot be read"), (tmp_path, "is no file")]:
        with pytest.raises(SignatureError, match=words):
            PublicKey.of(path)
    with pytest.raises(SignatureError, match="more than 10,000 bytes"):
        PublicKey.of(own_file(tmp_path / "long", b"-" * 20_000))
    with pytest.raises(TypeError, match="trusted must be a public key"):
        PublicKey.of(3)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_or_a_device_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for name in ("pipe", "endless"):
        with pytest.raises(SignatureError, match="is no file"):
            PublicKey.of(tmp_path / name)


def test_without_cryptography_the_install_command_is_told(pair, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setattr("guardband.data.packages.find_spec", lambda name: None)
    for call, given in ((PublicKey.of, pair.public), (PrivateKey.read, pair.private), (make_keys, pair.public)):
        with pytest.raises(ModuleNotFoundError, match=r'needs cryptography: pip install "guardband\[sign\]"'):
            call(given)
