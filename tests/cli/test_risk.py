"""--risk and --risk-cap on the command line."""

from pathlib import Path

import numpy as np
import pytest

import guardband as gb

RISK = ("--risk", "0.2", "--risk-cap", "3")


@pytest.fixture
def bands_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, seed, scale in (("bands.csv", 0, 1), ("new.csv", 1, 1), ("worse.csv", 2, 4)):
        rng = np.random.default_rng(seed)
        point = rng.random(1000)
        rows = [f"{p - 1},{p},{p + 1},{p + scale * e}" for p, e in zip(point, rng.exponential(size=1000), strict=True)]
        (tmp_path / name).write_text("\n".join(["low,mid,high,y", *rows]))
    return ["bands.csv", "--lower", "low", "--point", "mid", "--upper", "high", "--target", "y", "-o", "r.rule"]


@pytest.mark.parametrize("more", [(), ("--guarantee", "pac", "--delta", "0.2")])
def test_a_rule_for_a_risk_is_made_used_audited_and_reported(command, bands_path, more):
    said = command("calibrate", *bands_path, *RISK, *more)
    assert said.code == 0, said.err
    assert "the mean distance of new values from their intervals is at most 0.2" in said.out
    assert gb.load("r.rule").certificate.risk["limit"] == 0.2
    assert command("predict", "r.rule", "new.csv", "-o", "out.csv").code == 0
    said = command("audit", "r.rule", "new.csv", "--report", "page.html")
    assert said.code == 0, said.err
    assert "Consistent with the promise: the mean distance of 1,000 rows from their intervals is" in said.out
    assert "Mean distance from the interval" in Path("page.html").read_text()
    assert '<dl class="facts four">' in Path("page.html").read_text()
    said = command("audit", "r.rule", "worse.csv", "--json")
    assert said.code == 1
    assert said.json["risk"]["mean_loss"] > said.json["risk"]["breaking"]
    said = command("audit", "r.rule", "new.csv", "--all")
    assert said.code == 0
    assert "exact test" not in said.out
    assert command("report", "r.rule", "-o", "again.html").code == 0


def test_a_table_for_a_risk(command, small_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wanted = ("--risk", "20", "--risk-cap", "300", "--preset", "fast", "-o", "own.guardband")
    said = command("fit", str(small_model.path), "--target", "price", *wanted)
    assert said.code in (0, 1), said.err
    assert "the mean distance of new values from their intervals is at most 20" in said.out
    assert "nan" not in said.out
    model = gb.load("own.guardband")
    assert model.risk == gb.Risk(20, 300)
    assert command("predict", "own.guardband", str(small_model.path), "-o", "out.csv").code == 0
    said = command("monitor", "own.guardband", str(small_model.path), "--state", "s.monitor")
    assert said.code == 2
    assert "cannot be monitored" in said.complaint


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--risk", "5"), "--risk needs --risk-cap. Write --risk 5 --risk-cap 100"),
        (("--risk-cap", "5"), "--risk-cap needs --risk."),
        ((*RISK, "--level", "0.9"), "--risk and --level exclude each other"),
        ((*RISK, "--tails", "0.1,0.1"), "--risk and --tails exclude each other"),
        ((*RISK, "--side", "upper"), "side"),
        ((*RISK, "--group", "mid"), "--risk and --group exclude each other"),
        ((*RISK, "--method", "qreg-un"), 'method="qreg-un" has no promise for a risk'),
        (("--risk", "5", "--risk-cap", "1"), "limit must be below cap"),
        (("--risk", "0", "--risk-cap", "1"), "--risk must be a positive number, found 0"),
    ],
)
def test_what_cannot_go_together_is_refused(command, bands_path, options, words):
    said = command("calibrate", *bands_path, *options)
    assert said.code == 2
    assert words in said.complaint


@pytest.mark.parametrize("other", [("--group", "town"), ("--side", "upper"), ("--for-target", "x.csv")])
def test_fit_refuses_it_before_anything_is_read(command, small_model, tmp_path, other):
    said = command(
        "fit", str(small_model.path), "--target", "price", *RISK, *other, "-o", str(tmp_path / "m.guardband")
    )
    assert said.code == 2
    assert "exclude each other" in said.complaint


def test_plan_says_how_many_rows_a_risk_needs(command):
    said = command("plan", "--risk", "5", "--risk-cap", "100", "--json")
    assert [own["rows"] for own in said.json["needs"]] == [19, 45]
    first = said.json["promises"][0]
    assert first["rows"] == 50
    assert first["mean"] == pytest.approx((5 * 51 - 100) / 50)
    assert "infinite intervals" in command("plan", "--risk", "5", "--risk-cap", "100", "--rows", "30").out
    assert command("plan", "--risk", "5").code == 2
    assert "Remove --tails" in command("plan", "--risk", "5", "--risk-cap", "9", "--tails", "0.1,0.1").complaint


@pytest.mark.parametrize("check", ["0.2", "0"])
@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
def test_infinite_intervals_end_with_2(command, small_model, tmp_path, check):
    own = ("--preset", "fast", "--check", check, "-o", str(tmp_path / "m.guardband"))
    said = command("fit", str(small_model.path), "--target", "price", "--risk", "1", "--risk-cap", "1e6", *own)
    assert said.code == 2, said.err
    assert "No usable intervals" in said.out
    assert "follow the advice" in said.out
    said = command("audit", str(tmp_path / "m.guardband"), str(small_model.path), "--force")
    assert "level" not in said.out + said.err
