"""Predictions are the same to the bit from many threads at once, and with any number of threads of torch."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

import guardband as gb

ROWS = 1500  # more than a block, so that several threads are used
THREADS = 16


def draw(n, seed):
    random = np.random.default_rng(seed)
    x = random.standard_normal((n, 3)).astype(np.float32)
    return x, x.sum(1) + random.standard_normal(n).astype(np.float32)


def fit_table(hidden=(16,)):
    return gb.IntervalRegressor(hidden=hidden, epochs=1, random_state=0).fit(*draw(600, 0))


def bounds(found):
    return np.stack([found.lower, found.upper])


def table_model():
    model = fit_table()
    return lambda x: bounds(model.predict_interval(x))


def band_calibrator():
    x, y = draw(300, 1)
    bands = gb.BandCalibrator().fit(x[:, 0] - 1, x[:, 0], x[:, 0] + 1, y)
    return lambda x: bounds(bands.transform(x[:, 0] - 1, x[:, 0], x[:, 0] + 1))


def calibrated_model():
    model = gb.calibrate(LinearRegression().fit(*draw(300, 0)), draw(300, 1))
    return lambda x: bounds(model.predict_interval(x))


def calibrated_network():
    network = gb.calibrate(gb.nn.FullyConnected(3, (16,)), tuple(map(torch.tensor, draw(300, 1))))
    return lambda x: network(torch.from_numpy(x)).detach().numpy()


@pytest.mark.parametrize("make", [table_model, band_calibrator, calibrated_model, calibrated_network])
def test_many_threads_get_what_one_gets(make):
    predict = make()
    tables = [draw(ROWS, seed)[0] for seed in range(2 * THREADS)]
    before, expected = torch.get_num_threads(), [predict(x) for x in tables]
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(predict, tables))
    assert all(np.array_equal(own, one) for own, one in zip(found, expected, strict=True))
    assert not np.array_equal(expected[0], expected[1])
    assert torch.get_num_threads() == before


@pytest.fixture
def threads_of_torch():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_fit_and_prediction_do_not_depend_on_the_number_of_threads(threads_of_torch):
    found = []
    for number in (1, 2, 4):
        threads_of_torch(number)
        found.append(bounds(fit_table((128, 128)).predict_interval(draw(ROWS, 2)[0])))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
