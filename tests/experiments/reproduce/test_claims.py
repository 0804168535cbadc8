import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom

from guardband.bands.ranks import marginal_rank
from guardband.experiments.reproduce.claims import LEVEL, count_band, judge
from guardband.experiments.reproduce.compare import METHODS, compare, printed

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
    assert verdicts() == [*["holds"] * 5, "not run", *["holds"] * 3, "not run"]


@pytest.mark.parametrize(
    ("place", "changed"),
    [
        (0, {"conf-nn": rows("conf-nn", 0.87)}),
        (0, {"conf-nn": rows("conf-nn", 0.93)}),
        (1, {"pav": rows("pav", 0.80)}),
        (2, {"pav-fixed-sequence": rows("pav-fixed-sequence", 0.82)}),
        (3, {"pav": rows("pav", 0.89)}),
        (4, {"qreg-un": rows("qreg-un", 0.905)}),
        (6, {"pav": rows("pav", 0.92, length=1.5)}),
        (7, {"conf-nn": rows("conf-nn", 0.9, mae=1.1)}),
        (8, {"bayes": rows("bayes", 0.905, length=0.9)}),
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
    assert verdicts(**few) == ["holds", *["not judged"] * 4, "not run", *["not judged"] * 3, "not run"]
