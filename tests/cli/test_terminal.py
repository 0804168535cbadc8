"""Commands in a real terminal: progress, narrow windows, Ctrl-C."""

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl

import pytest
from pyarrow import csv, parquet

from cli_tables import small_table


class Terminal:
    """A command that runs in a pseudo-terminal."""

    def __init__(self, *arguments, columns=100, cwd=None):
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = os.environ | {"COLUMNS": str(columns), "TERM": "xterm-256color", "OMP_NUM_THREADS": "1"}
        program = [sys.executable, "-m", "guardband", *map(str, arguments)]
        self._process = subprocess.Popen(
            program, stdin=slave, stdout=slave, stderr=slave, cwd=cwd, env=environment, start_new_session=True
        )
        os.close(slave)
        self.text = ""

    def read_until(self, words, seconds=120):
        """Read until these words appear, or the command ends if there are none."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and (words is None or words not in self.text):
            if select.select([self._master], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self._master, 65536).decode("utf-8", "replace")
                except OSError:  # the other side is closed
                    break
        assert words is None or words in self.text, self.text

    def interrupt(self):
        self._process.send_signal(signal.SIGINT)

    def end(self):
        self.read_until(None)
        code = self._process.wait(60)
        os.close(self._master)
        return code

    @property
    def lines(self):
        """What was printed, without colours and movements of the cursor."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.text).replace("\r", "\n").splitlines()


@pytest.fixture(scope="module")
def report_is_there():
    return pytest.importorskip("guardband.report.page")


@pytest.mark.parametrize(("columns", "preset"), [(100, "best"), (40, "best"), (100, "60")])
def test_fit_shows_progress_and_ctrl_c_leaves_nothing(report_is_there, tmp_path, columns, preset):
    csv.write_csv(small_table(5_000), tmp_path / "t.csv")
    terminal = Terminal("fit", "t.csv", "-t", "price", "--preset", preset, columns=columns, cwd=tmp_path)
    terminal.read_until("epoch 1")
    terminal.interrupt()
    assert terminal.end() == 130
    assert max(len(line) for line in terminal.lines if "guardband:" not in line) <= columns
    assert "guardband: stopped. No half-written file is left behind." in terminal.text
    assert "Traceback" not in terminal.text
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_narrow_terminal_breaks_nothing(report_is_there, tmp_path):
    csv.write_csv(small_table(), tmp_path / "t.csv")
    terminal = Terminal("fit", "t.csv", "-t", "price", "--preset", "fast", columns=40, cwd=tmp_path)
    assert terminal.end() == 0, terminal.text
    assert max(len(line) for line in terminal.lines) <= 40
    csv.write_csv(small_table(600, seed=1), tmp_path / "new.csv")
    terminal = Terminal("audit", "t.guardband", "new.csv", "--report-by", "town", columns=40, cwd=tmp_path)
    assert terminal.end() in (0, 1), terminal.text
    assert max(len(line) for line in terminal.lines) <= 40
    terminal = Terminal("plan", columns=40)
    assert terminal.end() == 0
    assert max(len(line) for line in terminal.lines) <= 44  # a bar may reach a little further than its table


def test_predict_shows_progress_and_ctrl_c_leaves_nothing(small_model, tmp_path):
    table = small_model.table.drop_columns("price")
    with parquet.ParquetWriter(tmp_path / "t.parquet", table.schema) as file:
        for _ in range(4000):
            file.write_table(table)
    terminal = Terminal("predict", small_model.model_path, "t.parquet", "-o", "out.csv", cwd=tmp_path)
    terminal.read_until("of 2,000,000 rows")
    terminal.interrupt()
    assert terminal.end() == 130
    assert "Traceback" not in terminal.text
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
