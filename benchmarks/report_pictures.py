"""The report's first screen in light, dark and on a phone: ``docs/report-{light,dark,phone}.png``.

Fits the house prices (``$GUARDBAND_DATA/house/kc_house_data.csv``) by the preset "fast", sets a tenth of the rows aside
as test rows, and takes the pictures with playwright and the chromium of the machine:

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
from guardband.report.heading import Heading
from guardband.report.page import write_report

COLUMNS = ["sqft_living", "bedrooms", "grade", "condition", "yr_built", "zipcode", "lat", "long", "view", "waterfront"]
SCREENS = {
    "light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "device_scale_factor": 2},
}


def page(folder: Path) -> Path:
    """Write and return the report of a model for house prices; repeated sales of a house are left out."""
    rows = pd.read_csv(Path(os.environ["GUARDBAND_DATA"]) / "house" / "kc_house_data.csv", dtype={"zipcode": str})
    rows = rows.drop_duplicates("id")
    X, y = rows[COLUMNS], rows["price"]
    order = np.random.default_rng(0).permutation(len(rows))
    judge, fit = order[: len(order) // 10], order[len(order) // 10 :]
    asked = {"target_transform": "log", "preset": "fast", "random_state": 0}
    model = gb.IntervalRegressor(**asked).fit(X.iloc[fit], y.iloc[fit])
    held = X.iloc[judge]
    heading = Heading("House prices in King County", unit="USD", date="2026-03-31")
    evidence = Evidence.of(model, held, y.iloc[judge], group=held["grade"])
    return write_report(document(model, evidence, heading=heading), folder / "report.html")


def main(out: Path) -> None:
    """Write the three pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path = page(Path(folder))
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, screen in SCREENS.items():
            tab = browser.new_context(**screen).new_page()
            tab.goto(path.as_uri())
            tab.locator("#picture svg").wait_for()
            print(f"{name}: {tab.evaluate('document.documentElement.scrollHeight')} pixels long")
            tab.screenshot(path=out / f"report-{name}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
