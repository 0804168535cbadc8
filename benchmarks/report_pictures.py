"""The report's first screen in light, dark and on a phone: ``docs/report-{light,dark,phone}.png``.

Fits the bike data (``$GUARDBAND_DATA/bike/hour.csv``) by the preset "fast", sets a tenth of the rows aside to judge,
and takes the pictures with playwright and the chromium of the machine:

    python benchmarks/report_pictures.py docs
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import sync_playwright

import guardband as gb
from guardband.audit.evidence import Evidence
from guardband.report.document import document
from guardband.report.page import write_report

SCREENS = {
    "light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "device_scale_factor": 2},
}


def page(folder: Path) -> Path:
    """Return the report of a model for the bike data."""
    rows = pd.read_csv(Path(os.environ["GUARDBAND_DATA"]) / "bike" / "hour.csv", parse_dates=["dteday"])
    X, y = rows.drop(columns=["cnt", "casual", "registered", "instant"]), rows["cnt"]
    order = np.random.default_rng(0).permutation(len(rows))
    judge, fit = order[: len(order) // 10], order[len(order) // 10 :]
    model = gb.IntervalRegressor(preset="fast", random_state=0).fit(X.iloc[fit], y.iloc[fit])
    held = X.iloc[judge]
    evidence = Evidence.of(model, held, y.iloc[judge], group=held["season"], time=held["dteday"])
    return write_report(document(model, evidence), folder / "report.html")


def main(out: Path) -> None:
    """Write the three pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path = page(Path(folder))
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, screen in SCREENS.items():
            tab = browser.new_context(**screen).new_page()
            tab.goto(path.as_uri())
            tab.locator("#picture svg").wait_for()
            tab.screenshot(path=out / f"report-{name}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
