"""A promise for each group, through every way in: the same ranks, the same words, the same refusals."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import guardband as gb
from guardband.bands.ranks import marginal_rank, order_statistic, pac_rank

LEVEL = Fraction("0.9")
RNG = np.random.default_rng(7)
N = 1200
X = pd.DataFrame(
    {
        "district": RNG.choice(["old", "new", "far"], N, p=[0.5, 0.3, 0.2]),
        "hour": RNG.integers(0, 4, N),
        "x": RNG.normal(size=N),
    }
)
SPREAD = np.where(X["district"] == "far", 3.0, 1.0)
Y = 2 * X["x"].to_numpy() + SPREAD * RNG.normal(size=N)
NEW = X.assign(x=X["x"] + 0.5).iloc[:400].reset_index(drop=True)
Y_NEW = 2 * NEW["x"].to_numpy() + SPREAD[:400] * RNG.normal(size=400)
SCORES = np.abs(Y - 2 * X["x"].to_numpy())


def twice_x(rows):
    return 2 * np.asarray(rows["x"], dtype=float)


@pytest.mark.parametrize("guarantee", ["marginal", "pac"])
def test_each_district_has_the_rank_of_its_own_rows(guarantee):
    model = gb.calibrate(twice_x, (X, Y), groups="district", guarantee=guarantee)
    bands = model.predict_interval(NEW)
    assert [line.name for line in model.certificate.groups] == ["district = far", "district = new", "district = old"]
    for line, value in zip(model.certificate.groups, ["far", "new", "old"], strict=True):
        own = SCORES[X["district"] == value]
        k = marginal_rank(LEVEL, len(own)) if guarantee == "marginal" else pac_rank(LEVEL, len(own), 0.1 / 3)
        assert (line.n_calibration, line.rank) == (len(own), k)
        half = order_statistic(own, k)
        rows = (NEW["district"] == value).to_numpy()
        assert np.allclose(bands.width[rows], 2 * half, rtol=1e-9)
        assert line.mean_width == pytest.approx(2 * half, rel=1e-9)
    assert model.certificate.kind == guarantee
    assert model.certificate.groups[0].cost > 0.3 > 0 > model.certificate.groups[2].cost


def test_of_overlapping_groups_a_row_keeps_the_largest_threshold_given_the_data():
    model = gb.calibrate(twice_x, (X, Y), groups=["district", "hour"], guarantee="pac")
    found = {}
    for column in ("district", "hour"):
        for value in sorted(X[column].unique()):
            own = SCORES[X[column] == value]
            found[column, value] = order_statistic(own, pac_rank(LEVEL, len(own), 0.1 / 7))
    pairs = zip(NEW["district"], NEW["hour"], strict=True)
    wanted = [2 * max(found["district", d], found["hour", h]) for d, h in pairs]
    assert np.allclose(model.predict_interval(NEW).width, wanted, rtol=1e-9)


def test_the_same_groups_come_from_a_column_a_function_and_labels():
    named = gb.calibrate(twice_x, (X, Y), groups="district").predict_interval(NEW)
    by_function = gb.calibrate(twice_x, (X, Y), groups=lambda rows: rows["district"]).predict_interval(NEW)
    rule = gb.BandCalibrator("conf-fw").fit(None, twice_x(X), None, Y, groups=X["district"])
    labelled = rule.transform(None, twice_x(NEW), None, groups=NEW["district"])
    assert (named.lower == by_function.lower).all()
    assert (named.lower == labelled.lower).all()


@pytest.mark.parametrize("guarantee", ["marginal", "pac"])
def test_columns_of_labels_are_found_by_their_names(guarantee):
    labels = pd.DataFrame({"far": X["district"] == "far", "near": X["district"] != "far"})
    rule = gb.BandCalibrator("conf-fw", guarantee=guarantee).fit(None, twice_x(X), None, Y, groups=labels)
    wanted = rule.transform(None, twice_x(X), None, groups=labels)
    swapped = rule.transform(None, twice_x(X), None, groups=labels[["near", "far"]])
    assert (wanted.width == swapped.width).all()
    assert (rule.transform(None, twice_x(X), None, groups=labels.to_numpy()).width == wanted.width).all()
    with pytest.raises(ValueError, match="must have the columns 'far', 'near', found 'near', 'off'"):
        rule.transform(None, twice_x(X), None, groups=labels.rename(columns={"far": "off"})[["near", "off"]])
    trained = gb.BandCalibrator("conf-fw").fit(
        None, twice_x(X), None, Y, groups=labels, training_groups=labels[["near", "far"]]
    )
    counts = {line.name: line.n_calibration for line in trained.certificate.groups}
    assert counts == {"near": int(labels["near"].sum()), "far": int(labels["far"].sum())}


def test_truth_in_several_columns_is_one_group_each_and_rows_of_none_have_no_interval():
    members = np.stack([X["x"] > 0, X["hour"] == 0], axis=1)
    rule = gb.BandCalibrator("conf-fw", guarantee="pac").fit(None, twice_x(X), None, Y, groups=members)
    assert [line.name for line in rule.certificate.groups] == ["group 1", "group 2"]
    of_none = ~members.any(axis=1)
    assert (np.isinf(rule.transform(None, twice_x(X), None, groups=members).width) == of_none).all()


@pytest.mark.parametrize("options", [{}, {"guarantee": "pac"}, {"side": "upper"}, {"confidence_level": [0.8, 0.9]}])
@pytest.mark.parametrize("absent", [None, 0])
@pytest.mark.filterwarnings("ignore:The (intervals|upper bounds) are infinite")
def test_many_rows_at_once_have_the_intervals_that_few_at_a_time_have(options, absent):
    """Of many rows the sets of groups are numbered, and some are such as no calibration row has."""
    rng = np.random.default_rng(3)
    members, new = rng.random((N, 4)) < [0.6, 0.5, 0.5, 0.02], rng.random((20_000, 4)) < 0.5
    if absent is not None:
        members[:, absent] = False
    point = rng.standard_normal(len(new))
    rule = gb.BandCalibrator("cqr", **options)
    rule.fit(twice_x(X) - 1, twice_x(X), twice_x(X) + 1, Y, groups=members)
    whole = rule.transform(point - 1, point, point + 1, groups=new)
    for first in range(0, 160, 16):  # as many rows as there are sets
        rows = slice(first, first + 16)
        few = rule.transform(point[rows] - 1, point[rows], point[rows] + 1, groups=new[rows])
        np.testing.assert_array_equal(few.lower, whole.lower[rows])
        np.testing.assert_array_equal(few.upper, whole.upper[rows])
    assert 0 < np.isfinite(whole.upper[:160]).mean() < 1


@pytest.mark.parametrize("options", [{}, {"guarantee": "pac"}, {"tails": (0.02, 0.08)}])
@pytest.mark.filterwarnings("ignore:The (intervals|upper bounds|lower bounds) are infinite")
def test_labels_as_whole_numbers_and_as_floats_give_the_same_intervals(options):
    rng = np.random.default_rng(4)
    known, new = rng.integers(0, [3, 2], (N, 2)), rng.integers(0, [4, 3], (N, 2))  # some values are new
    each = [
        gb.BandCalibrator("conf-nn", **options)
        .fit(twice_x(X) - 1, twice_x(X), twice_x(X) + 1, Y, groups=known.astype(kind))
        .transform(twice_x(X) - 1, twice_x(X), twice_x(X) + 1, groups=new.astype(kind))
        for kind in (np.int64, np.float64)
    ]
    np.testing.assert_array_equal(each[0].lower, each[1].lower)
    np.testing.assert_array_equal(each[0].upper, each[1].upper)
    assert 0 < np.isfinite(each[0].width).mean() < 1


def test_the_mean_width_of_overlapping_groups_is_that_of_their_rows():
    members = np.stack([X["x"] > 0, X["hour"] == 0, X["district"] == "far"], axis=1)
    rule = gb.BandCalibrator("conf-fw").fit(None, twice_x(X), None, Y, groups=members)
    widths = rule.transform(None, twice_x(X), None, groups=members).width
    for line, own in zip(rule.certificate.groups, members.T, strict=True):
        assert line.mean_width == pytest.approx(widths[own].mean(), rel=1e-12)


def test_a_value_never_seen_is_infinite_or_pooled_and_a_missing_one_is_a_group_if_asked():
    holes = X.assign(district=X["district"].where(np.arange(N) % 5 > 0))
    odd = NEW.assign(district=["unheard of", None, *NEW["district"][2:]])
    model = gb.calibrate(twice_x, (holes, Y), groups="district")
    assert np.isinf(model.predict_interval(odd).width[:2]).all()
    with_missing = gb.calibrate(twice_x, (holes, Y), groups="district", missing_groups=True)
    assert with_missing.certificate.groups[-1].name == "district = missing"
    assert np.isinf(with_missing.predict_interval(odd).width).tolist()[:2] == [True, False]
    first, rest = (X.iloc[:600], Y[:600]), (X.iloc[600:].assign(x=X["x"][600:] + 1e-3), Y[600:])
    few = first[0].assign(district=np.where(np.arange(600) < 5, "hamlet", first[0]["district"]))
    rest[0]["district"] = np.where(np.arange(600) < 12, "hamlet", rest[0]["district"])
    pooled = gb.calibrate(twice_x, rest, groups="district", small_groups="pool", training=(few, first[1]))
    assert [line.name for line in pooled.certificate.groups][-1] == "district = all other values"
    assert "district = hamlet" not in [line.name for line in pooled.certificate.groups]
    assert pooled.certificate.groups[-1].n_calibration == 12
    assert np.isfinite(pooled.predict_interval(odd.iloc[:1]).width).all()


def test_small_groups_are_named_with_the_rows_that_they_need():
    few = X.assign(district=np.where(np.arange(N) < 8, "hamlet", X["district"]))
    words = r"infinite in 1 of 4 groups, because each needs at least 9 calibration rows: 'district = hamlet \(8\)'"
    with pytest.warns(gb.InsufficientCalibrationWarning, match=words):
        model = gb.calibrate(twice_x, (few, Y), groups="district")
    assert np.isinf(model.predict_interval(few.iloc[:8]).width).all()
    assert np.isfinite(model.predict_interval(few.iloc[8:]).width).all()
    with pytest.raises(gb.InsufficientCalibrationError, match="needs at least 9"):
        gb.calibrate(twice_x, (few, Y), groups="district", on_insufficient="raise")


def test_numbers_become_ranges_that_training_rows_fix():
    model = gb.calibrate(twice_x, (X, Y), groups="x", group_bins=3, training=(NEW, Y_NEW))
    cuts = np.sort(NEW["x"])[[400 // 3, 800 // 3]]
    counts = [line.n_calibration for line in model.certificate.groups]
    places = np.searchsorted(cuts, X["x"], side="right")
    assert counts == np.bincount(places).tolist()
    assert model.certificate.groups[0].name.startswith("x = below ")


@pytest.mark.parametrize("groups", ["district", ["district", "hour"]], ids=["one", "overlap"])
@pytest.mark.parametrize("guarantee", ["marginal", "pac"])
def test_a_saved_model_has_the_same_groups(tmp_path, groups, guarantee):
    model = gb.calibrate(twice_x, (X, Y), groups=groups, guarantee=guarantee, confidence_level=[0.9, 0.8])
    model.save(tmp_path / "m")
    loaded = gb.load(tmp_path / "m", model=twice_x)
    assert str(loaded.certificate) == str(model.certificate)
    assert loaded.certificate.groups == model.certificate.groups
    assert (loaded.predict_interval(NEW).lower == model.predict_interval(NEW).lower).all()


def test_a_rule_of_labels_is_saved_with_its_groups(tmp_path):
    rule = gb.BandCalibrator("conf-fw").fit(None, twice_x(X), None, Y, groups=X[["district", "hour"]])
    rule.save(tmp_path / "r")
    loaded = gb.load(tmp_path / "r")
    new = NEW[["district", "hour"]]
    assert (
        loaded.transform(None, [1.0] * 400, None, groups=new).lower
        == rule.transform(None, [1.0] * 400, None, groups=new).lower
    ).all()


def test_groups_of_a_function_are_brought_again(tmp_path):
    def far(rows):
        return rows["district"] == "far"

    model = gb.calibrate(twice_x, (X, Y), groups=far)
    assert [line.name for line in model.certificate.groups] == ["far = no", "far = yes"]
    model.save(tmp_path / "m")
    with pytest.raises(gb.ModelFileError, match=r"groups of your own: pass it as load\(..., groups=...\)"):
        gb.load(tmp_path / "m", model=twice_x)
    assert gb.load(tmp_path / "m", model=twice_x, groups=far).certificate == model.certificate


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: gb.calibrate(twice_x, (X, Y), groups="street"), "X has no column 'street', as groups asks for"),
        (lambda: gb.calibrate(twice_x, (X, Y), groups=lambda rows: rows["x"][:9]), "one label for each of 1,200 rows"),
        (lambda: gb.calibrate(twice_x, (X, Y), groups=[]), "groups must be the name of a column"),
        (lambda: gb.calibrate(twice_x, (X, Y), groups=3), "groups must be the name of a column"),
        (lambda: gb.calibrate(twice_x, (X, Y), groups="x"), "more than 30 different numbers. Pass training rows"),
        (lambda: gb.calibrate(twice_x, (X, Y), groups="district", small_groups="drop"), "small_groups must be 'inf'"),
        (lambda: gb.calibrate(twice_x, (X, Y), groups="district", small_groups="pool"), "needs the counts of training"),
        (lambda: gb.calibrate(twice_x, (X, Y), groups="district", group_bins=1), "group_bins must be a whole number"),
        (lambda: gb.calibrate(twice_x, (X, Y), groups="auto"), "looks for groups on rows that are not calibration"),
        (lambda: gb.BandCalibrator().fit(Y - 1, Y, Y + 1, Y, groups=[1, 2]), "one label for each of 1,200 rows"),
        (lambda: gb.BandCalibrator().fit(Y - 1, Y, Y + 1, Y, training_groups=[1, 2]), "Pass groups= too"),
        (
            lambda: gb.BandCalibrator("conf-fw").fit(None, Y, None, Y, groups=X["hour"]).transform(None, [1], None),
            "Pass groups=, as you did to fit",
        ),
        (
            lambda: gb.BandCalibrator("conf-fw").fit(None, Y, None, Y).transform(None, [1], None, groups=[1]),
            "fit was given no groups",
        ),
        (
            lambda: gb.calibrate(twice_x, (X, Y), groups="district").predict_interval(NEW.drop(columns="district")),
            "lacks 1 of the model's 3 columns: 'district'",
        ),
    ],
)  # fmt: skip
def test_bad_groups_are_one_sentence_that_says_what_to_do(act, words):
    with pytest.raises(ValueError, match=words) as caught:
        act()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", ["pav", "high-q"])
def test_methods_without_ranks_refuse_groups(method):
    bands = np.stack([Y - 1] * 3), np.stack([Y] * 3), np.stack([Y + 1] * 3)
    options = {"taus": [0.1, 0.2, 0.3]} if method == "pav" else {}
    with pytest.raises(ValueError, match="has no promise for each group"):
        gb.BandCalibrator(method, **options).fit(*bands, Y, groups=X["hour"])


def test_an_audit_tests_each_group_and_names_the_one_that_is_broken():
    model = gb.calibrate(twice_x, (X, Y), groups="district")
    fine = model.audit(NEW, Y_NEW)
    assert fine.verdict == "consistent"
    assert [part.name for part in fine.parts] == ["district = far", "district = new", "district = old"]
    assert sum(part.n for part in fine.parts) == 400
    new = (NEW["district"] == "new").to_numpy()
    broken = model.audit(NEW, np.where(new, Y_NEW + 2, Y_NEW))
    assert broken.verdict == "broken"
    assert "rows with district = new" in broken.sentence
    assert [part.name for part in broken.parts if part.verdict == "broken"] == ["district = new"]
    json.dumps(broken.to_dict())
    assert broken.p_value == pytest.approx(3 * min(part.p_value for part in broken.parts))


def test_rows_of_no_known_group_cannot_judge_it():
    rule = gb.BandCalibrator("conf-fw").fit(None, twice_x(X), None, Y, groups=X["district"])
    found = rule.audit(None, twice_x(NEW), None, Y_NEW, groups=np.full(400, "elsewhere"))
    assert (found.verdict, found.p_value) == ("cannot judge", 1.0)
    assert "no row belongs to a group that has a promise" in found.sentence
    assert "belongs to none of these groups gets an infinite interval" in str(rule.certificate)


def test_rows_are_consistent_only_if_they_tell_of_half_of_the_groups():
    model = gb.calibrate(twice_x, (X, Y), groups="district")
    kept = (X["district"] == "old").to_numpy(copy=True)
    kept[np.flatnonzero(~kept)[:20]] = True
    rows = X[kept].assign(x=X["x"] + 0.7).reset_index(drop=True)
    found = model.audit(rows, 2 * rows["x"].to_numpy() + np.random.default_rng(1).normal(size=len(rows)))
    assert [part.verdict for part in found.parts] == ["too few rows", "too few rows", "consistent"]
    assert found.verdict == "too few rows"


def test_with_several_levels_a_group_is_counted_once():
    model = gb.calibrate(twice_x, (X, Y), groups="district", confidence_level=[0.9, 0.8])
    more = X.assign(x=X["x"] + 0.7)
    y = 2 * more["x"].to_numpy() + SPREAD * np.random.default_rng(1).normal(size=N)
    assert " of 3 groups" in model.audit(more, y).sentence
    far = (NEW["district"] == "far").to_numpy()
    broken = model.audit(NEW, np.where(far, 99.0, Y_NEW)).sentence
    assert broken.count("district = far") == 1


def test_explanations_and_the_page_follow_the_groups(tmp_path):
    model = gb.calibrate(gb_model(), (X, Y), groups="district")
    found = model.explain(NEW.iloc[:2], background=NEW)
    assert found.width[:, list(X.columns).index("district")].any()
    assert np.allclose(found.width[:, list(X.columns).index("x")], 0, atol=1e-9)
    page = model.report(tmp_path / "page.html", NEW, Y_NEW).read_text()
    assert "in each group (district)" in page


def gb_model():
    class Twice:
        def predict(self, rows):
            return twice_x(rows)

    return Twice()


# ------------------------------------------------------------------------------------ networks and tables

T, TY = torch.tensor(X[["hour", "x"]].to_numpy(), dtype=torch.float32), torch.tensor(Y)
GROUPS = {
    "truth": lambda x: x[:, 1] > 0,
    "numbers": lambda x: x[:, 0].long(),
    "several": lambda x: torch.stack([x[:, 1] > 0, x[:, 0] < 2], dim=1),
}


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 4), gb.nn.TripleHead(4))


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("guarantee", ["marginal", "pac"])
def test_a_network_finds_the_groups_of_its_inputs(network, tmp_path, name, guarantee):
    guarded = gb.calibrate(network, (T, TY), groups=GROUPS[name], guarantee=guarantee)
    bands = network(T).detach().double().numpy()
    rule = gb.BandCalibrator(guarantee=guarantee).fit(*bands.T, Y, groups=GROUPS[name](T).numpy())
    wanted = rule.transform(*bands.T[:, :50], groups=GROUPS[name](T[:50]).numpy())
    out = guarded(T[:50])
    assert out.dtype == torch.float32
    assert np.allclose(out[:, 0], wanted.lower, rtol=1e-5, atol=1e-5)
    guarded.save(tmp_path / "n")
    again = gb.load(tmp_path / "n", network=network, groups=GROUPS[name])
    assert torch.equal(again(T), guarded(T))
    assert guarded.audit(T + 0.001, TY).parts


def test_the_graph_of_a_network_holds_its_groups(network, tmp_path):
    session = pytest.importorskip("onnxruntime").InferenceSession
    guarded = gb.calibrate(network, (T, TY), groups=GROUPS["several"])
    gb.export_onnx(guarded, T[:8], tmp_path / "n.onnx")
    lower, _, upper = session(tmp_path / "n.onnx").run(None, {"x": T.numpy()})
    out = guarded(T).numpy()
    assert np.allclose(lower, out[:, 0], rtol=1e-5, atol=1e-5)
    assert np.allclose(upper, out[:, 2], rtol=1e-5, atol=1e-5)


def test_what_a_network_cannot_use_as_groups_is_said(network):
    for groups, error, words in (
        ("district", ValueError, "must be a function of its inputs"),
        (lambda x: x[:, 1], TypeError, "a tensor of truth or of whole numbers"),
        (lambda x: x[:5, 1] > 0, ValueError, "one label for each of"),
    ):
        with pytest.raises(error, match=words):
            gb.calibrate(network, (T, TY), groups=groups)
    with pytest.raises(ValueError, match="are for tables"):
        gb.calibrate(network, (T, TY), groups=GROUPS["truth"], small_groups="pool")


@pytest.fixture(scope="module", params=["district", ["district", "hour"], "auto"], ids=["one", "overlap", "auto"])
def table_model(request):
    method = "conf-fw" if request.param == "auto" else "conf-nn"
    options = {"preset": "fast", "max_epochs": 3, "random_state": 0, "calibration_size": 0.5}
    return gb.IntervalRegressor(method, groups=request.param, **options).fit(X, Y)


def test_a_model_of_a_table_finds_its_groups_again(table_model, tmp_path):
    bands = table_model.predict_interval(NEW)
    assert len(table_model.certificate_.groups) >= 2
    table_model.save(tmp_path / "m")
    loaded = gb.load(tmp_path / "m")
    assert str(loaded.certificate_) == str(table_model.certificate_)
    assert (loaded.predict_interval(NEW).lower == bands.lower).all()
    again = table_model.as_network()
    out = again(again.rows(NEW)).numpy()
    assert np.allclose(out[:, 0], bands.lower, rtol=1e-5, atol=1e-5)
    assert table_model.audit(NEW, Y_NEW).parts
    assert sum(line.n_calibration for line in table_model.certificate_.groups) % 600 == 0


def test_a_graph_refuses_groups_that_it_cannot_tell():
    rare = X.assign(district=[f"d{i % 400}" if i % 3 else "old" for i in range(N)])
    with pytest.warns(gb.InsufficientCalibrationWarning, match="pool small groups"):
        model = gb.IntervalRegressor(network="plain", epochs=1, random_state=0, groups="district").fit(rare, Y)
    with pytest.raises(ValueError, match="too rare to be learnt by itself"):
        model.as_network()


def test_settings_of_groups_cannot_change_after_fit():
    model = gb.IntervalRegressor(preset="fast", max_epochs=1, random_state=0).fit(X, Y)
    model.groups = "district"
    with pytest.raises(ValueError, match="groups was changed after fit"):
        model.calibrate(NEW, Y_NEW)
