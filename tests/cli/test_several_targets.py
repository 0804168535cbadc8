"""Several targets on the command line."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from laws import SIGNIFICANCE

pytest.importorskip("guardband.report.page")

FIT = ("fit", "sales.csv", "--target", "price", "--target", "days", "--preset", "fast")


def table(n, seed):
    random = np.random.default_rng(seed)
    x, noise = random.standard_normal((n, 2)), random.standard_normal((n, 2))
    days = pa.array((10 * x[:, 1] + 5 * noise.sum(1)).round(3), mask=random.random(n) < 0.02)
    return pa.table({"size": x[:, 0], "age": x[:, 1], "price": (x[:, 0] + noise[:, 0]).round(4), "days": days})


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    csv.write_csv(table(1200, 0), "sales.csv")
    new = table(600, 1)
    csv.write_csv(new.append_column("town", pa.array(["Graz", "Linz"] * 300)), "new.csv")
    return tmp_path


@pytest.mark.parametrize("each", [(), ("--each-target",)])
def test_fit_predict_audit_and_report(command, here, each):
    said = command(*FIT, *each)
    assert said.code == 0, said.err
    assert "Counts and widths" not in said.out + (here / "sales.html").read_text()
    assert [line.split()[0] for line in said.out.splitlines() if line.split()[:1] in (["price"], ["days"])]
    assert ("for each target separately" if each else "have both targets inside their intervals") in said.out
    assert '<h2 id="target-1">days</h2>' in (here / "sales.html").read_text()
    said = command("predict", "sales.guardband", "new.csv", "-o", "out.csv")
    assert said.code == 0, said.err
    names = [f"{target}_{part}" for target in ("price", "days") for part in ("point", "lower", "upper")]
    assert csv.read_csv("out.csv").column_names[-6:] == names
    rarely = ("--significance", str(SIGNIFICANCE))
    said = command(
        "audit", "sales.guardband", "new.csv", "--report", "a.html", "--recalibrate", "again.guardband", *rarely
    )
    assert said.code == 0, said.err
    assert "all targets" in said.out
    assert '<h2 id="target-1">days</h2>' in (here / "a.html").read_text()
    said = command("audit", "again.guardband", "new.csv")
    assert said.code == 2
    assert "trained or calibrated" in said.err
    assert command("report", "sales.guardband", "new.csv", "-o", "b.html").code == 0


@pytest.mark.parametrize("each", [(), ("--each-target",)])
def test_the_model_file_keeps_the_check(command, here, each):
    says = "Counts and widths are those of the 90% intervals, the first of 2 levels."
    assert says in " ".join(command(*FIT, *each, "--level", "0.9,0.5").out.split())
    assert says in " ".join(command("audit", "sales.guardband", "new.csv").out.split())
    assert says in (here / "sales.html").read_text()
    assert "90% and 50% prediction intervals for price and days" in (here / "sales.html").read_text()
    assert command("report", "sales.guardband", "-o", "kept.html", "--figures", "figures").code == 0
    assert (here / "kept.html").read_text() == (here / "sales.html").read_text()
    drawn = {path.relative_to(here / "figures").as_posix() for path in (here / "figures").rglob("*.svg")}
    assert drawn == {f"target-{j}/{name}.svg" for j in (1, 2) for name in ("intervals", "widths")}
    assert command("audit", "sales.guardband", "new.csv", "--recalibrate", "again.guardband").code in (0, 1)
    assert command("report", "again.guardband", "-o", "again.html").code == 0
    assert "Not yet checked" in (here / "again.html").read_text()


def test_json_holds_the_joint_verdict_and_each_target(command, here):
    told = json.loads(command(*FIT, "--json").out)
    assert told["target"] == ["price", "days"]
    assert told["certificate"]["promise"]["targets"] == 2
    found = json.loads(command("audit", "sales.guardband", "new.csv", "--json").out)
    assert found["targets"].keys() == {"price", "days"}
    assert all(own["for_information"] for own in found["targets"].values())
    assert found["levels"][0]["covered"] <= found["targets"]["days"]["levels"][0]["covered"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--target", "price"), "--target names 'price' twice"),
        (("--target", "size,age"), "repeat the option: --target size --target age."),
        (("--target", "pric"), "Did you mean 'price'?"),
        (("--group", "size"), "--target more than once and --group exclude each other"),
        (("--report-by", "age"), "--target more than once and --report-by exclude each other"),
        (("--unit", "CHF"), "With 2 targets, there must be 2 units"),
        (("--side", "upper"), "--target more than once and --side exclude each other"),
        (("--tails", "0.05,0.05"), "--target more than once and --tails exclude each other"),
        (("--for-target", "new.csv"), "--target more than once and --for-target exclude each other"),
        (("--method", "pav"), "Several targets need method="),
        (("--drop", "days"), "'days' is the target"),
    ],
)
def test_what_cannot_be_is_refused(command, here, more, says):
    said = command(*FIT, *more)
    assert said.code == 2
    assert says in said.err


def test_each_target_needs_several(command, here):
    said = command("fit", "sales.csv", "--target", "price", "--each-target")
    assert said.code == 2
    assert "--each-target is about several targets" in said.err


def test_commands_for_one_target_say_so(command, here):
    command(*FIT, "--check", "0")
    for asked in (
        ("explain", "sales.guardband", "new.csv"),
        ("monitor", "sales.guardband", "new.csv", "--state", "s"),
        ("export", "sales.guardband", "--onnx", "m.onnx"),
    ):
        said = command(*asked)
        assert said.code == 2
        assert "one target" in said.err
    said = command("audit", "sales.guardband", "new.csv", "--target", "price")
    assert "predicts 'price', 'days'. Remove --target" in said.err


def test_groups_that_are_asked_for_are_shown_or_refused(command, here):
    command(*FIT)
    plain, every = command("audit", "sales.guardband", "new.csv"), command("audit", "sales.guardband", "new.csv", "-a")
    assert "Target 'days':" not in plain.out
    assert "Column 'age'" in every.out
    shown = command("audit", "sales.guardband", "new.csv", "--report-by", "town", "--report", "a.html")
    assert shown.out.count("Graz") == 2
    assert "The page of several targets shows no groups" in " ".join(shown.err.split())
    said = command("report", "sales.guardband", "new.csv", "--report-by", "town", "-o", "b.html")
    assert said.code == 2
    assert "Remove --report-by, or use guardband audit" in " ".join(said.err.split())


def test_each_target_has_its_unit_on_the_page(command, here):
    command(*FIT, "--unit", "CHF,days")
    price, days = (here / "sales.html").read_text().split('<h2 id="target-0">')[1].split('<h2 id="target-1">')
    assert "\N{NO-BREAK SPACE}CHF" in price
    assert "\N{NO-BREAK SPACE}days" not in price
    assert "\N{NO-BREAK SPACE}days" in days
    for asked in (("report", "sales.guardband", "-o", "b.html"), ("audit", "sales.guardband", "new.csv")):
        said = command(*asked, "--unit", "CHF")
        assert said.code == 2
        assert "Write a unit for each target in order" in " ".join(said.err.split())
