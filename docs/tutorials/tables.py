"""The tables of the tutorials: real ones if you have them, otherwise artificial stand-ins with the same columns.

Real tables are read from the folder named by the environment variable ``GUARDBAND_DATA``.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

HOUSE = ["date", "bedrooms", "bathrooms", "sqft_living", "grade", "condition", "waterfront", "yr_built", "lat", "long"]
BIKE = ["date", "hour", "workingday", "weather", "temperature", "humidity", "windspeed"]


def house_prices(rows: int = 3000) -> pd.DataFrame:
    """Return houses sold in King County from May 2014 to May 2015, with the column ``price`` in dollars."""
    path = _real("house/kc_house_data.csv")
    if path is None:
        return _artificial_houses(rows)
    table = pd.read_csv(path, parse_dates=["date"], date_format="%Y%m%dT%H%M%S")
    print(f"Real table: {rows:,} of {len(table):,} houses sold in King County, drawn at random.")
    return table.sample(rows, random_state=0).reset_index(drop=True)[["price", *HOUSE]]


def bike_demand() -> pd.DataFrame:
    """Return the hours of 2011 and 2012 in order, with the column ``rentals``: bikes rented in that hour."""
    path = _real("bike/hour.csv")
    if path is None:
        return _artificial_bikes()
    names = {
        "dteday": "date",
        "hr": "hour",
        "weathersit": "weather",
        "temp": "temperature",
        "hum": "humidity",
        "cnt": "rentals",
    }
    table = pd.read_csv(path, parse_dates=["dteday"]).rename(columns=names)
    print(f"Real table: {len(table):,} hours of a bike rental in Washington, D.C.")
    return table[[*BIKE, "rentals"]]


def _real(name: str) -> Path | None:
    folder = os.environ.get("GUARDBAND_DATA")
    path = Path(folder) / name if folder else None
    return path if path is not None and path.exists() else None


def _artificial_houses(rows: int) -> pd.DataFrame:
    """Return houses whose prices vary more at the waterfront, in old houses and in large ones."""
    print(f"Artificial table: {rows:,} invented houses, with the columns of the King County sales.")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "date": pd.Timestamp("2014-05-02") + pd.to_timedelta(rng.integers(0, 390, rows), unit="D"),
            "bedrooms": rng.integers(1, 6, rows),
            "bathrooms": rng.integers(4, 17, rows) / 4,
            "sqft_living": np.exp(rng.normal(7.5, 0.4, rows)).round(-1).astype(int),
            "grade": rng.binomial(12, 0.6, rows) + 1,
            "condition": rng.integers(2, 6, rows),
            "waterfront": (rng.uniform(size=rows) < 0.03).astype(int),
            "yr_built": rng.integers(1900, 2015, rows),
            "lat": rng.uniform(47.2, 47.8, rows).round(4),
            "long": rng.uniform(-122.5, -121.7, rows).round(3),
        }
    )
    near = np.exp(-3 * np.hypot(table["lat"] - 47.62, table["long"] + 122.2))
    worth = 120 * table["sqft_living"] * np.exp(0.1 * (table["grade"] - 8) + 0.8 * near + 0.6 * table["waterfront"])
    noise = 0.12 + 0.15 * table["waterfront"] + 0.1 * (table["yr_built"] < 1950) + 0.05 * (table["grade"] > 9)
    table.insert(0, "price", (worth * np.exp(rng.normal(0, noise))).round(-2).astype(int))
    return table


def _artificial_bikes() -> pd.DataFrame:
    """Return two years of hours with rush hours, seasons and weather; the rental grows all the time."""
    hours = pd.date_range("2011-01-01", "2012-12-31 23:00", freq="h")
    print(f"Artificial table: {len(hours):,} invented hours of a bike rental that grows.")
    rng = np.random.default_rng(0)
    year, clock = hours.dayofyear.to_numpy() / 365, hours.hour.to_numpy()
    working = (hours.dayofweek < 5).astype(int)
    weather = np.repeat(rng.choice([1, 2, 3], len(hours) // 24, p=[0.65, 0.27, 0.08]), 24)
    warm = 0.5 - 0.3 * np.cos(2 * np.pi * (year - 0.05)) + 0.05 * np.sin(2 * np.pi * (clock - 9) / 24)
    temperature = (warm + rng.normal(0, 0.04, len(hours))).clip(0.02, 1).round(2)
    rush = np.exp(-((clock - 8) ** 2) / 3) + 1.2 * np.exp(-((clock - 17.5) ** 2) / 5)
    leisure = np.exp(-((clock - 14) ** 2) / 18)
    shape = 0.06 + np.where(working == 1, rush + 0.35 * leisure, 1.1 * leisure)
    growth = np.linspace(1, 2.2, len(hours))
    mean = 260 * growth * shape * (0.25 + temperature) * np.array([1, 0.85, 0.45])[weather - 1]
    return pd.DataFrame(
        {
            "date": hours.normalize(),
            "hour": clock,
            "workingday": working,
            "weather": weather,
            "temperature": temperature,
            "humidity": rng.beta(5, 3, len(hours)).round(2),
            "windspeed": rng.gamma(2, 0.1, len(hours)).round(2),
            "rentals": rng.poisson(mean * rng.gamma(12, 1 / 12, len(hours))),
        }
    )
