"""The tables that methods are compared on: columns as a user would give them, dates taken apart."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

NAMES = ("bike", "traffic", "house", "concrete")


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the columns and the response of a table at hand; text columns are categories."""
    folder = Path(os.environ["GUARDBAND_DATA"])
    return {"bike": _bike, "traffic": _traffic, "house": _house, "concrete": _concrete}[name](folder)


def any_table(path: Path, target: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the columns and the response of a CSV or Parquet file; rows without a response are left out.

    Missing text is a category like any other: some peers do not take it otherwise.
    """
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    frame = frame[frame[target].notna()].reset_index(drop=True)
    y = frame.pop(target).to_numpy(np.float64)
    numbers = frame.select_dtypes("number").astype(np.float64)
    text = {c: frame[c].astype(object).fillna("missing").astype(str) for c in frame.columns if c not in numbers}
    return frame.assign(**numbers, **text), y


def split(n: int, repetition: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of D1, D2 and D3, 3:1:1, at random by the repetition."""
    order = np.random.default_rng([2020, repetition]).permutation(n)
    d1, d2, d3 = np.split(order, [n * 3 // 5, n * 4 // 5])
    return d1, d2, d3


def _bike(folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
    frame = pd.read_csv(folder / "bike" / "hour.csv")
    y = frame["cnt"].to_numpy(np.float64)
    frame = frame.drop(columns=["instant", "dteday", "casual", "registered", "cnt"])
    return frame.astype(np.float64).assign(weathersit=frame["weathersit"].astype(str)), y


def _traffic(folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
    frame = pd.read_csv(folder / "traffic" / "Metro_Interstate_Traffic_Volume.csv", keep_default_na=False)
    y, when = frame["traffic_volume"].to_numpy(np.float64), pd.to_datetime(frame["date_time"])
    frame = frame.drop(columns=["traffic_volume", "date_time"])
    calendar = {"hour": when.dt.hour, "weekday": when.dt.weekday, "month": when.dt.month, "year": when.dt.year}
    frame = frame.assign(**calendar, day=(when - when.min()).dt.days)
    numbers = frame.select_dtypes("number").astype(np.float64)
    return frame.assign(**numbers), y


def _house(folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
    frame = pd.read_csv(folder / "house" / "kc_house_data.csv")
    y, when = np.log(frame["price"].to_numpy(np.float64)), pd.to_datetime(frame["date"])
    zipcode = frame["zipcode"].astype(str)
    frame = frame.drop(columns=["id", "date", "price"]).astype(np.float64)
    return frame.assign(zipcode=zipcode, day=(when - when.min()).dt.days.astype(np.float64)), y


def _concrete(folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
    frame = pd.read_csv(folder / "concrete" / "Concrete_Data.csv").astype(np.float64)
    return frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy()
