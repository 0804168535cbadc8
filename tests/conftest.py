"""What every test shares: one thread per process, the data folder, small data."""

import gc
import os
import random
import shutil
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

from guardband.data.artificial import PaperModel

torch.set_num_threads(1)

# On a developer's machine hypothesis looks for new cases in every run; in CI it repeats the same ones.
# Neither depends on how long a case takes.
settings.register_profile("searching", deadline=None)
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable" if os.environ.get("CI") else "searching")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected, which takes a third of the time: all that is made then stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Give every test the same random numbers, whichever tests ran before it in its process."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 (what scikit-learn draws from without a random_state)
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    folder = os.environ.get("GUARDBAND_DATA")
    if not folder:
        pytest.skip("needs the real data sets: set GUARDBAND_DATA to their folder")
    return Path(folder)


@pytest.fixture(scope="session")
def small() -> tuple[np.ndarray, np.ndarray]:
    """400 rows of the artificial data with 6 columns."""
    return PaperModel(n_features=6).draw(400, seed=1)


@pytest.fixture(scope="session")
def browser():
    """A chromium without a window; tests that need it are skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra dev")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs a chromium on the path")
    with playwright.sync_playwright() as driver:
        own = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield own
        own.close()
