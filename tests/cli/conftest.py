"""What the commands' tests share: a command in this process, a small table, and a model of it."""

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

import guardband as gb
from cli_tables import small_table
from guardband.cli import main


@dataclass(frozen=True)
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def complaint(self):
        """The one line that says what was wrong."""
        assert self.code == 2, self
        assert self.out == ""
        assert self.err.startswith("guardband: "), self.err
        assert len(self.err.splitlines()) == 1, self.err
        return self.err.strip()


@pytest.fixture
def command(monkeypatch, capfdbinary):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["guardband", *map(str, arguments)])
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capfdbinary.readouterr()
        return Said(end.value.code or 0, *(said.decode(errors="surrogateescape") for said in (out, err)))

    return run


@dataclass(frozen=True)
class Small:
    """A table on disk, and a model that was fitted to it."""

    table: pa.Table
    path: Path
    model_path: Path
    model: gb.IntervalRegressor


@pytest.fixture(scope="session")
def small_model(tmp_path_factory) -> Small:
    from guardband.data.disk import open_table
    from guardband.data.whole_table import read_whole

    folder = tmp_path_factory.mktemp("small")
    table, path = small_table(), folder / "small.csv"
    csv.write_csv(table, path)
    disk = open_table(str(path))
    whole = read_whole(disk, disk.names).table
    model = gb.IntervalRegressor(preset="fast", max_epochs=3, random_state=0)
    model.fit(whole.drop_columns("price"), whole["price"])
    model.save(folder / "small.guardband")
    return Small(whole, path, folder / "small.guardband", model)
