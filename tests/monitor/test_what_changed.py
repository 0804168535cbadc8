import numpy as np

import guardband as gb


def test_only_rows_since_the_change_say_whether_inputs_changed():
    """A column that moved for a while, long before outcomes changed, did not change with them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 2))
    model = gb.IntervalRegressor(hidden=(8,), epochs=3, random_state=0).fit(X, X[:, 0] + rng.standard_normal(800))
    monitor = gb.Monitor(model)
    for shift, spread, n in ((0.6, 1.0, 512), (0.0, 1.0, 1536), (0.0, 3.0, 512)):
        X = rng.standard_normal((n, 2)) + np.array([0.0, shift])
        monitor.update(X[:, 0] + spread * rng.standard_normal(n), X=X)
        assert monitor.alarm == (spread > 1)
        assert len(monitor._state.inputs.moved) == 1
    assert monitor.finding().changed == "outcomes"
    assert monitor.finding().columns == ()
