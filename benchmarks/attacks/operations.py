"""What is disturbed: fit, predict, audit, save, train, reproduce and monitor, each on a small table, and its results.

"fit in processes" is a fit that trains its copies in two processes of their own, as fits of larger tables do. All else
computes on one thread, in one process.

An operation has steps, which are run one after the other, and results. ``seen`` returns a digest of each result, or
raises if one is there by half. What depends on the time that a run took is left out of a digest.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from forked import command
from pyarrow import csv

import guardband as gb
import guardband.audit.audit
import guardband.cli.app
import guardband.cli.audit_words
import guardband.cli.fit_result
import guardband.cli.fit_steps
import guardband.cli.judged_rows
import guardband.cli.monitor_steps
import guardband.cli.monitor_words
import guardband.cli.recalibrated
import guardband.cli.stream
import guardband.experiments.reproduce.report
import guardband.experiments.reproduce.run
import guardband.report.monitor_page
import guardband.report.page
from guardband.experiments.reproduce import cells
from guardband.experiments.reproduce.cells import Cell
from guardband.experiments.reproduce.folder import Folder
from guardband.experiments.reproduce.setting import EVERYONE, Setting
from guardband.monitor.state_file import read_state
from guardband.training import checkpoint, division, epochs, job
from guardband.training.division import divided

STEPS, ROWS = 12, 150
EPOCHS = 8
TIMES = r'"seconds":\s*[\d.e-]+|\b[\d.]+ (s|seconds|minutes)\b|(?i:seconds)[^<]*</dt>\s*<dd>[\d.]+|sha256:[0-9a-f]+'
DAY = r"\b\d{4}-\d\d-\d\d\b"
SETTING = Setting("tuned", (8,), EVERYONE, max_epochs=2, batch_size=100)
CELLS = [
    Cell("simulation", SETTING, (0, 1), 300, 100),
    Cell("simulation", replace(SETTING, name="plain"), (0,), 300, 100),
]


@dataclass(frozen=True)
class Operation:
    """Steps to run in a folder, and what they leave there.

    ``begin`` puts old results into an empty folder. ``goes_on`` says whether a run goes on where another one was ended.
    ``exits`` has the exit codes of each step, and of one that is repeated after it had its effect.
    """

    name: str
    steps: list[Callable]
    begin: Callable[[], None]
    seen: Callable[[], dict]
    goes_on: bool = False
    exits: tuple = ()
    again: int | None = None
    other: Callable | None = None
    inputs: tuple = ()
    has_workers: bool = False


def draw(random, n, spread=1.0):
    """Return rows whose prices vary by ``spread``."""
    size, town = random.standard_normal(n), random.choice(["Wien", "Graz", "Linz"], n)
    return pa.table({"size": size, "town": town, "price": 3 * size + spread * random.standard_normal(n)})


def digest(data):
    """Return a short checksum."""
    return hashlib.sha256(data).hexdigest()[:16]


def whole_page(path):
    """Return the digest of a page that is there whole, but for the day, its times and its version of a model."""
    text = Path(path).read_text()
    if not text.endswith("</html>\n"):
        raise ValueError(f"half a page at {path}")
    return digest(re.sub(f"{TIMES}|{DAY}", "", text).encode())


def whole_model(path, rows):
    """Return the digest of what a model predicts, and promises; half a model does not load."""
    model = gb.load(path)
    found = model.predict_interval(rows)
    numbers = np.concatenate([np.ravel(own) for own in (found.lower, found.upper)])
    return digest(numbers.tobytes() + str(model.calibration_.certificate).encode())


def if_there(look, path, *more):
    """Return what ``look`` sees at a path, and nothing if there is no file."""
    return look(path, *more) if Path(path).exists() else ""


def raw(path):
    """Return the digest of a file's bytes."""
    return digest(Path(path).read_bytes())


def make_inputs(folder):
    """Write the tables and the models that operations read, into the folder ``given``, and return new rows."""
    random, given = np.random.default_rng(0), folder / "given"
    given.mkdir()
    old, new = draw(random, 900), draw(random, 300)
    csv.write_csv(old.slice(0, 300), given / "s.csv")
    csv.write_csv(new, given / "new.csv")
    csv.write_csv(old.slice(600, 300), given / "other.csv")
    for name, seed in (("m", 0), ("n", 1)):
        model = gb.IntervalRegressor(hidden=(8,), epochs=5, random_state=seed)
        model.fit(old.drop_columns("price"), old["price"]).save(given / f"{name}.guardband")
    return old.slice(0, 50).drop_columns("price")


def in_processes(step):
    """Return a step that trains in two processes, which take four squads in turn; without them it fails.

    Copies train for a few epochs only.
    """

    def forking():
        torch.set_num_threads(2)
        division.CORES, job.SMALL_STEP = 4, 0
        train, used = epochs.train_in_processes, []

        def few_epochs(own, processes):
            used.append((len(divided(own)), processes))
            return train(replace(own, recipe=replace(own.recipe, max_epochs=EPOCHS)), processes)

        epochs.train_in_processes = few_epochs
        code = step()
        assert code or (4, 2) in used, used
        return code

    return forking


def table_operations(given, rows):
    """Return fit, the same in processes, predict, audit and save."""
    fit = ["fit", f"{given}/s.csv", "-t", "price", "--preset", "fast", "-o", "f.guardband", "-q"]
    predict = ["predict", f"{given}/m.guardband", f"{given}/new.csv", "-o", "out.csv"]
    audit = ["audit", f"{given}/m.guardband", f"{given}/new.csv", "--report", "a.html", "--recalibrate", "r.guardband"]

    def old(*names):
        def begin():
            for name in names:
                shutil.copy(given / "n.guardband" if name.endswith("guardband") else given / "other.csv", name)

        return begin

    def seen(*names):
        def look():
            found = {}
            for name in names:
                is_old = Path(name).read_bytes() == (given / "other.csv").read_bytes() if Path(name).exists() else False
                kind = (whole_model, rows) if name.endswith("guardband") else (whole_page,)
                kind = (raw,) if is_old or name.endswith("csv") else kind
                found[name] = if_there(kind[0], name, *kind[1:])
            return found

        return look

    def save():
        gb.load(given / "m.guardband").save("saved.guardband")

    def save_other():
        gb.load(given / "n.guardband").save("saved.guardband")

    tables = (f"{given}/s.csv",), (f"{given}/new.csv", f"{given}/m.guardband")
    seeded = command(*fit[:-1], "--seed", "1", "-q")
    whole = Operation(
        "fit",
        [command(*fit)],
        old("f.guardband", "f.html"),
        seen("f.guardband", "f.html"),
        exits=(0,),
        other=seeded,
        inputs=tables[0],
    )
    more = [word for word in fit if word not in ("--preset", "fast")]  # of more copies
    forking = [in_processes(command(*more, *seed)) for seed in ([], ["--seed", "1"])]
    return [
        whole,
        replace(whole, name="fit in processes", steps=forking[:1], other=forking[1], has_workers=True),
        Operation(
            "predict",
            [command(*predict)],
            old("out.csv"),
            seen("out.csv"),
            exits=(0,),
            other=command("predict", f"{given}/n.guardband", *predict[2:]),
            inputs=tables[1],
        ),
        Operation(
            "audit",
            [command(*audit)],
            old("a.html", "r.guardband"),
            seen("a.html", "r.guardband"),
            exits=(0,),
            other=command("audit", f"{given}/n.guardband", *audit[2:]),
            inputs=tables[1],
        ),
        Operation("save", [save], old("saved.guardband"), seen("saved.guardband"), exits=(0,), other=save_other),
    ]


def train_operation():
    """Return the training of three networks with checkpoints after every epoch."""

    def train():
        checkpoint.SECONDS_BETWEEN = 0.0
        x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
        torch.manual_seed(0)
        networks = [gb.nn.FullyConnected(3, (16,), dropout=0.1) for _ in range(2)]
        point = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        losses = [gb.nn.IntervalLoss(0.1), gb.nn.IntervalLoss(0.2), gb.nn.AbsoluteLoss()]
        gb.train([*networks, point], (x, x.sum(-1)), losses, epochs=8, learning_rate=0.01, checkpoint="kept")
        weights = [own.detach().numpy().tobytes() for net in [*networks, point] for own in net.state_dict().values()]
        print(digest(b"".join(weights)))

    def seen():
        found = {}
        for path in sorted(Path("kept").glob("*.checkpoint")) if Path("kept").exists() else ():
            head, body = path.read_bytes().split(b"\n", 1)
            if not head.endswith(hashlib.sha256(body).hexdigest().encode()):
                raise ValueError(f"half a checkpoint at {path}")
        return found

    return Operation("train", [train], lambda: None, seen, goes_on=True, exits=(0,), other=train)


def reproduce_operation():
    """Return a run of the paper's first experiment, cut down to two small cells."""

    def reproduce():
        cells.cells_of = lambda *_: CELLS
        return command("reproduce", "simulation", "--quick", "-o", "run")()

    def seen():
        found, folder = {}, Folder(Path("run"))
        if not Path("run").exists():
            return found
        for cell in CELLS:
            if folder.is_done(cell):
                rows = pd.read_csv(Path("run/cells") / cell.name / "rows.csv").drop(columns="seconds")
                found[cell.name] = digest(rows.to_csv().encode())
        for name in ("results", "details", "curves", "comparison"):
            if (path := Path(f"run/{name}.csv")).exists():
                own = pd.read_csv(path)
                found[name] = digest(own.drop(columns="seconds", errors="ignore").to_csv().encode())
            if (path := Path(f"run/{name}.parquet")).exists():
                own = pd.read_parquet(path)
                found[f"{name} as Parquet"] = digest(own.drop(columns="seconds", errors="ignore").to_csv().encode())
        if Path("run/run.json").exists():
            found["about"] = str(folder.about()["settings"])
        found["page"] = if_there(whole_page, "run/index.html")
        for path in sorted(Path("run/figures").glob("*.png")):
            if not path.read_bytes().endswith(b"IEND\xaeB`\x82"):
                raise ValueError(f"half a figure at {path}")
        for path in sorted(Path("run/figures").glob("*.svg")):
            if not path.read_text().endswith("</svg>\n"):
                raise ValueError(f"half a figure at {path}")
        return found

    return Operation("reproduce", [reproduce], lambda: None, seen, goes_on=True, exits=(0,), other=reproduce)


def monitor_operation(given):
    """Return runs of the monitor on table after table: rows with keys, their late true values, rows without keys."""
    random, steps, first = np.random.default_rng(0), [], None
    for step in range(STEPS):
        table = draw(random, ROWS, 1.0 if step < STEPS - 2 else 3.0)
        arguments = [[f"{given}/plain-{step}.csv"]]
        if step % 3 == 2:
            csv.write_csv(table, arguments[0][0])
        else:
            keyed = table.append_column("id", pa.array(np.arange(step * ROWS, (step + 1) * ROWS)))
            known = random.random(ROWS) < 0.5
            now = keyed.set_column(2, "price", pa.array(table["price"].to_numpy(), mask=~known))
            csv.write_csv(now, given / f"now-{step}.csv")
            csv.write_csv(keyed.filter(pa.array(~known)).select(["id", "price"]), given / f"late-{step}.csv")
            arguments = [[f"{given}/{kind}-{step}.csv", "--key", "id"] for kind in ("now", "late")]
        for own in arguments:
            words = ["monitor", f"{given}/m.guardband", *own, "--state", "m.monitor", "--target", "price"]
            steps.append(command(*words))
            first = first or own[0]

    def seen():
        state = if_there(lambda path: read_state(Path(path))[2], "m.monitor")
        return {"m.monitor": state, "m.monitor.html": if_there(whole_page, "m.monitor.html")}

    return Operation(
        "monitor",
        steps,
        lambda: None,
        seen,
        exits=(0, 1),
        again=2,
        other=steps[2],
        inputs=(first, f"{given}/m.guardband"),
    )


def operations(folder):
    """Return all operations; their inputs are written into a folder."""
    torch.set_num_threads(1)
    os.environ["MPLCONFIGDIR"] = str(folder / "matplotlib")
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder / "temporary")  # where whatever is left is seen
    Path(tempfile.tempdir).mkdir()
    rows = make_inputs(folder)
    given = folder / "given"
    return [*table_operations(given, rows), train_operation(), reproduce_operation(), monitor_operation(given)]


def parts_in(folder):
    """Return the part files in a folder and below."""
    return sorted(path.name for path in Path(folder).rglob("*.part"))
