"""``guardband monitor``: rows as they come, each once, with a state that is written whole."""

import os
import shutil
import signal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import guardband as gb
from cli_tables import small_table
from guardband.monitor.state_file import read_state


def shifted(table, by):
    return table.set_column(
        table.column_names.index("price"), "price", [[own + by for own in table["price"].to_pylist()]]
    )


def with_keys(table, first):
    return table.append_column("id", pa.array(range(first, first + len(table))))


@pytest.fixture(scope="module")
def made(small_model, tmp_path_factory):
    """A folder with a model and tables: rows like the old ones, rows whose prices moved, and rows with keys."""
    folder = tmp_path_factory.mktemp("monitor")
    shutil.copy(small_model.model_path, folder / "m.guardband")
    shutil.copy(small_model.path, folder / "old.csv")
    csv.write_csv(small_table(300, seed=1), folder / "good.csv")
    csv.write_csv(shifted(small_table(300, seed=2), 4), folder / "moved.csv")
    csv.write_csv(with_keys(small_table(200, seed=3), 0), folder / "keyed.csv")
    return folder


@pytest.fixture
def run(command, made, tmp_path, monkeypatch):
    """Run the command on tables of the folder, with a state of this test."""
    monkeypatch.chdir(tmp_path)
    for path in made.iterdir():
        shutil.copy(path, tmp_path)

    def call(*arguments, model="m.guardband", state="m.monitor"):
        return command("monitor", model, *arguments, "--state", state, "--target", "price")

    return call


def test_the_first_run_makes_a_state_and_later_ones_go_on_from_it(run, tmp_path):
    first = run("good.csv")
    assert first.code == 0, first.err
    assert first.out.startswith("No alarm: ")
    assert "Rows of this run: 300 counted." in first.out
    assert {"m.monitor", "m.monitor.html"} <= {path.name for path in tmp_path.iterdir()}
    second = run("keyed.csv", "--json", "--page", "own.html")
    assert (second.code, second.json["rows"], second.json["page"]) == (0, 500, "own.html")
    assert second.json["update"] == {"counted": 200, "waiting": 0, "skipped": 0, "left_out": 0}
    assert (tmp_path / "own.html").read_text().startswith("<!doctype html>")


def test_it_says_what_python_says(run, small_model, tmp_path):
    said = run("good.csv", "--time", "day", "--json").json
    monitor = gb.Monitor(small_model.model)
    table = csv.read_csv("good.csv")
    monitor.update(table["price"], X=table.drop_columns("price"), time=table["day"].to_numpy())
    own = monitor.to_dict()
    assert own["coverage"] == said["coverage"]
    assert said["evidence"] == pytest.approx(own["evidence"], rel=1e-9)


def test_an_alarm_is_exit_code_1_and_stays(run):
    assert run("good.csv").code == 0
    alarm = run("moved.csv")
    assert alarm.code == 1
    assert alarm.out.startswith("Alarm at row ")
    assert (
        "  guardband monitor m.guardband moved.csv --state m.monitor --target price --recalibrate m-2.guardband"
        in alarm.out
    )
    assert run("keyed.csv").code == 1


def test_a_table_counts_once_in_any_format_and_order(run, tmp_path):
    assert run("good.csv").code == 0
    before = (tmp_path / "m.monitor").read_bytes()
    assert "all 300 rows with a true value in good.csv were counted before" in run("good.csv").complaint
    again = csv.read_csv("good.csv").take(np.random.default_rng(0).permutation(300))
    parquet.write_table(again, "again.parquet")
    assert "were counted before, and each row counts once" in run("again.parquet").complaint
    csv.write_csv(pa.concat_tables([csv.read_csv("good.csv"), csv.read_csv("moved.csv")]), "grown.csv")
    assert "contains the rows of a table that was counted before" in run("grown.csv").complaint
    assert (tmp_path / "m.monitor").read_bytes() == before


def test_a_key_counts_once_and_only_its_own_row_is_skipped(run):
    whole = csv.read_csv("keyed.csv")
    csv.write_csv(whole[:120], "first.csv")
    assert run("first.csv", "--key", "id").code == 0
    later = run("keyed.csv", "--key", "id", "--json").json
    assert later["update"] == {"counted": 80, "waiting": 0, "skipped": 120, "left_out": 0}
    assert later["rows"] == 200


def test_outcomes_that_come_late_alone_and_in_part_give_what_they_would_have_given_at_once(run):
    whole = csv.read_csv("keyed.csv")
    csv.write_csv(whole.drop_columns("price"), "now.csv")
    csv.write_csv(whole.select(["id", "price"])[:50], "truth-1.csv")
    csv.write_csv(whole.select(["price", "id"])[50:], "truth-2.csv")
    waits = run("now.csv", "--key", "id")
    assert waits.code == 0, waits.err
    assert "0 counted. 200 wait for their true value." in waits.out
    assert run("truth-1.csv", "--key", "id", "--json").json["waiting"] == 150
    late = run("truth-2.csv", "--key", "id", "--json").json
    at_once = run("keyed.csv", "--key", "id", "--json", state="other.monitor").json
    assert (late["waiting"], late["rows"]) == (0, 200)
    assert late["coverage"] == at_once["coverage"]
    assert late["evidence"] == pytest.approx(at_once["evidence"], rel=1e-9)


def test_keys_nobody_waits_for_are_nothing_to_judge(run):
    csv.write_csv(pa.table({"id": [901, 902], "price": [1.0, 2.0]}), "strangers.csv")
    assert (
        "2 rows of strangers.csv bring no true value that a row waits for"
        in run("strangers.csv", "--key", "id").complaint
    )


def test_rows_without_a_true_value_are_left_out_if_there_is_no_key(run):
    table = csv.read_csv("good.csv")
    gone = pa.array([None if i < 40 else own for i, own in enumerate(table["price"].to_pylist())])
    csv.write_csv(table.set_column(4, "price", gone), "part.csv")
    said = run("part.csv")
    assert "260 counted. 40 left out, because they have no true value. Use --key to let rows wait." in said.out
    csv.write_csv(table.set_column(4, "price", pa.nulls(300, pa.float64())), "none.csv")
    assert "missing in every row of none.csv" in run("none.csv").complaint


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["old.csv"], "rows are among those that trained or calibrated the model"),
        (["good.csv", "--key", "nobody"], "good.csv has no column 'nobody' for --key"),
        (["good.csv", "--key", "town"], "Each row needs a key of its own"),
        (["good.csv", "--time", "town"], "must hold numbers or dates"),
        (["good.csv", "--significance", "0"], "--significance must lie strictly between 0 and 1"),
        (["good.csv", "--recalibrate", "m-2.guardband"], "There is no alarm after 300 rows"),
        (["good.csv", "--page", "m.guardband"], "is an input of this command"),
        (["missing.csv"], "There is no table at missing.csv"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(run, tmp_path, arguments, words):
    before = {path.name for path in tmp_path.iterdir()}
    assert words in run(*arguments).complaint
    assert {path.name for path in tmp_path.iterdir()} == before


def test_the_state_of_another_model_or_significance_is_refused(run, tmp_path):
    assert run("good.csv", "--significance", "0.02").code == 0
    assert "begun with --significance 0.02" in run("moved.csv", "--significance", "0.01").complaint
    other = gb.load("m.guardband").calibrate(
        csv.read_csv("keyed.csv").drop_columns(["price", "id"]), csv.read_csv("keyed.csv")["price"]
    )
    other.save("other.guardband")
    assert "is the state of another model" in run("moved.csv", model="other.guardband").complaint
    (tmp_path / "m.monitor").write_bytes(b"no state")
    assert "is no state of a monitor" in run("moved.csv").complaint


def test_after_an_alarm_a_new_model_follows_and_the_chain_says_so(run, tmp_path):
    assert run("good.csv").code == 0
    alarm = run("moved.csv", "--recalibrate", "m-2.guardband", "--json")
    assert alarm.code == 1, alarm.err
    since, told = alarm.json["since"], alarm.json["recalibrated"]
    assert told["rows"] == 600 - since
    anew = gb.load("m-2.guardband")
    assert anew.certificate_.n_calibration == told["rows"]
    assert (
        "among those that trained or calibrated"
        in run("moved.csv", model="m-2.guardband", state="m-2.monitor").complaint
    )
    csv.write_csv(shifted(small_table(300, seed=5), 4), "later.csv")
    later = run("later.csv", "--json", model="m-2.guardband", state="m-2.monitor")
    assert (later.code, later.json["rows"]) == (0, 300)
    (link,) = later.json["chain"]
    assert (link["model"], link["state"], link["rows"]) == ("m.guardband", "m.monitor", "600")
    assert link["alarm_row"] == str(alarm.json["alarm_row"])
    page = (tmp_path / "m-2.monitor.html").read_text()
    assert "Models before this one" in page
    assert "m.guardband" in page


@pytest.mark.parametrize("options", [(), ("--key", "id"), ("--time", "day")])
def test_the_command_that_raised_the_alarm_may_be_repeated_to_recalibrate(run, options):
    csv.write_csv(with_keys(csv.read_csv("moved.csv"), 0), "moved.csv")
    assert run("good.csv").code == 0
    alarm = run("moved.csv", *options, "--json")
    assert alarm.code == 1
    said = run("moved.csv", *options, "--json", "--recalibrate", "m-2.guardband")
    assert said.code == 1, said.err
    assert said.json["rows"] == 600
    assert said.json["recalibrated"]["rows"] == 600 - alarm.json["since"]


def test_too_few_rows_since_the_change_are_refused(run, tmp_path):
    assert run("good.csv").code == 0
    csv.write_csv(csv.read_csv("moved.csv")[:50], "few.csv")
    assert run("few.csv").code == 1
    csv.write_csv(csv.read_csv("moved.csv")[50:55], "five.csv")
    before = (tmp_path / "m.monitor").read_bytes()
    words = run("five.csv", "--recalibrate", "m-2.guardband").complaint
    assert "5 rows came since the change, and intervals calibrated on them would be infinite. Wait until" in words
    assert (tmp_path / "m.monitor").read_bytes() == before
    assert not (tmp_path / "m-2.guardband").exists()


def test_a_state_that_has_counted_rows_is_not_begun_again(run):
    assert run("good.csv", state="m-2.monitor").code == 0
    assert run("moved.csv").code == 1
    words = run("keyed.csv", "--recalibrate", "m-2.guardband").complaint
    assert "m-2.monitor has counted 300 rows already" in words


def test_a_second_process_that_began_from_an_older_state_is_refused(run, tmp_path, monkeypatch):
    assert run("good.csv").code == 0
    own = gb.Monitor.update
    page = (tmp_path / "m.monitor.html").read_bytes()

    def update(self, *arguments, **more):
        monkeypatch.setattr(gb.Monitor, "update", own)
        other = gb.Monitor.load("m.monitor", self._intake.reader.model)
        other.update([1.0], np.array([[0.0, 1.0, 2.0]]))
        other.save("m.monitor")
        return own(self, *arguments, **more)

    monkeypatch.setattr(gb.Monitor, "update", update)
    assert "m.monitor was written by another process, and nothing was saved here" in run("moved.csv").complaint
    assert gb.Monitor.load("m.monitor").rows == 301
    assert (tmp_path / "m.monitor.html").read_bytes() == page


def test_a_rule_is_monitored_like_a_model(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)

    def bands(n, spread=1.0):
        point = rng.standard_normal(n)
        values = {
            "low": point - 1,
            "up": point + 1,
            "price": point + spread * rng.standard_normal(n),
            "id": np.arange(n),
        }
        return pa.table({name: pa.array(own) for name, own in values.items()})

    csv.write_csv(bands(500), "bands.csv")
    made = command("calibrate", "bands.csv", "--lower", "low", "--upper", "up", "--target", "price", "-o", "r.rule")
    assert made.code == 0, made.err
    csv.write_csv(bands(400), "good.csv")
    csv.write_csv(bands(400, 2.0), "wide.csv")
    assert command("monitor", "r.rule", "good.csv", "--state", "r.monitor").code == 0
    alarm = command("monitor", "r.rule", "wide.csv", "--state", "r.monitor", "--recalibrate", "r2.rule")
    assert alarm.code == 1, alarm.err
    assert " rows of this run since the change." in alarm.out
    csv.write_csv(bands(300, 2.0), "later.csv")
    assert command("monitor", "r2.rule", "later.csv", "--state", "r2.monitor").code == 0


KILLED = 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_runs_that_are_killed_and_repeated_leave_the_state_of_an_undisturbed_run(run, tmp_path):
    """Killed at a random system call of its writing, in a process that shares the packages loaded here."""
    tables = ["good.csv", "keyed.csv", "moved.csv"]
    for name in tables:
        run(name, state="whole.monitor")
    random = np.random.default_rng(0)
    for name in tables:
        for _ in range(KILLED // len(tables)):
            killed_while_writing(tmp_path, name, int(random.integers(1, 40)))
        assert run(name).code in (0, 1, 2)  # 2: the last kill came after the state was written
    kept, state, _ = read_state(tmp_path / "m.monitor")
    whole, expected, _ = read_state(tmp_path / "whole.monitor")
    assert kept == whole
    np.testing.assert_array_equal(state.history.misses, expected.history.misses)
    np.testing.assert_array_equal(state.tables, expected.tables)
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


def killed_while_writing(folder, table, at):
    """Run the command in a child that kills itself when it opens, syncs or renames a file for the ``at``-th time."""
    child = os.fork()
    if child == 0:
        calls = iter(range(at))

        def dying(call):
            def made(*arguments, **more):
                if next(calls, None) is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*arguments, **more)

            return made

        try:
            from typer.testing import CliRunner

            from guardband.cli.app import app

            for name in ("open", "replace", "fsync", "chmod"):
                setattr(os, name, dying(getattr(os, name)))
            CliRunner().invoke(app, ["monitor", "m.guardband", table, "--state", "m.monitor", "--target", "price"])
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def test_a_table_that_was_counted_without_keys_does_not_count_again_with_keys(run):
    assert run("keyed.csv").code == 0
    assert (
        "all 200 rows with a true value in keyed.csv were counted before" in run("keyed.csv", "--key", "id").complaint
    )


def test_a_key_is_the_same_with_a_decimal_point(run):
    whole = csv.read_csv("keyed.csv")
    assert run("keyed.csv", "--key", "id").code == 0
    places = pa.array([f"{i}.0" for i in whole["id"].to_pylist()])
    csv.write_csv(whole.set_column(whole.column_names.index("id"), "id", places), "floats.csv")
    assert "were counted before" in run("floats.csv", "--key", "id").complaint


def test_a_table_that_was_judged_by_time_comes_again_by_time(run):
    csv.write_csv(csv.read_csv("moved.csv").take(np.arange(299, -1, -1)), "back.csv")
    assert run("good.csv", "--time", "day").code == 0
    alarm = run("back.csv", "--time", "day")
    assert alarm.code == 1
    assert "--target price --time day --recalibrate m-2.guardband" in alarm.out
    again = ("back.csv", "--recalibrate", "m-2.guardband")
    assert "in the order of their times" in run(*again).complaint
    assert run(*again, "--time", "day").code == 1


@pytest.mark.parametrize("name", ["", "."])
def test_a_state_without_a_name_is_refused(command, small_model, name):
    said = command("monitor", "m.guardband", "good.csv", "--state", name)
    assert "--state must name a file" in said.complaint


def test_rows_of_a_growing_table_with_keys_are_known_again_to_recalibrate(run, tmp_path):
    tables = [with_keys(csv.read_csv("good.csv"), 1000), with_keys(csv.read_csv("moved.csv"), 2000)]
    csv.write_csv(pa.concat_tables(tables), "grown.csv")
    csv.write_csv(tables[0], "first.csv")
    assert run("first.csv", "--key", "id").code == 0
    assert run("grown.csv", "--key", "id").code == 1
    again = run("grown.csv", "--key", "id", "--recalibrate", "m-2.guardband", "--json")
    assert again.code == 1
    assert again.json["update"]["counted"] == 0
    assert again.json["recalibrated"]["rows"] == 600 - again.json["since"]
    assert gb.load("m-2.guardband").certificate_.n_calibration == 600 - again.json["since"]


def test_rows_whose_true_values_came_late_are_known_again_to_recalibrate(run):
    moved = with_keys(csv.read_csv("moved.csv"), 2000)
    csv.write_csv(moved, "moved-keyed.csv")
    csv.write_csv(moved.drop_columns("price"), "now.csv")
    csv.write_csv(moved.select(["price", "id"]), "truth.csv")
    assert run("good.csv").code == 0
    assert run("now.csv", "--key", "id").code == 0
    assert run("truth.csv", "--key", "id").code == 1
    again = run("moved-keyed.csv", "--key", "id", "--recalibrate", "m-2.guardband", "--json")
    assert again.json["recalibrated"]["rows"] == 600 - again.json["since"]
