import numpy as np
from scipy.stats import binom, kstest

from guardband import metrics
from guardband.data.artificial import PaperModel
from laws import SIGNIFICANCE

MODEL = PaperModel()


def test_noise_is_gaussian_with_the_stated_deviation():
    X, y = MODEL.draw(20_000, 0)
    assert kstest((y - MODEL.median(X)) / MODEL.deviation(X), "norm").pvalue > SIGNIFICANCE
    assert X.shape == (20_000, 100)
    assert X.min() >= 0
    assert X.max() <= 1


def test_median_is_the_papers_function():
    X = np.zeros((1, 100))
    X[0, :5] = 0.1
    assert MODEL.median(X)[0] == 2 * np.sin(np.pi * 0.5) + np.pi * 0.5


def test_oracle_covers_its_level():
    X, y = MODEL.draw(20_000, 1)
    bands = MODEL.oracle(X, 0.9)
    count = metrics.coverage(y, bands) * 20_000
    low, high = binom.ppf([SIGNIFICANCE / 2, 1 - SIGNIFICANCE / 2], 20_000, 0.9)
    assert low <= count <= high
    np.testing.assert_allclose(MODEL.coverage(X, bands.lower, bands.upper), 0.9)


def test_same_seed_same_data():
    assert (MODEL.draw(10, 3)[1] == MODEL.draw(10, 3)[1]).all()
