"""Where the paper's real data files come from: found in a folder or downloaded, and always checked by SHA-256."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

FOLDER_VARIABLE = "GUARDBAND_DATA"


@dataclass(frozen=True)
class Source:
    """One data file: its SHA-256, how a person gets it, and the zip archive and its member that hold it, if any.

    A member that ends in ``.gz`` is gunzipped. Copies with the same rows in other bytes are known by ``also``.
    """

    name: str
    file: str
    sha256: str
    instructions: str
    url: str | None = None
    member: str | None = None
    also: tuple[str, ...] = ()

    def check(self, path: Path, what: str, remedy: str) -> None:
        """Raise if a file does not have a SHA-256 of this source."""
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found not in (self.sha256, *self.also):
            raise ValueError(f"{what} must have SHA-256 {self.sha256}, found {found}: {remedy}.")


BIKE = Source(
    name="bike",
    file="hour.csv",
    sha256="e03de4ee4ef4dc376ac6e04bf829673c6269e8eba5c60fa121640fa2f829504f",
    instructions="get hour.csv of the bike sharing data from https://archive.ics.uci.edu/dataset/275",
    url="https://archive.ics.uci.edu/static/public/275/bike+sharing+dataset.zip",
    member="hour.csv",
)
TRAFFIC = Source(
    name="traffic",
    file="Metro_Interstate_Traffic_Volume.csv",
    sha256="749c90d720360a4215bb15345526073c079ba4cc95e3fa558796d083f85fce9e",
    instructions="get Metro_Interstate_Traffic_Volume.csv.gz from https://archive.ics.uci.edu/dataset/492, gunzip it",
    url="https://archive.ics.uci.edu/static/public/492/metro+interstate+traffic+volume.zip",
    member="Metro_Interstate_Traffic_Volume.csv.gz",
    # Lines end in LF, not CR LF, and a few temperatures lack UCI's rounding errors (287.4890000000001 for 287.489).
    also=("3ec6b8844c4e5e20904855c81079a30e4342da20b7010e78606a244e539f29f6",),
)
HOUSE = Source(
    name="house",
    file="kc_house_data.csv",
    sha256="d0875baa0251b21d4bdc9d2ae940a4fe0bb6009824f23dd0e2a5b2bf04557b7e",
    instructions="log in to www.kaggle.com, get kc_house_data.csv of harlfoxem/housesalesprediction (21,613 rows)",
)
BONEAGE = Source(
    name="boneage",
    file="boneage.parquet",
    sha256="818db45cfa6ecabd2190f6fce795f1c300e6b70465adf79081ac4ded92b4b2a3",
    instructions="accept the terms of the RSNA Pediatric Bone Age Challenge 2017 (https://www.rsna.org, research use), "
    "make boneage.parquet of its 12,611 training images (224 x 224 grey JPEG, zero-padded to a square)",
)
SOURCES: dict[str, Source] = {source.name: source for source in (BIKE, TRAFFIC, HOUSE, BONEAGE)}


def data_file(name: str, data_dir: Path | None = None, verbose: bool | None = None) -> Path:
    """Return the path of a data set's verified file, ``<folder>/<name>/<file>``; what is absent is downloaded.

    The folder is ``data_dir``, else the environment variable ``GUARDBAND_DATA``, else the user's cache.
    ``verbose``: whether to show a download's progress; by default if standard error is a terminal.
    """
    if name not in SOURCES:
        raise ValueError(f"A data set is one of {', '.join(SOURCES)}, found {name!r}.")
    source = SOURCES[name]
    folder = data_dir or os.environ.get(FOLDER_VARIABLE) or _pooch().os_cache("guardband")
    path = Path(folder) / source.name / source.file
    if path.exists():
        remedy = "it will be downloaded" if source.url else f"{source.instructions} and put it there"
        source.check(path, str(path), f"edited and damaged copies circulate, so move yours away and {remedy}")
    else:
        _fetch(source, path, sys.stderr.isatty() if verbose is None else verbose)
    return path


def _pooch() -> ModuleType:
    """Return pooch, or raise with the install command if it is missing."""
    if find_spec("pooch") is None:
        raise ModuleNotFoundError('Data that is downloaded needs pooch: pip install "guardband[experiments]".')
    return import_module("pooch")


def _fetch(source: Source, path: Path, shown: bool) -> None:
    """Download, unpack and verify beside the target, then move it there: it appears whole or not at all."""
    by_hand = f"{source.instructions} and put it at {path} (SHA-256 {source.sha256})"
    if source.url is None or source.member is None:
        raise FileNotFoundError(f"The {source.name} data is absent and cannot be downloaded for you: {by_hand}.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = TemporaryDirectory(dir=path.parent, prefix=".download-")
    except OSError as error:
        raise OSError(
            f"The {source.name} data is absent, and to download it {path.parent} must be a folder that can be "
            f"written, found otherwise ({error.strerror}): choose another by data_dir or {FOLDER_VARIABLE}."
        ) from error
    with _gone_if_empty(path.parent), scratch as beside:
        archive, unpacked = Path(beside) / "archive.zip", Path(beside) / source.file
        try:
            _download(source.url, archive, f"downloading {source.name}", shown)
            _unpack(archive, source.member, unpacked)
        except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, KeyError) as error:
            raise ValueError(f"{source.url} sent no zip with {source.member} whole in it: {by_hand}.") from error
        except OSError as error:
            raise OSError(f"{source.url} cannot be downloaded ({_reason(error)}): {by_hand}.") from error
        source.check(unpacked, f"{source.member} of {source.url}", by_hand)
        os.replace(unpacked, path)


@contextmanager
def _gone_if_empty(folder: Path) -> Iterator[None]:
    """Take away a folder in which nothing has been put."""
    try:
        yield
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()


def _download(url: str, to: Path, what: str, shown: bool) -> None:
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    with Progress(*columns, console=console, transient=console.is_terminal, disable=not shown) as progress:
        bar = _Bar(progress, progress.add_task(what, total=None))
        _pooch().HTTPDownloader(progressbar=bar, chunk_size=1 << 16)(url, to, None)


def _unpack(archive: Path, member: str, to: Path) -> None:
    with zipfile.ZipFile(archive) as box, box.open(member) as packed, to.open("wb") as file:
        shutil.copyfileobj(gzip.GzipFile(fileobj=packed) if member.endswith(".gz") else packed, file)


def _reason(error: OSError) -> str:
    """Return why a download failed in a few words: the errors of requests are long and name the url again."""
    if (response := getattr(error, "response", None)) is not None:
        return f"{response.status_code} {response.reason}"
    return error.strerror or type(error).__name__


@dataclass
class _Bar:
    """A progress bar of rich with the part of tqdm's interface that pooch calls."""

    progress: Progress
    task: TaskID
    total: int = 0  # pooch sets it when the server tells

    def update(self, n: int) -> None:
        self.progress.update(self.task, total=self.total or None, advance=n)

    def reset(self) -> None:
        self.progress.update(self.task, completed=0 if self.total else None)

    def close(self) -> None:
        """The bar is closed by whoever opened it."""
