"""One small Ray for all tests of this folder: three processes, and little memory for what they share."""

import logging
import os

import numpy as np
import pytest

import guardband as gb
from object_storage import KEYS, NO_OTHERS
from ray_rows import QUICK, frame, table

PROCESSES = 3
MEMORY = 300 << 20


@pytest.fixture(scope="session")
def cluster():
    """Start Ray, and end it after the last test; its own warnings are none of ours."""
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    from guardband.ray.cluster import connect

    os.environ.setdefault("RAY_worker_niceness", "0")  # else all that runs beside the tests goes first
    # Ray ends a worker that has nothing to do if there are more than cores, and a fit that waits for others is one
    # more. The next fit would start another one, which imports torch again.
    os.environ.setdefault("RAY_num_workers_soft_limit", str(2 * PROCESSES))
    os.environ.update(KEYS | NO_OTHERS)
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
    ray.init(address="local", num_cpus=PROCESSES, object_store_memory=MEMORY, **quiet)
    connect()
    yield ray
    ray.shutdown()


@pytest.fixture(scope="session")
def fitted():
    """Return a function that fits a small model without calibrating it, each once."""
    known = {}

    def fit(**options):
        key = repr(options)
        if key not in known:
            rows = table(600, 0)
            made = gb.IntervalRegressor(calibration_size=None, **QUICK, **options)
            known[key] = made.fit(frame(rows), np.array(rows["y"]))
        return known[key]

    return fit


@pytest.fixture
def one_at_a_time(monkeypatch):
    """Let one part be under way at a time: an error then stops no worker, each of which takes seconds to start."""
    for name in ("scoring", "summarising", "learning_rows", "judging", "watching"):
        monkeypatch.setattr(f"guardband.ray.{name}.AHEAD", 1)
        monkeypatch.setattr(f"guardband.ray.{name}.workers", lambda: 1)


@pytest.fixture
def sent_as_they_are(cluster, request):
    """Send classes of a file of tests to workers, which cannot import it."""
    cluster.cloudpickle.register_pickle_by_value(request.module)
    yield
    cluster.cloudpickle.unregister_pickle_by_value(request.module)
