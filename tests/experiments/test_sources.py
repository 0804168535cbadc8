import gzip
import hashlib
import io
import re
import socket
import sys
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from guardband.experiments.sources import SOURCES, Source, data_file

ROWS = b"instant,cnt\n" + b"".join(b"%d,%d\n" % (i, i * i % 977) for i in range(20_000))
CUT = gzip.compress(ROWS, mtime=0)[:-900]
CORRUPT = CUT[:10] + b"\xff" * 900 + CUT[910:]
DATA_SETS = {"bike", "traffic", "house", "boneage"}


class Server(ThreadingHTTPServer):
    """Serves ``files`` by path, stops ``missing_bytes`` before their end, and notes what was asked for."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.asked, self.missing_bytes, self.says_length = {}, [], 0, True

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        body = self.server.files.get(self.path.lstrip("/"))
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        if self.server.says_length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) - self.server.missing_bytes])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        served.shutdown()
        thread.join()


@pytest.fixture
def toy(server, monkeypatch):
    """A small data set in the place of bike, whose archive the server holds."""
    source = Source("bike", "hour.csv", sha(ROWS), "get hour.csv from a friend", server.url("a.zip"), "hour.csv")
    monkeypatch.setitem(SOURCES, "bike", source)
    server.files["a.zip"] = zipped("hour.csv", ROWS)
    return source


def sha(body):
    return hashlib.sha256(body).hexdigest()


def zipped(member, body):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as box:
        box.writestr("Readme.txt", "something else")
        box.writestr(member, body)
    return buffer.getvalue()


def files_under(folder):
    return [path for path in folder.rglob("*") if not path.is_dir()]


def test_every_source_is_complete():
    assert SOURCES.keys() == DATA_SETS
    for name, source in SOURCES.items():
        assert source.name == name
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in (source.sha256, *source.also))
        assert (source.url is None) == (source.member is None) == (name in {"house", "boneage"})


def test_a_file_is_downloaded_verified_and_then_kept(toy, server, tmp_path):
    path = data_file("bike", tmp_path)
    assert path == tmp_path / "bike" / "hour.csv"
    assert path.read_bytes() == ROWS
    assert files_under(tmp_path) == [path]
    assert data_file("bike", tmp_path) == path
    assert server.asked == ["/a.zip"]


def test_a_downloaded_file_has_the_rights_of_any_other(toy, tmp_path):
    (tmp_path / "other").touch()
    assert data_file("bike", tmp_path).stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_gzip_member_is_unpacked(toy, server, tmp_path, monkeypatch):
    monkeypatch.setitem(SOURCES, "bike", replace(toy, member="hour.csv.gz"))
    server.files["a.zip"] = zipped("hour.csv.gz", gzip.compress(ROWS, mtime=0))
    assert data_file("bike", tmp_path).read_bytes() == ROWS


def test_the_folder_is_the_argument_then_the_variable_then_the_cache(toy, tmp_path, monkeypatch):
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" / project)
    monkeypatch.setenv("GUARDBAND_DATA", str(tmp_path / "variable"))
    assert data_file("bike", tmp_path / "argument") == tmp_path / "argument" / "bike" / "hour.csv"
    assert data_file("bike") == tmp_path / "variable" / "bike" / "hour.csv"
    monkeypatch.setenv("GUARDBAND_DATA", "")
    assert data_file("bike") == tmp_path / "cache" / "guardband" / "bike" / "hour.csv"


@pytest.mark.parametrize(
    ("served", "words"),
    [
        (
            zipped("hour.csv", ROWS + b"1,1\n"),
            f"must have SHA-256 {sha(ROWS)}, found {sha(ROWS + b'1,1' + bytes([10]))}",
        ),
        (zipped("day.csv", ROWS), "sent no zip with hour.csv whole in it"),
        (b"<html>Please log in to this network.</html>", "sent no zip with hour.csv whole in it"),
        (b"", "sent no zip with hour.csv whole in it"),
    ],
    ids=["other rows", "other member", "a page", "nothing"],
)
def test_wrong_content_is_refused_and_leaves_nothing(toy, server, tmp_path, served, words):
    server.files["a.zip"] = served
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        data_file("bike", tmp_path)
    assert toy.url in str(caught.value)
    assert f"get hour.csv from a friend and put it at {tmp_path / 'bike' / 'hour.csv'}" in str(caught.value)
    assert files_under(tmp_path) == []


@pytest.mark.parametrize("broken", [CUT, CORRUPT, b"no gzip at all", b""])
def test_a_broken_gzip_member_is_refused(toy, server, tmp_path, monkeypatch, broken):
    monkeypatch.setitem(SOURCES, "bike", replace(toy, member="hour.csv.gz"))
    server.files["a.zip"] = zipped("hour.csv.gz", broken)
    with pytest.raises(ValueError, match="SHA-256"):
        data_file("bike", tmp_path)
    assert files_under(tmp_path) == []


@pytest.mark.parametrize(("says_length", "error"), [(True, OSError), (False, ValueError)])
def test_a_download_cut_short_leaves_nothing_and_can_be_repeated(toy, server, tmp_path, says_length, error):
    server.missing_bytes, server.says_length = 1000, says_length
    with pytest.raises(error, match=re.escape(toy.url)) as caught:
        data_file("bike", tmp_path)
    assert "get hour.csv from a friend" in str(caught.value)
    assert files_under(tmp_path) == []
    server.missing_bytes = 0
    assert data_file("bike", tmp_path).read_bytes() == ROWS


def test_a_stopped_download_leaves_nothing(toy, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.copyfileobj", stop)
    with pytest.raises(KeyboardInterrupt):
        data_file("bike", tmp_path)
    assert files_under(tmp_path) == []


def test_an_absent_page_and_an_absent_server_are_told_in_one_sentence(toy, server, tmp_path, monkeypatch):
    where = f"put it at {tmp_path / 'bike' / 'hour.csv'} (SHA-256 {sha(ROWS)})."
    server.files.clear()
    with pytest.raises(
        OSError, match=re.escape(f"{toy.url} cannot be downloaded (404 Not Found): get hour.csv")
    ) as told:
        data_file("bike", tmp_path)
    assert str(told.value).endswith(where)
    with socket.create_server(("127.0.0.1", 0)) as once:
        nobody = f"http://127.0.0.1:{once.getsockname()[1]}/a.zip"
    monkeypatch.setitem(SOURCES, "bike", replace(toy, url=nobody))
    with pytest.raises(OSError, match=re.escape(f"{nobody} cannot be downloaded (ConnectionError): get")) as told:
        data_file("bike", tmp_path)
    assert str(told.value).endswith(where)
    assert files_under(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "words"), [("house", "log in to www.kaggle.com"), ("boneage", "accept the terms of the RSNA")]
)
def test_data_behind_a_login_is_asked_for(tmp_path, name, words):
    source = SOURCES[name]
    with pytest.raises(FileNotFoundError, match=words) as caught:
        data_file(name, tmp_path)
    assert str(caught.value).endswith(f"put it at {tmp_path / name / source.file} (SHA-256 {source.sha256}).")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "remedy"), [("bike", "it will be downloaded"), ("house", "log in to www.kaggle.com")])
def test_a_damaged_file_of_the_users_is_refused_and_left_alone(toy, server, tmp_path, name, remedy):
    path = tmp_path / name / SOURCES[name].file
    path.parent.mkdir()
    path.write_bytes(ROWS[:-1])
    words = f"{path} must have SHA-256 {SOURCES[name].sha256}, found {sha(ROWS[:-1])}: edited and damaged copies"
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        data_file(name, tmp_path)
    assert remedy in str(caught.value)
    assert path.read_bytes() == ROWS[:-1]
    assert server.asked == []


def test_a_known_copy_in_other_bytes_is_accepted(toy, tmp_path, monkeypatch):
    other = ROWS.replace(b"\n", b"\r\n")
    monkeypatch.setitem(SOURCES, "bike", replace(toy, also=(sha(other),)))
    (tmp_path / "bike").mkdir()
    (tmp_path / "bike" / "hour.csv").write_bytes(other)
    assert data_file("bike", tmp_path).read_bytes() == other


def test_a_folder_that_cannot_be_written_is_named(toy, server, tmp_path, monkeypatch):
    in_the_way = tmp_path / "file"  # stands for a read-only folder too: whoever runs the tests may write everywhere
    in_the_way.touch()
    with pytest.raises(
        OSError, match=re.escape(f"{in_the_way / 'bike'} must be a folder that can be written")
    ) as caught:
        data_file("bike", in_the_way)
    assert "choose another by data_dir or GUARDBAND_DATA" in str(caught.value)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(OSError, match=re.escape("(Permission denied): choose another by data_dir or GUARDBAND_DATA")):
        data_file("bike", tmp_path)
    assert server.asked == []


@pytest.mark.parametrize("says_length", [True, False])
def test_progress_is_shown_only_when_asked(toy, server, tmp_path, capsys, says_length):
    server.says_length = says_length
    data_file("bike", tmp_path / "shown", verbose=True)
    shown = capsys.readouterr()
    assert "downloading bike" in shown.err
    if says_length:
        kilobytes = f"{len(server.files['a.zip']) / 1000:.1f}"
        assert f"{kilobytes}/{kilobytes} kB" in shown.err
    data_file("bike", tmp_path / "silent", verbose=False)
    data_file("bike", tmp_path / "default")
    assert capsys.readouterr() == ("", "")
    assert shown.out == ""


def test_progress_is_shown_on_a_terminal(toy, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    data_file("bike", tmp_path)
    assert "downloading bike" in capsys.readouterr().err


def test_pooch_is_needed_only_where_it_is_used(toy, tmp_path, monkeypatch):
    path = data_file("bike", tmp_path)
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.delenv("GUARDBAND_DATA", raising=False)
    assert data_file("bike", tmp_path) == path
    for folder in (None, tmp_path / "empty"):
        with pytest.raises(ModuleNotFoundError, match=re.escape('pip install "guardband[experiments]"')):
            data_file("bike", folder)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"one of bike, traffic, house, boneage, found 'bikes'"):
        data_file("bikes")


@pytest.mark.parametrize("name", ["bike", "traffic", "house"])
def test_the_real_files_are_the_ones_expected(data_dir, name):
    assert data_file(name, data_dir) == data_dir / name / SOURCES[name].file
    assert data_file(name) == data_file(name, data_dir)


def test_the_traffic_file_of_uci_has_the_same_rows(data_dir, server, tmp_path, monkeypatch):
    """UCI's bytes follow from the copy at hand: temperatures read and written twice by an inexact parser, and CR LF."""

    def inexact(text):
        whole, _, decimals = text.partition(".")
        value = 0.0
        for digit in whole + decimals:
            value = value * 10 + int(digit)
        power, places = 10.0, len(decimals)
        while places:
            value = value / power if places & 1 else value
            power, places = power * power, places >> 1
        return repr(value)

    header, *lines = (data_dir / "traffic" / SOURCES["traffic"].file).read_text().splitlines()
    rows = [line.split(",") for line in lines]
    as_uci = [",".join([row[0], inexact(inexact(row[1])), *row[2:]]) for row in rows]
    assert max(abs(float(inexact(inexact(row[1]))) - float(row[1])) for row in rows) < 2e-13
    body = "".join(f"{line}\r\n" for line in [header, *as_uci]).encode()
    assert sha(body) == SOURCES["traffic"].sha256
    server.files["t.zip"] = zipped(SOURCES["traffic"].member, gzip.compress(body, mtime=0))
    monkeypatch.setitem(SOURCES, "traffic", replace(SOURCES["traffic"], url=server.url("t.zip")))
    assert data_file("traffic", tmp_path).read_bytes() == body
