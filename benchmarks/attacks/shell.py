"""Drive every command with broken standard streams, poor encodings, signals and command lines that no one means well.

    python benchmarks/attacks/shell.py [--only WORD] [FOLDER]

Each try is a process of its own, forked from one that has loaded the packages, in a folder of its own. It is a find
if the exit code is none of 0, 1, 2 and 130 (3 is allowed, but tells of a fault), if there is a traceback or more than
one complaint, if a result that could not be written is called done, if an output holds what is none of its own, or if
anything is left behind. The last line counts tries and finds.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
import torch

import guardband.audit.audit
import guardband.cli.app
import guardband.doors.export
import guardband.doors.table
import guardband.report.page  # noqa: F401
from guardband.cli import program as cli_main

torch.set_num_threads(1)

CODES = (0, 1, 2, 3, 130)
HUGE = "9" * 400
ENDINGS = ("csv", "csv.gz", "csv.zip", "parquet", "arrow", "xlsx")


def make_files(folder):
    """Write a table, a model of it, and the files of the nasty command lines."""
    random = np.random.default_rng(0)
    lines = ["size,town,price"]
    for _ in range(400):
        size, town = random.standard_normal(), random.choice(["Wien", "Graz", "Linz"])
        lines.append(f"{size:.4f},{town},{10 + 3 * size + random.standard_normal():.3f}")
    (folder / "s.csv").write_text("\n".join(lines[:301]) + "\n")
    (folder / "new.csv").write_text("\n".join([lines[0], *lines[301:]]) + "\n")
    (folder / "rubbish.bin").write_bytes(random.bytes(4096))
    for ending in (*ENDINGS, "guardband"):
        (folder / f"rubbish.{ending}").write_bytes(random.bytes(4096))
        (folder / f"empty.{ending}").write_bytes(b"")
    (folder / "escape.csv").write_text("\x1b]0;owned\x07,\u202eprice,price\n" + "\x1b[31mred,1,2\n" * 50)
    (folder / "folder").mkdir()
    (folder / "folder.csv").mkdir()
    (folder / "loop.csv").symlink_to("loop.csv")
    os.mkfifo(folder / "pipe.csv")
    fit = run(folder, ["fit", "s.csv", "-t", "price", "--preset", "fast", "-o", "m.guardband", "-q"])
    assert fit.returncode in (0, 1), fit.stderr


def environment(**more):
    """Return this environment, with one thread."""
    return os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "80"} | more


def run(folder, arguments):
    """Run a command in a new process; return what it wrote."""
    words = [sys.executable, "-m", "guardband", *arguments]
    return subprocess.run(words, cwd=folder, env=environment(), capture_output=True)


COMMANDS = {
    "fit": ["fit", "s.csv", "-t", "price", "--preset", "fast", "-o", "f.guardband"],
    "predict to a file": ["predict", "m.guardband", "new.csv", "-o", "out.csv"],
    "predict": ["predict", "m.guardband", "new.csv"],
    "audit": ["audit", "m.guardband", "new.csv"],
    "audit --json": ["audit", "m.guardband", "new.csv", "--json"],
    "plan": ["plan"],
    "report": ["report", "m.guardband", "-o", "r.html"],
    "export": ["export", "m.guardband", "--onnx", "x.onnx"],
    "demo": ["demo", "--rows", "100", "-o", "demo"],
    "help": ["--help"],
    "fit help": ["fit", "--help"],
    "version": ["--version"],
    "usage": ["fit", "--nothing"],
}
STREAMS = {
    "output closed": {"closed": (1,)},
    "output full": {"full": (1,)},
    "error closed": {"closed": (2,)},
    "error full": {"full": (2,)},
    "both closed": {"closed": (1, 2)},
    "input closed": {"closed": (0,)},
    "all closed": {"closed": (0, 1, 2)},
    "ascii": {"encoding": "ascii"},
    "latin-1": {"encoding": "latin-1"},
    "nobody reads": {"unread": (1,)},
    "nobody reads either": {"unread": (1, 2)},
}
NASTY = [
    ["fit"],
    ["fit", "no.csv", "-t", "price"],
    ["fit", "", "-t", "price"],
    ["fit", "folder", "-t", "price"],
    ["fit", "folder.csv", "-t", "price"],
    ["fit", "loop.csv", "-t", "price"],
    *(["fit", f"rubbish.{ending}", "-t", "price"] for ending in ENDINGS),
    *(["fit", f"empty.{ending}", "-t", "price"] for ending in ENDINGS),
    ["fit", "rubbish.bin", "-t", "price"],
    ["fit", "s.csv", "-t", ""],
    ["fit", "s.csv", "-t", "a\nb\x1b[31m"],
    ["fit", "s.csv", "-t", "\udcff"],
    ["fit", "\udcff.csv", "-t", "price"],
    ["fit", "s.csv", "-t", "price", "-t", "size", "--preset", "fast"],
    ["fit", "s.csv", "s.csv", "-t", "price", "--preset", "fast"],
    ["fit", "s.csv", "-t", "price", "--level", "nan"],
    ["fit", "s.csv", "-t", "price", "--level", "inf"],
    ["fit", "s.csv", "-t", "price", "--level", "-0.5"],
    ["fit", "s.csv", "-t", "price", "--level", ""],
    ["fit", "s.csv", "-t", "price", "--level", HUGE],
    ["fit", "s.csv", "-t", "price", "--level", "0.9,0.9"],
    ["fit", "s.csv", "-t", "price", "--level", "0." + "9" * 300],
    ["fit", "s.csv", "-t", "price", "--level", "1e-300"],
    ["fit", "s.csv", "-t", "price", "--seed", HUGE, "--preset", "fast"],
    ["fit", "s.csv", "-t", "price", "--seed", str(2**64), "--preset", "fast"],
    ["fit", "s.csv", "-t", "price", "--seed", "-1"],
    ["fit", "s.csv", "-t", "price", "--check", "nan"],
    ["fit", "s.csv", "-t", "price", "--check", "0.9", "--preset", "fast"],
    ["fit", "s.csv", "-t", "price", "--delta", "nan", "--guarantee", "pac"],
    ["fit", "s.csv", "-t", "price", "--delta", "1e-320", "--guarantee", "pac", "--preset", "fast"],
    ["fit", "s.csv", "-t", "price", "--guarantee", "\x1b[31m"],
    ["fit", "s.csv", "-t", "price", "--preset", "nan"],
    ["fit", "s.csv", "-t", "price", "--preset", "-1"],
    ["fit", "s.csv", "-t", "price", "--preset", "inf"],
    ["fit", "s.csv", "-t", "price", "--preset", "\x1b[31m"],
    ["fit", "s.csv", "-t", "price", "--y-min", "nan"],
    ["fit", "s.csv", "-t", "price", "--y-min", "inf"],
    ["fit", "s.csv", "-t", "price", "--y-min", "1e308", "--y-max", "-1e308"],
    ["fit", "s.csv", "-t", "price", "--device", "nothing"],
    ["fit", "s.csv", "-t", "price", "--device", "cuda:99"],
    ["fit", "s.csv", "-t", "price", "--device", "meta"],
    ["fit", "s.csv", "-t", "price", "--device", ""],
    ["fit", "s.csv", "-t", "price", "-o", "n" * 300],
    ["fit", "s.csv", "-t", "price", "-o", "loop.csv"],
    ["fit", "s.csv", "-t", "price", "-o", ""],
    ["fit", "s.csv", "-t", "price", "-o", "/dev/null"],
    ["fit", "s.csv", "-t", "price", "-o", "pipe.csv"],
    ["fit", "s.csv", "-t", "price", "--split-by", "town,,", "--preset", "fast"],
    ["fit", "s.csv", "-t", "price", "--sheet", "\x1b[31m"],
    ["fit", "s.csv", "-t", "town"],
    ["fit", "escape.csv", "-t", "price", "--preset", "fast", "-o", "e.guardband"],
    ["fit", "-", "-t", "price"],
    ["predict"],
    ["predict", "no.guardband", "new.csv"],
    ["predict", "folder", "new.csv"],
    ["predict", "loop.csv", "new.csv"],
    ["predict", "rubbish.guardband", "new.csv"],
    ["predict", "empty.guardband", "new.csv"],
    ["predict", "new.csv", "m.guardband"],
    ["predict", "m.guardband", "m.guardband"],
    ["predict", "m.guardband", "new.csv", "-o", "out.xlsx"],
    ["predict", "m.guardband", "new.csv", "-o", "/dev/full.csv"],
    ["predict", "m.guardband", "new.csv", "-o", "pipe.csv"],
    ["predict", "m.guardband", "new.csv", "-o", "loop.csv"],
    ["predict", "m.guardband", "new.csv", "--level", "nan"],
    ["predict", "m.guardband", "new.csv", "--level", "2"],
    ["predict", "m.guardband", "new.csv", "--no-formulas", "-o", "a.parquet"],
    ["predict", "m.guardband", "new.csv", "--json"],
    ["predict", "m.guardband", "-", "-"],
    ["predict", "m.guardband", "escape.csv"],
    ["audit", "m.guardband", "rubbish.parquet"],
    ["audit", "m.guardband", "new.csv", "--significance", "nan"],
    ["audit", "m.guardband", "new.csv", "--report-by", "\x1b[31m"],
    ["audit", "m.guardband", "new.csv", "--time", "town"],
    ["audit", "m.guardband", "new.csv", "--report", "folder"],
    ["audit", "m.guardband", "new.csv", "--recalibrate", "m.guardband"],
    ["plan", "--level", "nan"],
    ["plan", "--level", "1"],
    ["plan", "--level", "-1"],
    ["plan", "--level", HUGE],
    ["plan", "--level", "0.9999999999999999"],
    ["plan", "--level", "1e-320"],
    ["plan", "--delta", "nan"],
    ["plan", "--delta", "0"],
    ["plan", "--delta", "1e-320"],
    ["plan", "--epsilon", "nan"],
    ["plan", "--epsilon", "-1"],
    ["plan", "--epsilon", "1e-320"],
    ["plan", "--epsilon", "1e-12"],
    ["plan", "--epsilon", "0"],
    ["plan", "--epsilon", "inf"],
    ["plan", "--rows", HUGE],
    ["plan", "--rows", "99999999999999999999"],
    ["plan", "--rows", "1000000000000"],
    ["plan", "--rows", "0"],
    ["plan", "--rows", "-5"],
    ["plan", "--candidates", HUGE, "--epsilon", "0.01"],
    ["plan", "--level", "\u0660.\u0669"],
    ["report", "no"],
    ["report", "folder"],
    ["report", "s.csv"],
    ["report", "m.guardband", "-o", "folder"],
    ["report", "m.guardband", "--figures", "s.csv"],
    ["export", "m.guardband"],
    ["export", "rubbish.guardband", "--onnx", "x.onnx"],
    ["export", "m.guardband", "--onnx", "folder"],
    ["export", "m.guardband", "--onnx", "/dev/null"],
    ["demo", "--rows", HUGE],
    ["demo", "--rows", "-1"],
    ["demo", "-o", "s.csv"],
    ["demo", "-o", "/proc/x"],
    ["reproduce"],
    ["reproduce", "\x1b[31m"],
    ["reproduce", "bike", "--data-dir", "folder", "-o", "s.csv", "--quick"],
    ["\x1b[31m"],
    ["--nothing\x1b[31m"],
    [""],
    ["--show-completion", "x"],
]  # fmt: skip


def finds_in(done, cannot_show=False):
    """Return what is wrong with how a process ended."""
    said = (done.stdout + done.stderr).decode("utf-8", "replace")
    found = []
    if done.returncode not in CODES:
        found.append(f"exit code {done.returncode}")
    if done.returncode == 3:
        found.append("called its own fault: " + done.stderr.decode("utf-8", "replace").strip()[-300:])
    if "Traceback" in said or "Exception ignored" in said:
        found.append("traceback")
    if sum(line.startswith("guardband: ") for line in said.splitlines()) > 1:
        found.append("more than one complaint")
    if "\x1b" in said or "\u202e" in said:
        found.append("an escape sequence")
    if cannot_show and done.returncode == 0:
        found.append("called done, though nothing could be shown")
    return found


def left_behind(folder):
    """Return the part files that are still there."""
    return [path.name for path in folder.rglob("*.part")]


def start(folder, arguments, out, err, closed=(), full=(), unread=(), encoding=None):
    """Start a command in a fork of this process, with its streams as Python finds them when it starts so."""
    child = os.fork()
    if child:
        return child
    os.chdir(folder)
    files = {0: os.open(os.devnull, os.O_RDONLY), 1: out.fileno(), 2: err.fileno()}
    files |= {number: os.open("/dev/full", os.O_WRONLY) for number in full}
    for number in unread:
        reader, files[number] = os.pipe()
        os.close(reader)
    for number, file in files.items():
        os.dup2(file, number)
        kind = "r" if number == 0 else "w"
        stream = open(number, kind, encoding=encoding or "utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, ("stdin", "stdout", "stderr")[number], stream)
    for number in closed:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
    sys.argv = ["guardband", *arguments]
    code = 1
    try:
        cli_main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        os.write(err.fileno(), traceback.format_exc().encode())
    try:
        for stream in (sys.stdout, sys.stderr):  # as Python does in the end
            if stream is not None:
                stream.flush()
    except OSError:
        code = 120
    os._exit(code)


def forked(folder, arguments, signals=(), **streams):
    """Run a command in a fork, perhaps with signals after so many seconds; return how it ended and what it wrote."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = start(folder, arguments, out, err, **streams)
        for delay, which in signals:
            time.sleep(delay)
            os.kill(child, which)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


def attack_streams(folder):
    """Yield every command with every kind of broken stream or poor encoding: its name, what was found, how it ended."""
    for name, arguments in COMMANDS.items():
        for how, streams in STREAMS.items():
            done = forked(folder, arguments, **streams)
            is_silent = name in ("predict to a file", "usage")
            lost = 1 in streams.get("closed", ()) or 1 in streams.get("full", ())
            found = finds_in(done, lost and not is_silent)
            if name == "predict to a file":
                lines = (folder / "out.csv").read_text().splitlines()
                if len(lines) != 101 or any(line.count(",") != 5 for line in lines):
                    found.append("the output holds something else")
            yield f"{name}, {how}", found, done


def attack_lines(folder):
    """Yield every nasty command line: its words, what was found, and how it ended."""
    for arguments in NASTY:
        done = forked(folder, arguments)
        found = finds_in(done)
        if done.returncode == 1:
            found.append("exit code 1 without a verdict")
        yield " ".join(ascii(word)[:40] for word in arguments), found, done


def attack_signals(folder):
    """Yield one or two signals after each of many delays, from the start of a command to its end."""
    for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for name in ("predict to a file", "fit"):
            for delay in np.geomspace(0.02, 3.0, 10):
                for times in (1, 2):
                    for own in ("out.csv", "f.guardband", "f.html"):
                        (folder / own).unlink(missing_ok=True)
                    signals = [(float(delay), which), (0.005, which)][:times]
                    done = forked(folder, COMMANDS[name], signals)
                    found = finds_in(done) + [f"left {part}" for part in left_behind(folder)]
                    own = folder / "out.csv"
                    if own.exists() and len(own.read_text().splitlines()) != 101:
                        found.append("half an output")
                    yield f"{name}, {which.name} {times} times after {delay:.2f} s", found, done


def main():
    """Run the attacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--only", choices=["streams", "lines", "signals"])
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    make_files(folder)
    attacks = {"streams": attack_streams, "lines": attack_lines, "signals": attack_signals}
    for kind, attack in attacks.items():
        tries = finds = 0
        for name, found, done in attack(folder) if given.only in (None, kind) else ():
            tries, finds = tries + 1, finds + bool(found)
            if found:
                print(f"{name}: {'; '.join(found)}", flush=True)
            elif os.environ.get("SHOW"):
                print(f"{name}: {done.returncode} {done.stderr.decode(errors='replace').strip()[-200:]!r}", flush=True)
        print(f"{kind}: {tries} tries, {finds} finds; left behind: {left_behind(folder)}", flush=True)


if __name__ == "__main__":
    main()
