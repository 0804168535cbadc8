import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom

from guardband.bands.ranks import marginal_rank
from guardband.experiments.reproduce import compare as comparing
from guardband.experiments.reproduce.claims import LEVEL, count_band, judge
from guardband.experiments.reproduce.compare import METHODS, agreement, apart, compare, impossible_points, printed

RNG = np.random.default_rng(0)
N2, N3, REPETITIONS = 400, 400, 20


def test_the_band_is_that_of_the_convolved_law():
    one = betabinom.pmf(np.arange(31), 30, 27, 3)
    law = np.convolve(np.convolve(one, one), one)
    cumulative = np.cumsum(law)
    low, high = count_band(3, 30, 27, 29, inside=0.98)
    assert cumulative[low] >= 0.01 > cumulative[low - 1]
    assert cumulative[high] >= 0.99 > cumulative[high - 1]


def rows(method, coverage, length=1.0, mae=1.0, experiment="bike", setting="paper"):
    covered = np.broadcast_to(np.round(np.asarray(coverage) * N3), REPETITIONS).astype(int)
    spread = 1 + 0.001 * RNG.standard_normal(REPETITIONS)
    return pd.DataFrame(
        {
            "experiment": experiment,
            "setting": setting,
            "method": method,
            "repetition": range(REPETITIONS),
            "n_train": 1200,
            "n_calibration": N2,
            "n_test": N3,
            "covered": covered,
            "coverage": covered / N3,
            "length": length * spread,
            "mae": mae * spread,
            "seconds": 1.0,
        }
    )


def drawn(k, n):
    return RNG.binomial(N3, RNG.beta(k, n + 1 - k, REPETITIONS)) / N3


def verdicts(**changed):
    k = marginal_rank(LEVEL, N2)
    noisy = 0.92 + 0.01 * RNG.standard_normal(REPETITIONS)
    given = {
        "conf-nn": rows("conf-nn", drawn(k, N2)),
        "pav": rows("pav", noisy, 1.05),
        "pav-fixed-sequence": rows("pav-fixed-sequence", noisy, 1.05),
        "qreg-un": rows("qreg-un", 0.8 + 0.01 * RNG.standard_normal(REPETITIONS), 0.8),
        "conf-fw": rows("conf-fw", 0.905, 1.2),
        "high-q": rows("high-q", 0.93, 1.3),
        "neg-ll": rows("neg-ll", 0.95, 1.6),
        "bayes": rows("bayes", 0.905, 1.3),
    }
    results = pd.concat((given | changed).values(), ignore_index=True)
    return [claim.verdict for claim in judge({"results": results, "details": pd.DataFrame(), "curves": pd.DataFrame()})]


def test_numbers_as_the_paper_has_them_bear_its_claims_out():
    assert verdicts() == [*["holds"] * 5, *["not run"] * 2, *["holds"] * 3, *["not run"] * 2]


@pytest.mark.parametrize(
    ("place", "changed"),
    [
        (0, {"conf-nn": rows("conf-nn", 0.87)}),
        (0, {"conf-nn": rows("conf-nn", 0.93)}),
        (1, {"pav": rows("pav", 0.80)}),
        (2, {"pav-fixed-sequence": rows("pav-fixed-sequence", 0.82)}),
        (3, {"pav": rows("pav", 0.89)}),
        (4, {"qreg-un": rows("qreg-un", 0.905)}),
        (7, {"pav": rows("pav", 0.92, length=1.5)}),
        (8, {"conf-nn": rows("conf-nn", 0.9, mae=1.1)}),
        (9, {"bayes": rows("bayes", 0.905, length=0.9)}),
    ],
)
def test_other_numbers_do_not(place, changed):
    assert verdicts(**changed)[place] == "does not hold"


def test_printed_numbers_are_whole():
    curves, boxes = printed("curves"), printed("figure2")
    assert set(curves["figure"]) == {"1", "S1", "S2 n=5000", "S2 n=47222", "S3"}
    assert set(boxes["method"]) == set(METHODS)
    assert set(boxes["experiment"]) == {"bike", "boneage", "house", "traffic"}
    found = boxes.query("experiment == 'bike' and measure == 'length' and method == 'conf-nn'")
    assert found["median"].item() == 1.52


def test_the_comparison_has_printed_ours_difference_and_error():
    results = rows("conf-nn", 0.9, length=1.6)
    table = compare({"results": results, "details": pd.DataFrame(columns=list(results)[:4]), "curves": pd.DataFrame()})
    length = table[table["measure"] == "length"].iloc[0]
    assert length["printed"] == 1.52
    assert length["ours"] == pytest.approx(results["length"].median())
    assert length["difference"] == pytest.approx(length["ours"] - 1.52)
    assert length["standard_error"] > 0
    assert len(table) == 3


def test_too_few_repetitions_decide_nothing_that_needs_a_standard_error():
    k = marginal_rank(LEVEL, N2)
    few = {name: rows(name, drawn(k, N2)).head(3) for name in (*METHODS, "pav-fixed-sequence")}
    nothing = ["not run"] * 2
    assert verdicts(**few) == ["holds", *["not judged"] * 4, *nothing, *["not judged"] * 3, *nothing]


def claim_about(words, results=None, details=None, curves=None):
    """Return the claim whose text has these words, judged on the tables given."""
    tables = {"results": results, "details": details, "curves": curves}
    tables = {name: pd.DataFrame() if frame is None else frame for name, frame in tables.items()}
    return next(claim for claim in judge(tables) if words in claim.text)


def everyone(experiment, setting, changed=None):
    """Results of all methods: coverage 0.905, but for what is changed of a method."""
    own = {name: {"coverage": 0.905} | (changed or {}).get(name, {}) for name in (*METHODS, "pav-fixed-sequence")}
    parts = [rows(name, **what, experiment=experiment, setting=setting) for name, what in own.items()]
    return pd.concat(parts, ignore_index=True)


def curve(method, setting, small, rest):
    """Curves along beta'x: (relative length, coverage) for small beta'x and for the rest."""
    x = np.round(np.arange(1.0, 4.01, 0.2), 1)
    frames = []
    for repetition in range(REPETITIONS):
        length, coverage = (np.where(x < 1.5, one, other) for one, other in zip(small, rest, strict=True))
        noise = 1 + 0.001 * RNG.standard_normal(len(x))
        own = {"relative_length": length * noise, "coverage": coverage * noise, "combined_mae": 0.5}
        key = {"experiment": "simulation", "setting": setting, "method": method, "repetition": repetition}
        frames.append(pd.DataFrame({**key, "x": x, "rows": 1000, **own}))
    return pd.concat(frames)


@pytest.mark.parametrize(
    ("small", "rest", "verdict"),
    [
        ((1.3, 0.95), (1.02, 0.9), "holds"),
        ((1.3, 0.90), (1.02, 0.9), "holds in part"),  # longer, but it covers no more
        ((1.0, 0.90), (1.00, 0.8), "does not hold"),
    ],
)
def test_too_wide_for_small_signals_means_longer_and_covering_too_much_there_alone(small, rest, verdict):
    curves = pd.concat(
        curve(method, setting, small, rest) for method in METHODS for setting in ("tuned", "plain")
    ).reset_index(drop=True)
    found = claim_about("too wide for small beta'x", curves=curves)
    assert found.verdict == verdict
    assert {line.split(":")[0] for line in found.words} >= {"conf-nn (tuned)", "conf-nn (plain)", "pav (plain)"}
    assert f"{small[0]:.3f}" in found.words[0]


def test_artificial_data_are_judged_with_and_without_weight_decay():
    k = marginal_rank(LEVEL, N2)
    tuned = everyone("simulation", "tuned", {"conf-nn": {"coverage": drawn(k, N2)}})
    plain = everyone("simulation", "plain", {"conf-nn": {"coverage": 0.8}})
    found = claim_about("conf-nn covers at the nominal level", pd.concat([tuned, plain], ignore_index=True))
    assert found.verdict == "holds in part"
    assert [line.split(":")[0] for line in found.words] == ["simulation (tuned)", "simulation (plain)"]


def test_100_passes_are_said_to_over_fit_only_where_coverage_falls_clearly():
    def noisy(coverage):
        return {"qreg-un": {"coverage": coverage + 0.01 * RNG.standard_normal(REPETITIONS)}}

    parts = [
        everyone(name, setting, noisy(0.86 + change))
        for name, fall in (("bike", 0.0), ("house", -0.1))
        for setting, change in (("paper", 0.0), ("100 passes", fall))
    ]
    bike, house = claim_about("qreg-un, the network", pd.concat(parts, ignore_index=True)).words
    assert "100 passes do not clearly over-fit" in bike
    assert "100 passes over-fit" in house


def test_a_setting_without_rivals_is_not_compared_with_theirs_in_silence():
    parts = [everyone("boneage", "paper")]
    parts += [rows(method, 0.9, length=70, experiment="boneage", setting="ours") for method in ("conf-nn", "pav")]
    parts += [rows(method, 0.9, length=80, experiment="boneage", setting="sex") for method in ("conf-nn", "conf-fw")]
    words = claim_about("among the shortest", pd.concat(parts, ignore_index=True)).words
    ours = next(line for line in words if line.startswith("boneage (ours)"))
    assert "conf-fw was not trained in this setting" in ours
    assert "compares recipes, not methods" in ours
    assert any(line.startswith("boneage (sex): conf-nn is 1.0") for line in words)


@pytest.mark.parametrize(("passes", "verdict"), [(4, "does not hold"), (90, "holds")])
def test_passes_are_judged_by_what_the_paper_reports(passes, verdict):
    details = pd.DataFrame({"method": "conf-nn", "repetition": range(10), "epochs": passes})
    details = details.assign(experiment="simulation", setting="plain")
    found = claim_about("80 to 100 passes", details=details)
    assert found.verdict == verdict
    assert f"median {passes}" in found.words[0]


def test_agreement_counts_points_beyond_three_standard_errors_with_and_without_the_errors_of_the_printed():
    def point(difference, method="pav", measured=1):
        own = {"figure": "1", "setting": "tuned", "measure": "coverage", "method": method, "measured": measured}
        return own | {"difference": difference, "standard_error": 0.01, "reading_error": 0.001}

    points = [point(d) for d in (0.0, -0.029, 0.031, -0.0433, 0.0435, 0.1)]
    points += [point(0.5, measured=0), point(0.5, method="qreg-un"), point(0.5) | {"standard_error": np.nan}]
    found = agreement(pd.DataFrame(points)).set_index("methods")
    assert tuple(found.loc["the other six", ["figure", "points", "differ", "differ_still"]]) == ("1 (tuned)", 6, 4, 2)
    assert tuple(found.loc["qreg-un", ["points", "differ", "differ_still"]]) == (1, 1, 1)
    assert found.loc["the other six", "coverage"] == pytest.approx((0.031 + 0.0433) / 2)


def test_a_printed_point_that_covers_more_than_its_length_allows_is_counted(monkeypatch):
    def both(method, length, coverage):
        own = {"figure": "1", "method": method, "x": 4.0, "measured": 1}
        return [own | {"measure": "relative_length", "value": length}, own | {"measure": "coverage", "value": coverage}]

    points = [*both("conf-nn", 1.0, 0.9), *both("conf-fw", 0.688, 0.907), *both("pav", 1.2, 0.95)]
    monkeypatch.setattr(comparing, "printed", lambda name: pd.DataFrame(points))
    assert impossible_points("1") == ({"conf-fw": 1}, 3)


def test_the_curves_of_figure_1_are_compared_in_both_settings():
    curves = pd.concat([curve("pav", setting, (1.2, 0.95), (1.0, 0.9)) for setting in ("tuned", "plain")])
    table = compare({"results": pd.DataFrame(), "details": pd.DataFrame(), "curves": curves})
    assert set(table["setting"]) == {"tuned", "plain"}
    assert set(table["figure"]) == {"1"}
    assert table["reading_error"].gt(0).all()


def test_the_ends_of_a_curve_are_compared_apart_from_its_middle():
    own = {"figure": "1", "setting": "tuned", "measure": "coverage", "method": "pav", "measured": 1}
    points = [(1.0, -0.05), (2.0, 0.01), (3.0, 0.03), (4.0, 0.07)]
    table = pd.DataFrame([own | {"x": x, "difference": difference} for x, difference in points])
    assert apart(table, "tuned") == pytest.approx((0.02, 0.06))
