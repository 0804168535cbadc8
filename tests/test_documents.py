"""Every block of README and docs runs, in order, as one program per page; links between pages lead somewhere.

Python blocks run as Python. Blocks of bash that begin with ``guardband`` run as ``python -m guardband``, in a shell
where they need one; they use the files that the quickstart makes. A block of text is what the block before it prints,
or a part of that, with lines broken anywhere.
"""

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from guardband.learning.presets import FOR_FEW_ROWS, WITH_MUON

ROOT = Path(__file__).parent.parent
QUICKSTART = ROOT / "docs" / "quickstart.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|bash|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NEEDS_SHELL = re.compile(r"[|<>&;]")


def blocks(page):
    """Return (language, code) of the page's blocks that run; code keeps its line numbers."""
    text = page.read_text()
    found = [(match.group(1), match.group(2), text[: match.start(2)].count("\n")) for match in BLOCK.finditer(text)]
    return [(kind, "\n" * line + code) for kind, code, line in found if kind != "bash" or code.startswith("guardband ")]


def run_page(page, folder, programs):
    names: dict = {}
    printed = ""
    for kind, code in blocks(page):
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(code, str(page), "exec"), names)
            printed = out.getvalue()
        elif kind == "bash":
            printed = run_in_shell(code, folder, programs) if NEEDS_SHELL.search(code) else run_here(code)
        else:
            assert " ".join(code.split()) in " ".join(printed.split()), f"{page.name} shows {code}, found {printed}"


def run_here(commands):
    """Run commands in this process, which has torch loaded already, and return what they print."""
    printed = ""
    for line in filter(None, commands.splitlines()):
        words = shlex.split(line, comments=True)
        out, err, code = io.StringIO(), io.StringIO(), None
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("default")  # a command tells of a warning and goes on
            patch.setattr(sys, "argv", words)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    runpy.run_module("guardband", run_name="__main__")
                except SystemExit as stopped:
                    code = stopped.code
        assert not code, f"{line}\nexit code {code}\n{out.getvalue()}\n{err.getvalue()}"
        printed += out.getvalue()
    return printed


def run_in_shell(code, folder, programs):
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        cwd=folder,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{code.strip()}\nexit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """A folder with ``guardband``, the command line of this checkout."""
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "guardband"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m guardband "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def quickstart(programs, tmp_path_factory):
    """The folder in which the quickstart has run: house.csv, new.csv, sold.csv, house.guardband."""
    folder = tmp_path_factory.mktemp("quickstart")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_page(QUICKSTART, folder, programs)
    return folder


def with_code(pages):
    return [page for page in pages if blocks(page) and page != QUICKSTART]


def test_the_quickstart_makes_what_other_pages_use(quickstart):
    made = {path.name for path in quickstart.iterdir()}
    assert {"house.csv", "new.csv", "sold.csv", "house.guardband", "new-intervals.csv", "page.html"} <= made


@pytest.mark.parametrize("page", with_code(PAGES), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_run(page, request, programs, tmp_path, monkeypatch):
    folder = tmp_path / "files"
    if any(kind == "bash" for kind, _ in blocks(page)):
        shutil.copytree(request.getfixturevalue("quickstart"), folder)
    else:
        folder.mkdir()
    monkeypatch.chdir(folder)
    run_page(page, folder, programs)


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", ["choosing.md", "tables.md"])
def test_pages_tell_how_many_copies_presets_have(page):
    text = (ROOT / "docs" / page).read_text()
    for name, few in FOR_FEW_ROWS.items():
        many = WITH_MUON[name]
        words = f"{few.copies}" if few.copies == many.copies else f"{few.copies}, or {many.copies} with Muon"
        assert f'| `"{name}"` | {words} |' in text
