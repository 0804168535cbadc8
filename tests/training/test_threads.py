"""A process that is forked after a prediction computes on one thread, and does not wait for threads left behind."""

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import os, signal, sys, time, warnings
    import numpy as np
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingRegressor  # before torch: it has an OpenMP of its own
    import torch
    import guardband as gb

    warnings.simplefilter("ignore")  # Python 3.12 warns of forks beside threads
    torch.set_num_threads(2)
    random = np.random.default_rng(0)
    x = random.normal(size=(1000, 6)).astype(np.float32)
    y = x.sum(1) + random.normal(size=1000)
    people = pd.DataFrame(x, columns=list("abcdef")).assign(who=np.repeat(np.arange(100), 10).astype(str))
    rows, target = torch.tensor(x), torch.tensor(y, dtype=torch.float32)
    network = gb.nn.FullyConnected(6, (64,))

    def fit():
        return gb.IntervalRegressor(hidden=(64, 64), epochs=2, preset="fast", random_state=0).fit(people, y)

    def calibrate():
        return gb.calibrate(network, (rows, target))

    def train():
        networks = [gb.nn.FullyConnected(6, (64,)) for _ in range(3)]
        gb.train(networks, (rows, target), gb.nn.IntervalLoss(0.1), epochs=2, learning_rate=0.01)

    HistGradientBoostingRegressor(max_iter=5).fit(x, y)
    torch.randn(600, 600) @ torch.randn(600, 600)
    from guardband.learning import proxy
    proxy.TREES = 5
    tried, trees = [], proxy.Inputs.errors
    proxy.Inputs.errors = lambda *given, **more: tried.append(1) or trees(*given, **more)
    model, guarded = fit(), calibrate()
    assert tried  # the trees that look for dependent rows are at work as well
    expected = model.predict_interval(people).lower

    def predict():
        np.testing.assert_allclose(model.predict_interval(people).lower, expected, rtol=1e-5)

    def forward():
        guarded(rows)
        torch.randn(600, 600) @ torch.randn(600, 600)

    def threads():
        from guardband.training.threads import allowed_threads
        assert torch.get_num_threads() == allowed_threads() == 1

    for work in (predict, fit, calibrate, train, forward, threads):
        child = os.fork()
        if child == 0:
            signal.alarm(240)  # a guard: what hangs is ended, and counts as failed
            try:
                work()
            except BaseException as error:
                print(work.__name__, repr(error), flush=True)
                os._exit(1)
            os._exit(0)
        print(work.__name__, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    assert torch.get_num_threads() == 2
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_predicts_fits_calibrates_and_trains():
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment["OMP_WAIT_POLICY"] = "passive"  # on a busy machine threads would wait for each other at full speed
    environment["CUDA_VISIBLE_DEVICES"] = ""  # torch refuses a GPU in a forked process by a sentence of its own
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, check=False, env=environment
    )
    expected = [f"{name} 0" for name in ("predict", "fit", "calibrate", "train", "forward", "threads")]
    assert done.stdout.splitlines() == expected, done.stdout + done.stderr
