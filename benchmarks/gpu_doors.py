"""Every door on a GPU: same seed same result, rows apart, save and load, the caller's randomness left alone."""

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch

import guardband as gb
from guardband.data.artificial import PaperModel

CASES = (
    {},
    {"method": "pav"},
    {"method": "pav", "epochs": 10, "rule": "nested"},
    {"network": "paper", "max_epochs": 6, "patience": 3},
    {"epochs": 5, "dropout": 0.1, "ordering": "relu"},
)


def main() -> None:
    """Print a line per case; a failure is an exception."""
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    model = PaperModel()
    X, y = model.draw(20_000, 0)
    X_new, y_new = model.draw(20_000, 1)
    for asked in CASES:
        before = torch.get_rng_state(), torch.cuda.get_rng_state()
        started = time.perf_counter()
        fitted = gb.IntervalRegressor(random_state=0, device="cuda", **asked).fit(X, y)
        seconds = time.perf_counter() - started
        assert torch.equal(before[0], torch.get_rng_state())
        assert torch.equal(before[1], torch.cuda.get_rng_state())
        upper = fitted.predict_interval(X_new).upper
        again = gb.IntervalRegressor(random_state=0, device="cuda", **asked).fit(X, y)
        assert (again.predict_interval(X_new).upper == upper).all()
        assert (fitted.predict_interval(X_new[:3]).upper == upper[:3]).all()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            fitted.save(path)
            assert (gb.load(path, device="cuda").predict_interval(X_new).upper == upper).all()
            on_cpu = gb.load(path, device="cpu").predict_interval(X_new).upper
        covered = gb.metrics.coverage(y_new, fitted.predict_interval(X_new))
        apart = np.abs(on_cpu - upper).max()
        print(f"{asked}: {seconds:.1f} s, coverage {covered:.3f}, CPU and GPU differ by {apart:.1e}", flush=True)
    x, response = torch.tensor(X[:2000]).float().cuda(), torch.tensor(y[:2000]).float()
    loader = list(zip(x.split(500), response.split(500), strict=True))
    networks = [gb.nn.FullyConnected(100).cuda() for _ in range(2)]
    for network in networks:
        gb.train(network, loader, gb.nn.IntervalLoss(0.1).cuda(), epochs=2)
    for rule in ("paper", "fixed-sequence", "nested"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gb.InsufficientCalibrationWarning)
            guarded = gb.calibrate(networks, loader, "pav", taus=[0.1, 0.05], rule=rule)
        assert guarded(x).is_cuda
    guarded = gb.calibrate(networks[0], loader, confidence_level=[0.9, 0.5])
    assert guarded(x).shape == guarded.cpu()(x.cpu()).shape == (2000, 3, 2)
    print("Door 2 works on the GPU.")


if __name__ == "__main__":
    main()
