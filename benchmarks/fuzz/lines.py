"""Command lines: each ends with exit code 0, 1, 2 or 130, and with at most one complaint, which is whole sentences.

Training, which would take all the time, is left out: a command that comes so far has accepted its line.
"""

from __future__ import annotations

import io
import random
import shutil
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from judging import Find, Target
from mutate import Raw

import guardband as gb
from guardband.cli.exit_codes import FAULT
from guardband.cli.process import main
from guardband.doors.model_file import save
from guardband.doors.table import IntervalRegressor
from guardband.report.document import document

CODES = (0, 1, 2, 130)
FILES = [
    "s.csv", "new.csv", "bounds.csv", "bad.csv", "m.guardband", "r.guardband", "m.guardband.sig", "k.private.pem",
    "k.public.pem", "w.state",
]  # fmt: skip
VALUES = [
    "price", "size", "town", "when", "low", "high", "point", "none", ",", "size,town", "0.9", "0.8,0.95", "0.5",
    "0.999", "1", "0", "-1", "nan", "inf", "1e-300", "1e308", "100", "3", "20", "99999999999999999999", "0.05", "2",
    "7", "pac", "marginal", "both", "lower", "upper", "conf-nn", "pav", "cqr", "auto", "fast", "default", "log",
    "sqrt", "split", "cv+", "cv-minmax", "joint", "each", "raise", "sort", "cpu", "cuda:9", "meta", "out.csv",
    "out.parquet", "out.xlsx", "out.arrow", "out.html", "out.guardband", "-", "*.csv", "town=Graz", "town:Wien",
    "size:3", "price+", "10%", "EUR",
]  # fmt: skip
VALUES += ["", " ", "a b", "\x1b[31m", "\udcff", "é", "n" * 300, "=1+1", "town,,", "-x", "--", "0.1:0.9"]
CONFUSED = 20
"""Most parts of a line."""


class Reached(Exception):
    """The line was accepted, and training would begin."""


def line(data: bytes) -> None:
    """Run a command line, of which the parts end with zero bytes."""
    words = [part.decode("utf-8", "surrogateescape") for part in data.split(b"\0")][:CONFUSED]
    if any("/" in word or ".." in word for word in words):
        return  # nothing is written outside of the folder
    _files()
    before = set(Path().iterdir())
    reached: list[bool] = []
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True) for _ in range(2))
    kept = sys.argv, sys.stdin, warnings.showwarning, IntervalRegressor.fit
    sys.argv, sys.stdin = ["guardband", *words], io.TextIOWrapper(io.BytesIO(b"size,price\n1,2\n2,3\n"))

    def stop(*about: Any, **more: Any) -> None:
        reached.append(True)
        raise Reached

    IntervalRegressor.fit = stop  # type: ignore[method-assign]
    others = _stubbed(stop)
    code: Any = None
    try:
        with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv, sys.stdin, warnings.showwarning, IntervalRegressor.fit = kept  # type: ignore[method-assign]
        for module, name, own in others:
            setattr(module, name, own)
        for path in set(Path().iterdir()) - before:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        _put_back()
    said = err.buffer.getvalue().decode()
    if reached:
        return
    complaints = [own for own in said.splitlines() if own.startswith("guardband: ")]
    if code == FAULT:
        raise Find(f"exit code 3: {complaints}")
    if code not in CODES:
        raise Find(f"exit code {code}")
    if "Traceback" in said or len(complaints) > 1:
        raise Find(f"more than one complaint: {said[:500]}")
    if complaints and not complaints[0].endswith((".", "?")):
        raise Find(f"it is refused in other words: {complaints[0]}")


def _stubbed(stop: Any) -> list[tuple[Any, str, Any]]:
    """Put ``stop`` in place of what computes for long, and return what was there."""
    import guardband.doors.export as export
    import guardband.experiments.demo as demo
    import guardband.experiments.reproduce.run as run

    places = [(demo, "run_demo"), (run, "run"), (export, "export_onnx")]
    kept = [(module, name, getattr(module, name)) for module, name in places]
    for module, name, _ in kept:
        setattr(module, name, stop)
    return kept


def _commands() -> Any:
    from guardband.cli.app import commands

    group: Any = commands()
    return group.commands


@cache
def _options() -> list[str]:
    every = {name for own in _commands().values() for option in own.params for name in option.opts}
    return [*sorted(name for name in every if name.startswith("-")), "--"]


@cache
def _kept() -> dict[str, bytes]:
    return {name: Path(name).read_bytes() for name in FILES}


def _put_back() -> None:
    """Write anew the files that a line has changed."""
    for name, body in _kept().items():
        path = Path(name)
        if not path.is_file() or path.stat().st_size != len(body) or path.read_bytes() != body:
            path.write_bytes(body)
            path.chmod(0o600 if "private" in name else 0o644)


def _files() -> None:
    """Make the files that lines name, once in a folder."""
    if Path(FILES[-1]).exists():
        return
    from forged_models import PLAIN

    random_ = np.random.default_rng(0)
    lines, bounds = ["size,town,when,price"], ["low,point,high,town,price"]
    for i in range(160):
        size, town = random_.standard_normal(), ["Wien", "Graz", "Linz"][i % 3]
        price = 10 + 3 * size + random_.standard_normal()
        lines.append(f"{size:.3f},{town},2024-01-{i % 28 + 1:02d},{price:.3f}")
        bounds.append(f"{8 + 3 * size:.3f},{10 + 3 * size:.3f},{12 + 3 * size:.3f},{town},{price:.3f}")
    Path("s.csv").write_text("\n".join(lines[:121]) + "\n")
    Path("new.csv").write_text("\n".join([lines[0], *lines[121:]]) + "\n")
    Path("bounds.csv").write_text("\n".join(bounds) + "\n")
    Path("bad.csv").write_text("a,b\n1\n2,3,4\n")
    import pandas as pd

    table = pd.read_csv("s.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = IntervalRegressor(**PLAIN).fit(table[["size", "town"]], table["price"])
        save(own, "m.guardband", report=document(own, None))
        b = pd.read_csv("bounds.csv")
        gb.BandCalibrator().fit(b["low"], b["point"], b["high"], b["price"]).save("r.guardband")
        monitor = gb.Monitor(own)
        new = pd.read_csv("new.csv")
        monitor.update(new["price"], X=new[["size", "town"]] + new[["size", "town"]].assign(size=0.25, town=""))
        monitor.save("w.state")
    from signatures import PRIVATE, PUBLIC

    from guardband.doors.keys import PrivateKey
    from guardband.doors.signed_file import sign_file

    Path("k.private.pem").write_bytes(PRIVATE)
    Path("k.private.pem").chmod(0o600)
    Path("k.public.pem").write_bytes(PUBLIC)
    sign_file(Path("m.guardband"), PrivateKey.read(Path("k.private.pem")), Path("m.guardband.sig"), "")
    _kept()


def _lines() -> dict[str, bytes]:
    """Return lines of which each is good or nearly so."""
    made = [
        "fit s.csv -t price --preset fast -o out.guardband",
        "fit s.csv --target price --group town --level 0.8,0.95 --small-groups pool -q",
        "fit s.csv -t price --split-by-time --time when --report-by town --json",
        "fit s.csv -t price -t size --each-target --drop town",
        "fit s.csv -t price --risk 0.5 --risk-cap 3 --y-min -9 --transform asinh",
        "calibrate bounds.csv -t price --lower low --upper high --point point -o out.guardband",
        "calibrate bounds.csv -t price --point point --guarantee pac --group town -o out.guardband",
        "predict m.guardband new.csv -o out.csv --level 0.9 --no-formulas",
        "predict m.guardband new.csv --above 10 --below 12 --json -o out.csv",
        "audit m.guardband new.csv -t price --report-by town --time when",
        "audit m.guardband new.csv -t price --recalibrate out.guardband --report out.html",
        "monitor m.guardband new.csv -t price --state out.state --time when",
        "explain m.guardband new.csv --rows 2 --background new.csv",
        "plan --rows 100 --level 0.9 --delta 0.05",
        "plan --groups 5 --rows 300 --smallest-share 0.1",
        "report m.guardband -o out.html --title Houses --unit EUR",
        "export m.guardband --onnx out.onnx",
        "keys release",
        "sign m.guardband --key k.private.pem --comment words",
        "verify m.guardband --key k.public.pem --signature m.guardband.sig",
        "predict m.guardband new.csv --trusted k.public.pem -o out.parquet",
        "reproduce simulation --quick --jobs 2 -o out",
        "demo --rows 100 --seed 1 -o out",
        "--version",
    ]
    return {str(i): own.replace(" ", "\0").encode() for i, own in enumerate(made)}


def _changed(data: bytes, most: int, seed: int, raw: Raw) -> bytes:
    chance, parts = random.Random(seed), data.split(b"\0")
    for _ in range(chance.choice([1, 1, 2, 3])):
        i, kind = chance.randrange(len(parts) + 1), chance.randrange(8)
        new = [chance.choice(chance.choice([_options(), FILES, VALUES, VALUES])).encode("utf-8", "surrogateescape")]
        if kind == 0 and parts:
            del parts[min(i, len(parts) - 1)]
        elif kind == 1:
            option = chance.choice(_options()).encode()
            parts[i:i] = [option, *new]
        elif kind == 2 and parts:
            parts[0] = chance.choice(sorted(_commands())).encode()
        elif kind == 3 and i < len(parts):
            parts[i] = raw(parts[i], 30).replace(b"/", b"_").replace(b"..", b"_")
        elif kind == 4 and i < len(parts):
            parts[i:i] = [parts[i]]
        elif kind == 5 and len(parts) > 1:
            j, k = chance.randrange(len(parts)), chance.randrange(len(parts))
            parts[j], parts[k] = parts[k], parts[j]
        else:
            parts[i : i + chance.randrange(2)] = new
    return b"\0".join(parts[:CONFUSED])[:most]


TARGETS = {"lines": Target(line, _lines, _changed, longest=600)}
