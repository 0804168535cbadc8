"""``gb.load(..., trusted=...)``: only the bytes that were checked are parsed, and nothing is if the check fails."""

import hashlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import guardband as gb
from guardband.doors import file_format, signed_file
from guardband.doors.keys import PrivateKey, make_keys
from guardband.doors.signed_file import sign_file, signature_beside
from guardband.exceptions import SignatureError


def rule(level):
    x, y = np.random.default_rng(0).standard_normal((2, 100))
    return gb.BandCalibrator(confidence_level=level).fit(x - 1, x, x + 1, y)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signed")
    rule(0.9).save(folder / "m.guardband")
    pair = make_keys(folder / "k")
    sign_file(folder / "m.guardband", PrivateKey.read(pair.private), folder / "m.guardband.sig")
    return folder


@pytest.fixture
def signed(made, tmp_path):
    """Return the paths of a model and of the public key; its signature lies beside it."""
    for name in ("m.guardband", "m.guardband.sig", "k.public.pem", "k.private.pem"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    (tmp_path / "k.private.pem").chmod(0o600)
    return tmp_path / "m.guardband", tmp_path / "k.public.pem"


@pytest.fixture
def nothing_is_parsed(monkeypatch):
    def parsed(*_):
        raise AssertionError("something was parsed")

    for name in ("from_bytes", "decode", "schema_of", "entries_of"):
        monkeypatch.setattr(file_format, name, parsed)


def test_a_signed_model_is_loaded_with_its_key(signed):
    path, key = signed
    assert gb.load(path, trusted=key).certificate == rule(0.9).certificate
    assert gb.load(str(path), trusted=key.read_text()).certificate == rule(0.9).certificate
    moved = path.with_name("elsewhere.sig")
    signature_beside(path).rename(moved)
    assert gb.load(path, trusted=key, signature=moved).certificate == rule(0.9).certificate


@pytest.mark.usefixtures("nothing_is_parsed")
def test_any_changed_byte_is_refused_and_nothing_parsed(signed):
    path, key = signed
    random, body = np.random.default_rng(0), path.read_bytes()
    for at in [0, len(body) - 1, *random.integers(0, len(body), 200)]:
        damaged = bytearray(body)
        damaged[at] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(SignatureError, match="is not the file that was signed"):
            gb.load(path, trusted=key)


@pytest.mark.usefixtures("nothing_is_parsed")
@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (
            lambda path: signature_beside(path).unlink(),
            r"has no signature \(.*sig\). Sign it with guardband sign, or remove",
        ),
        (lambda path: signature_beside(path).write_bytes(b""), "is no signature that guardband wrote"),
        (lambda path: signature_beside(path).write_bytes(b" " * 10**7), "more than 4,000 bytes, and is no signature"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "is not the file that was signed"),
        (lambda path: path.write_bytes(b""), "is not the file that was signed"),
        (lambda path: path.unlink(), "The model .* cannot be read: No such file"),
        (lambda path: make_other_key(path), "another key than the one you trust"),
        (lambda path: replace_by(path, "/dev/zero"), "is no file, and cannot be a model"),
        (lambda path: replace_by(signature_beside(path), "/dev/zero"), "is no file, and cannot be a signature"),
        (lambda path: replace_by(signature_beside(path), path), "is no signature|more than 4,000 bytes"),
        (lambda path: replace_by(signature_beside(path), path.parent), "is no file, and cannot be a signature"),
        (lambda path: replace_by(path, path), "cannot be read: Too many levels"),
        (lambda path: replace_by_pipe(path), "is no file, and cannot be a model"),
        (lambda path: replace_by_pipe(signature_beside(path)), "is no file, and cannot be a signature"),
    ],
)
def test_what_is_not_signed_as_it_stands_is_refused_and_nothing_parsed(signed, harm, words):
    path, key = signed
    harm(path)
    with pytest.raises(SignatureError, match=words) as error:
        gb.load(path, trusted=key)
    assert isinstance(error.value, gb.ModelFileError)


def make_other_key(path):
    for name in ("k.private.pem", "k.public.pem"):
        (path.parent / name).unlink()
    make_keys(path.parent / "k")


def replace_by(path, other):
    path.unlink()
    path.symlink_to(other)


def replace_by_pipe(path):
    path.unlink()
    os.mkfifo(path)


def test_a_link_to_a_signed_model_and_its_signature_is_followed(signed, tmp_path):
    path, key = signed
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "link.sig").symlink_to(signature_beside(path))
    assert gb.load(tmp_path / "link", trusted=key).certificate == rule(0.9).certificate


@pytest.mark.parametrize("then", ["replaced", "removed", "cut"])
def test_a_file_that_changes_after_the_check_does_not_matter(signed, monkeypatch, then):
    path, key = signed
    other = path.with_name("other")
    rule(0.5).save(other)
    read = signed_file.read_known

    def read_and_change(*given):
        found = read(*given)
        {
            "replaced": lambda: other.replace(path),
            "removed": path.unlink,
            "cut": lambda: path.write_bytes(b""),
        }[then]()
        return found

    monkeypatch.setattr(signed_file, "read_known", read_and_change)
    assert gb.load(path, trusted=key).certificate == rule(0.9).certificate


def test_a_file_that_changes_between_its_checksum_and_its_reading_is_refused(signed, monkeypatch):
    """It is read twice, and hashed both times: what is used must be what was checked."""
    path, key = signed
    other = path.with_name("other")
    rule(0.5).save(other)
    digest = hashlib.file_digest

    def digest_and_change(file, name):
        found = digest(file, name)
        path.write_bytes(other.read_bytes())
        return found

    monkeypatch.setattr(hashlib, "file_digest", digest_and_change)
    with pytest.raises(SignatureError, match="is not the file that was signed"):
        gb.load(path, trusted=key)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to limit memory")
def test_a_huge_file_in_the_place_of_a_model_takes_no_memory(signed):
    """A quarter of a gigabyte that was not signed, with room for half of it."""
    path, key = signed
    with path.open("wb") as file:
        file.truncate(1 << 28)
    program = """
        import resource, sys
        from guardband.doors.signed_file import check_file
        from guardband.exceptions import SignatureError

        def check():
            try:
                check_file(sys.argv[1], sys.argv[2])
            except SignatureError as error:
                return str(error)

        with open(sys.argv[1], "rb+") as file:
            check()  # what is loaded for it
            taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 27), taken + (1 << 27)))
            file.write(b"again")
        print(check())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(path), str(key)], capture_output=True, text=True
    )
    assert "is not the file that was signed" in done.stdout, done.stderr


def test_a_signature_without_a_key_is_refused(signed):
    with pytest.raises(ValueError, match=r"there is none\. Pass trusted="):
        gb.load(signed[0], signature=signature_beside(signed[0]))


def test_what_is_no_model_is_not_signed(signed, tmp_path):
    (tmp_path / "page.html").write_text("<p>")
    with pytest.raises(gb.ModelFileError, match="no guardband model"):
        sign_file(tmp_path / "page.html", PrivateKey.read(tmp_path / "k.private.pem"), tmp_path / "page.html.sig")
    assert not (tmp_path / "page.html.sig").exists()


def test_the_state_of_a_monitor_is_not_signed_as_a_model(signed, tmp_path):
    gb.Monitor(rule(0.9)).save(tmp_path / "m.monitor")
    with pytest.raises(gb.ModelFileError, match="no guardband model"):
        sign_file(tmp_path / "m.monitor", PrivateKey.read(tmp_path / "k.private.pem"), tmp_path / "out")


def test_a_signature_is_the_same_each_time(signed, tmp_path):
    sign_file(signed[0], PrivateKey.read(tmp_path / "k.private.pem"), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == signature_beside(signed[0]).read_bytes()
