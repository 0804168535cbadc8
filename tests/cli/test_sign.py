"""``guardband keys``, ``sign``, ``verify`` and ``--trusted``: one clear line, and no untrusted model is parsed."""

import os
import re
import stat
from importlib.util import find_spec

import pytest
from pyarrow import csv

from cli_tables import small_table
from guardband.doors import file_format, signed_file


@pytest.fixture
def signed(command, small_model, tmp_path, monkeypatch):
    """Make the files m.guardband, m.guardband.sig, a pair of keys k, and a table t.csv, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.guardband").write_bytes(small_model.model_path.read_bytes())
    csv.write_csv(small_table(seed=1), tmp_path / "t.csv")
    assert command("keys", "k", "--quiet").code == 0
    assert command("sign", "m.guardband", "--key", "k.private.pem", "--comment", "house prices").code == 0
    return tmp_path


def test_keys_sign_verify(command, signed):
    said = command("verify", "m.guardband", "--key", "k.public.pem", "--json")
    assert said.code == 0, said.err
    assert said.json["comment"] == "house prices"
    other = command("keys", "other", "--json").json
    assert len(other["fingerprint"]) == 64
    assert stat.S_IMODE(os.stat(other["private"]).st_mode) == 0o600 or os.name != "posix"
    said = command("sign", "m.guardband", "--key", other["private"], "-o", "other.sig", "--json")
    assert said.json["fingerprint"] == other["fingerprint"]
    said = command("verify", "m.guardband", "--key", other["public"], "--signature", "other.sig")
    assert said.code == 0
    assert f"unchanged since it was signed by the key {other['fingerprint']}" in said.out


def test_keys_are_never_replaced(command, signed):
    before = (signed / "k.private.pem").read_bytes()
    assert "replaces no key" in command("keys", "k").complaint
    assert (signed / "k.private.pem").read_bytes() == before


def test_a_changed_model_is_refused_in_one_line(command, signed):
    body = bytearray((signed / "m.guardband").read_bytes())
    body[len(body) // 2] ^= 1
    (signed / "m.guardband").write_bytes(body)
    complaint = command("verify", "m.guardband", "--key", "k.public.pem").complaint
    assert "m.guardband is not the file that was signed" in complaint


def test_verify_parses_nothing(command, signed, monkeypatch):
    monkeypatch.setattr(file_format, "from_bytes", None)
    assert command("verify", "m.guardband", "--key", "k.public.pem").code == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("sign", "m.guardband", "--key", "k.public.pem"), "Others may read|Name the private key"),
        (("sign", "m.guardband", "--key", "none.pem"), "The key none.pem cannot be read: No such file"),
        (("sign", "t.csv", "--key", "k.private.pem"), "t.csv is no guardband model"),
        (("sign", "m.guardband", "--key", "k.private.pem", "--comment", "a\nb"), "one line of at most 200"),
        (("sign", "m.guardband", "--key", "k.private.pem", "-o", "m.guardband"), "would be overwritten"),
        (("sign", "m.guardband", "--key", "k.private.pem", "-o", "k.private.pem"), "would be overwritten"),
        (("report", "m.guardband", "-o", "k.public.pem", "--trusted", "k.public.pem"), "would be overwritten"),
        (("report", "m.guardband", "-o", "m.guardband.sig", "--trusted", "k.public.pem"), "would be overwritten"),
        (("sign", "m.guardband"), "--key"),
        (("verify", "m.guardband", "--key", "k.private.pem"), "a private key, .* Use the public key"),
        (("verify", "t.csv", "--key", "k.public.pem"), r"t.csv has no signature \(t.csv.sig\)"),
        (("verify", "none", "--key", "k.public.pem"), "The signature none.sig cannot be read"),
        (
            ("verify", "t.csv", "--key", "k.public.pem", "--signature", "m.guardband.sig"),
            "not the file that was signed",
        ),
        (("verify", "m.guardband", "--key", "k.public.pem", "--signature", "t.csv"), "more than 4,000 bytes"),
        (("report", ".", "--trusted", "k.public.pem"), "--trusted is about a model"),
    ],
)
def test_bad_input_is_refused_in_one_line(command, signed, words, complaint):
    found = command(*words).complaint
    assert re.search(complaint, found), found


def test_a_link_in_the_place_of_the_signature_is_not_followed(command, signed):
    (signed / "precious").write_text("precious")
    (signed / "m.guardband.sig").unlink()
    (signed / "m.guardband.sig").symlink_to(signed / "precious")
    assert "is a link" in command("sign", "m.guardband", "--key", "k.private.pem").complaint
    assert (signed / "precious").read_text() == "precious"


WITH_A_MODEL = [
    ("predict", "m.guardband", "t.csv", "-o", "out.csv"),
    ("explain", "m.guardband", "t.csv", "--rows", "1"),
    ("audit", "m.guardband", "t.csv", "--target", "price", "--recalibrate", "new.guardband"),
    ("monitor", "m.guardband", "t.csv", "--target", "price", "--state", "m.monitor"),
    ("report", "m.guardband", "-o", "page.html"),
    ("report", "m.guardband", "t.csv", "--target", "price", "-o", "page.html"),
    *([("export", "m.guardband", "--onnx", "m.onnx")] if find_spec("onnx") else []),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("words", WITH_A_MODEL, ids=" ".join)
def test_commands_use_the_bytes_that_were_checked_and_do_not_open_the_file_again(command, signed, monkeypatch, words):
    read = signed_file.read_known

    def read_and_remove(*given):
        found = read(*given)
        (signed / "m.guardband").unlink()
        return found

    monkeypatch.setattr(signed_file, "read_known", read_and_remove)
    said = command(*words, "--trusted", "k.public.pem")
    assert said.code in (0, 1), said.err
    assert not (signed / "m.guardband").exists()


@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")
def test_predicting_on_ray_uses_the_bytes_that_were_checked_and_their_checksum(command, signed, monkeypatch):
    from guardband.cli import predict_ray

    model, used, read = (signed / "m.guardband").read_bytes(), [], signed_file.read_known

    def read_and_replace(*given):
        found = read(*given)
        (signed / "m.guardband").write_bytes(b"another model")
        return found

    def stop(_, model_bytes, *__):
        used.append(model_bytes)
        raise KeyboardInterrupt

    monkeypatch.setattr(signed_file, "read_known", read_and_replace)
    monkeypatch.setattr(predict_ray, "predict_on_ray", stop)
    words = ("predict", "m.guardband", "t.csv", "-o", "out", "--ray", "local", "--trusted", "k.public.pem")
    command(*words)
    assert used == [model]


@pytest.mark.parametrize("words", WITH_A_MODEL, ids=" ".join)
def test_commands_refuse_an_untrusted_model_and_write_nothing(command, signed, monkeypatch, words):
    command("keys", "other")
    before = sorted(path.name for path in signed.iterdir())
    monkeypatch.setattr(file_format, "from_bytes", None)
    complaint = command(*words, "--trusted", "other.public.pem").complaint
    assert "m.guardband was signed with another key than the one you trust" in complaint
    assert sorted(path.name for path in signed.iterdir()) == before
