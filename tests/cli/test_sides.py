"""--side and --tails on the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

import guardband as gb


@pytest.fixture
def bands_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    point = rng.random(400)
    rows = [f"{p - 1},{p},{p + 1},{p + e}" for p, e in zip(point, rng.exponential(size=400), strict=True)]
    (tmp_path / "bands.csv").write_text("\n".join(["low,mid,high,y", *rows]))
    return ["bands.csv", "--lower", "low", "--point", "mid", "--upper", "high", "--target", "y", "-o", "r.rule"]


def test_a_rule_for_one_side(command, bands_path):
    said = command("calibrate", *bands_path, "--side", "upper")
    assert said.code == 0, said.err
    assert "at least 90% of new rows lie at or below their upper bounds" in said.out
    assert np.isneginf(gb.load("r.rule").transform([0.0], [0.5], [1.0]).lower).all()
    assert command("predict", "r.rule", "bands.csv", "-o", "out.csv").code == 0
    assert "-inf" in Path("out.csv").read_text()


@pytest.mark.parametrize(("side", "bound"), [("upper", "high"), ("lower", "low")])
def test_one_side_does_not_need_the_other_bound(command, bands_path, side, bound):
    whole, one = (gb.load(own) for own in _rules_of_one_side(command, side, bound))
    assert one.columns.names == (("mid", bound) if side == "upper" else (bound, "mid"))
    assert one.certificate == whole.certificate
    low, mid, high = ([0.0], [0.5], [1.5])
    own = (None, mid, high) if side == "upper" else (low, mid, None)
    np.testing.assert_array_equal(getattr(one.transform(*own), side), getattr(whole.transform(low, mid, high), side))
    assert command("predict", "one.rule", "bands.csv", "-o", "out.csv").code == 0
    assert command("audit", "one.rule", "bands.csv", "--force").code == 2


def _rules_of_one_side(command, side, bound):
    """Return the paths of a rule that got both bounds, and of one that got the bound of its side alone."""
    given = {"whole.rule": ("--lower", "low", "--upper", "high"), "one.rule": (f"--{side}", bound)}
    for path, columns in given.items():
        call = ("calibrate", "bands.csv", *columns, "--point", "mid", "-t", "y", "-o", path, "--side", side)
        assert command(*call).code == 0
    return list(given)


def test_a_bound_alone_is_moved(command, bands_path):
    assert command("calibrate", "bands.csv", "--upper", "high", "-t", "y", "-o", "r", "--side", "upper").code == 0
    high, y = np.loadtxt("bands.csv", delimiter=",", skiprows=1)[:, 2:].T
    assert gb.load("r").transform(None, [0.0], None).upper == pytest.approx(np.sort(y - high)[360])


def test_a_rule_for_two_tails(command, bands_path):
    said = command("calibrate", *bands_path, "--tails", "0.02,0.08", "--json")
    assert said.code == 0, said.err
    promise = json.loads(said.out)["certificate"]["promise"]
    assert [part["side"] for part in promise["parts"]] == ["lower", "upper"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["--tails", "0.1"], "Write --tails 0.02,0.08"),
        (["--tails", "0.1,x"], "Write --tails 0.02,0.08"),
        (["--tails", "0.6,0.6"], "tails must add up to less than 1"),
        (["--tails", "0.1,0.1", "--level", "0.9"], "tails take the place of a confidence level"),
        (["--side", "left"], "side must be one of"),
        (["--side", "lower", "--method", "qreg-un"], "has no promise for one side"),
        (["--side", "upper", "--weights", "mid"], "weights cannot go with side="),
    ],
)
def test_what_cannot_be_is_refused(command, bands_path, asked, words):
    said = command("calibrate", *bands_path, *asked)
    assert said.code == 2
    assert words in " ".join(said.err.split())
