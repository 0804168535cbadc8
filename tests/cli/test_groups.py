"""Promises for groups on the command line: fit, calibrate, predict, audit and report."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import guardband as gb
from forged_models import bounds
from guardband.cli.group_options import groups_in

TOWNS = np.array(["Graz", "Linz", "Wien"])
BANDS = ("--lower", "q05", "--upper", "q95", "--target", "price")


def houses(path, n=900, seed=0, worse="", towns=TOWNS):
    """Write houses in three towns; true values of one of them may be far off."""
    rng = np.random.default_rng(seed)
    size, town = rng.standard_normal(n), towns[np.arange(n) % len(towns)]
    price = 3 * size + rng.standard_normal(n) * np.where(town == worse, 6, 1)
    csv.write_csv(pa.table({"size": size, "town": town, "auto": np.arange(n) % 2, "price": price}), path)
    return path


def bands(path, n=600, seed=0, worse=-1, **more):
    lower, _, upper, y = bounds(n, seed)
    group = np.arange(n) % 3
    middle = (lower + upper) / 2
    y = np.where(group == worse, middle + 5 * (y - middle), y)
    columns = {"q05": lower, "q95": upper, "price": y, "town": TOWNS[group], "number": np.arange(n) % 40}
    csv.write_csv(pa.table(columns | more), path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return the path of a model with a promise for each town."""
    folder = tmp_path_factory.mktemp("groups")
    table = csv.read_csv(houses(folder / "houses.csv"))
    own = gb.IntervalRegressor(groups=["town"], preset="fast", max_epochs=3, random_state=0, split_by=[])
    own.fit(table.drop_columns("price"), table["price"])
    own.save(folder / "m.guardband")
    return folder / "m.guardband"


@pytest.fixture
def rule(tmp_path, command):
    call = ("calibrate", bands(tmp_path / "bands.csv"), *BANDS, "-o", tmp_path / "r", "-q", "--group", "town")
    assert command(*call).code == 0
    return tmp_path / "r"


def test_fit_promises_for_each_group_and_says_how_each_fares(tmp_path, command):
    call = ("fit", houses(tmp_path / "h.csv"), "-t", "price", "-o", tmp_path / "m", "--preset", "fast")
    said = command(*call, "--group", "town", "--independent-rows")
    assert said.code == 0
    assert said.out.splitlines()[0].startswith(("Consistent with the promise", "Too few rows"))
    assert "Promise for each group, the worst first:" in said.out
    assert all(f"town = {town}" in said.out for town in TOWNS)
    assert "Cost: how much wider the intervals are than with one promise for all rows." in said.out
    own = gb.load(tmp_path / "m")
    assert [line.name for line in own.certificate_.groups] == [f"town = {town}" for town in TOWNS]
    assert 'id="groupwise"' in (tmp_path / "m.html").read_text()


def test_fit_as_json_has_a_line_for_each_group(tmp_path, command):
    call = ("fit", houses(tmp_path / "h.csv"), "-t", "price", "-o", tmp_path / "m", "--preset", "fast", "--json")
    found = command(*call, "--group", "town,auto", "--check", "0", "--group-bins", "3", "-q").json["groups"]
    assert {own["name"] for own in found} == {*(f"town = {town}" for town in TOWNS), "auto = 0", "auto = 1"}
    assert all(own["found"] is None and own["rows"] > 0 and own["mean_width"] > 0 for own in found)


def test_a_column_that_is_called_auto_is_a_column(tmp_path, command):
    call = ("fit", houses(tmp_path / "h.csv"), "-t", "price", "-o", tmp_path / "m", "--group", "auto", "--no-report")
    assert "'auto' makes groups, and the model must get this column" in command(*call, "--drop", "auto").complaint
    assert groups_in(["auto"], ["size", "auto"]).by == ["auto"]
    assert groups_in(["size,auto"], ["size"]).by == ["size", "auto"]
    assert groups_in(["auto"], ["size"]).by == "auto"


def test_auto_without_such_a_column_looks_for_groups(tmp_path, command):
    table = csv.read_csv(houses(tmp_path / "h.csv")).drop_columns("auto")
    csv.write_csv(table, tmp_path / "h.csv")
    call = ("fit", tmp_path / "h.csv", "-t", "price", "-o", tmp_path / "m", "--preset", "fast", "--no-report")
    assert command(*call, "--group", "auto", "--check", "0").code == 0
    assert gb.load(tmp_path / "m").groups == "auto"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--small-groups", "pool"], "--small-groups is about groups. Name a column with --group"),
        (["--missing-group"], "--missing-group is about groups"),
        (["--group-bins", "4"], "--group-bins is about groups"),
        (["--group", "town", "--small-groups", "few"], "--small-groups must be inf or pool, found 'few'"),
        (["--group", "price"], "is the target. Name another column for --group"),
        (["--group", "twon"], "Did you mean 'town'?"),
        (["--group", "town", "--drop", "town"], "'town' makes groups, and the model must get this column"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(tmp_path, command, options, words):
    call = ("fit", houses(tmp_path / "h.csv"), "-t", "price", "-o", tmp_path / "m")
    assert words in command(*call, *options).complaint
    assert not (tmp_path / "m").exists()


def test_an_audit_breaks_if_one_group_is_broken(model, tmp_path, command):
    good, bad = houses(tmp_path / "good.csv", seed=1), houses(tmp_path / "bad.csv", seed=2, worse="Linz")
    said = command("audit", model, good)
    assert said.code == 0
    assert "Promise for each group, the worst first:" in said.out
    assert "broken" not in said.out
    said = command("audit", model, bad, "--report", tmp_path / "p.html")
    assert said.code == 1
    assert "rows with town = Linz" in said.out.splitlines()[0]
    line = next(own for own in said.out.splitlines() if own.strip().startswith("town = "))
    assert "Linz" in line
    assert line.rstrip().endswith("broken")
    assert ">broken<" in (tmp_path / "p.html").read_text()
    found = command("audit", model, bad, "--json").json["groups"]
    assert found[0]["found"]["verdict"] == "broken"
    assert sum(own["found"]["n"] for own in found) == 900


def test_report_by_shows_other_groups_and_says_that_nothing_is_promised_of_them(model, tmp_path, command):
    said = command("audit", model, houses(tmp_path / "new.csv", seed=1), "--report-by", "auto")
    assert "By auto" in said.out
    assert "Only the groups of the model have a promise." in said.out


@pytest.mark.parametrize("name", ["audit", "report"])
def test_group_on_audit_and_report_says_what_to_use(model, tmp_path, command, name):
    said = command(name, model, houses(tmp_path / "new.csv"), "--group", "town")
    assert "use --report-by" in said.complaint


def test_a_group_column_that_is_missing_is_named(model, rule, tmp_path, command):
    for own, table in ((model, houses(tmp_path / "h.csv")), (rule, bands(tmp_path / "b.csv"))):
        less = csv.read_csv(table)
        csv.write_csv(less.drop_columns("town"), tmp_path / "less.csv")
        said = command("predict", own, tmp_path / "less.csv", "-o", tmp_path / "out.csv")
        assert "less.csv has no column 'town', which says to what group a row belongs. Add it" in said.complaint
        csv.write_csv(less.rename_columns({"town": "Town"}), tmp_path / "less.csv")
        said = command("predict", own, tmp_path / "less.csv", "-o", tmp_path / "out.csv")
        assert "Is it 'Town'? Then rename that column." in said.complaint


def test_predictions_are_those_of_python(model, rule, tmp_path, command):
    for own, path in ((model, houses(tmp_path / "h.csv", seed=3)), (rule, bands(tmp_path / "b.csv", seed=3))):
        assert command("predict", own, path, "-o", tmp_path / "out.csv").code == 0
        table, out, loaded = csv.read_csv(path), csv.read_csv(tmp_path / "out.csv"), gb.load(own)
        expected = loaded.intervals_of(loaded.read_rows(table))
        np.testing.assert_allclose(out["lower"], expected.lower, rtol=1e-9)
        np.testing.assert_allclose(out["upper"], expected.upper, rtol=1e-9)
        assert len({*np.asarray(out["upper"]).round(9)}) > 3


@pytest.mark.filterwarnings("always:The intervals are infinite in 1 of 3 groups")
@pytest.mark.filterwarnings("always:The model was calibrated on too few rows")
def test_recalibration_keeps_the_groups(model, rule, tmp_path, command):
    few = houses(tmp_path / "h.csv", seed=1, towns=TOWNS[:2]), bands(tmp_path / "b.csv", seed=1)
    for own, path, empty in zip((model, rule), few, (True, False), strict=True):
        said = command("audit", own, path, "--recalibrate", tmp_path / "again", "-q")
        assert said.code in (0, 1)
        lines = getattr(gb.load(tmp_path / "again"), "certificate_" if own is model else "certificate").groups
        assert [line.name for line in lines] == [f"town = {town}" for town in TOWNS]
        assert (lines[2].n_calibration == 0) is empty


def test_a_rule_has_a_promise_for_each_group(rule, tmp_path, command):
    lines = gb.load(rule).certificate.groups
    assert [line.n_calibration for line in lines] == [200] * 3
    said = command("audit", rule, bands(tmp_path / "bad.csv", seed=1, worse=1), "--all")
    assert said.code == 1
    assert "rows with town = Linz" in said.out
    assert command("report", rule, tmp_path / "bad.csv", "-o", tmp_path / "p.html").code == 0
    assert 'id="groupwise"' in (tmp_path / "p.html").read_text()
    assert command("report", rule, "-o", tmp_path / "alone.html").code == 0
    assert "town = Wien" in (tmp_path / "alone.html").read_text()


def test_training_rows_fix_ranges_and_small_groups(tmp_path, command):
    call = ("calibrate", bands(tmp_path / "b.csv"), *BANDS, "-o", tmp_path / "r")
    assert "(on the command line --training TABLE)" in command(*call, "--group", "number").complaint
    assert "Name them with --training TABLE." in command(*call, "--group", "town", "--small-groups", "pool").complaint
    assert "--training is about groups" in command(*call, "--training", tmp_path / "b.csv").complaint
    train = tmp_path / "train.csv"
    csv.write_csv(pa.table({"number": np.arange(2000) % 40, "town": ["Graz"] * 1997 + ["Linz"] * 3}), train)
    said = command(*call, "--group", "number", "--training", train, "--group-bins", "2", "--json", "-q").json
    assert [own["name"] for own in said["groups"] if own["rows"]] == [own["name"] for own in said["groups"]]
    assert len(said["groups"]) == 2
    assert said["columns"] == ["q05", "q95"]
    pooled = command(*call, "--group", "town", "--training", train, "--small-groups", "pool", "--json", "-q").json
    assert {own["name"] for own in pooled["groups"]} == {"town = Graz", "town = all other values"}
    assert command("predict", tmp_path / "r", tmp_path / "b.csv", "-o", tmp_path / "out.csv").code == 0


def test_labels_that_python_brought_are_no_columns_of_a_table(tmp_path, command):
    lower, _, upper, y = bounds(300)
    gb.BandCalibrator().fit(lower, None, upper, y, groups=np.arange(300) % 2).save(tmp_path / "r")
    csv.write_csv(pa.table({"lower": lower, "upper": upper}), tmp_path / "new.csv")
    said = command("predict", tmp_path / "r", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert "Make a rule with guardband calibrate --group COL." in said.complaint


def test_of_many_groups_twelve_are_shown_unless_all_are_asked_for(tmp_path, command):
    many = {"shop": np.arange(600) % 20}
    call = ("calibrate", bands(tmp_path / "b.csv", **many), *BANDS, "-o", tmp_path / "r", "--group", "shop")
    said = command(*call)
    assert "And 8 more. Add --verbose to see them." in said.out
    new = bands(tmp_path / "new.csv", seed=1, **many)
    said = command("audit", tmp_path / "r", new)
    assert said.out.count("\n shop = ") == 12
    assert "And 8 more. Add --all to see them." in said.out
    assert command("audit", tmp_path / "r", new, "--all").out.count("\n shop = ") == 20


def test_names_of_groups_cannot_act_on_a_terminal_or_a_page(tmp_path, command):
    names = np.array(["<script>alert(1)</script>", "x" * 300, "two\nlines", "\x1b[31m=1+1"], dtype=object)
    hostile = {"shop": names[np.arange(600) % 4]}
    call = ("calibrate", bands(tmp_path / "b.csv", **hostile), *BANDS, "-o", tmp_path / "r", "--group", "shop")
    assert command(*call, "-v").code == 0
    new = bands(tmp_path / "new.csv", seed=1, **hostile)
    said = command("audit", tmp_path / "r", new, "--report", tmp_path / "p.html")
    assert said.code == 0
    assert "\x1b" not in said.out + said.err
    assert "x" * 60 not in said.out.split("Promise for each group")[1].split("Cost:")[0]
    assert "<script>alert" not in (tmp_path / "p.html").read_text()
