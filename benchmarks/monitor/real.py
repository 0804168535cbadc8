"""Real tables in time order: a model of the first 40% of the rows, and what a monitor says of the others.

``GUARDBAND_DATA=FOLDER python benchmarks/monitor/real.py [-o FILE]`` fits ``preset="fast"`` on the first rows of bike
and traffic, which guardband splits at random into training and calibration rows, and monitors all later rows in the
order of time, a week at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import guardband as gb

FIRST = 0.4
Rows = tuple[pd.DataFrame, NDArray[np.float64], pd.Series]


def bike(folder: Path) -> Rows:
    """Return the hours of the bike table: columns, number of bikes, time."""
    frame = pd.read_csv(folder / "bike" / "hour.csv")
    when = pd.to_datetime(frame["dteday"]) + pd.to_timedelta(frame["hr"], unit="h")
    y = frame["cnt"].to_numpy(np.float64)
    return frame.drop(columns=["instant", "dteday", "yr", "casual", "registered", "cnt"]).astype(np.float64), y, when


def traffic(folder: Path) -> Rows:
    """Return the hours of the traffic table: columns, number of vehicles, time; the first row of each hour."""
    frame = pd.read_csv(folder / "traffic" / "Metro_Interstate_Traffic_Volume.csv", keep_default_na=False)
    frame = frame.drop_duplicates("date_time").reset_index(drop=True)
    y, when = frame["traffic_volume"].to_numpy(np.float64), pd.to_datetime(frame["date_time"])
    frame = frame.drop(columns=["traffic_volume", "date_time", "weather_description"])
    return frame.assign(hour=when.dt.hour, weekday=when.dt.weekday, month=when.dt.month), y, when


def watched(name: str, rows: Rows) -> dict[str, Any]:
    """Return what the monitor says at the end, and the coverage of each quarter of the later rows."""
    order = np.argsort(rows[2].to_numpy(), kind="stable")
    X, y, when = rows[0].iloc[order].reset_index(drop=True), rows[1][order], rows[2].iloc[order].reset_index(drop=True)
    first = int(FIRST * len(y))
    model = gb.IntervalRegressor(preset="fast", confidence_level=0.9, random_state=0).fit(X[:first], y[:first])
    monitor = gb.Monitor(model)
    at_alarm = ""
    week = (when[first:] - when[first]).dt.days // 7
    for _, part in week.groupby(week):
        monitor.update(y[part.index], X=X.loc[part.index], time=when[part.index])
        if monitor.alarm and not at_alarm:
            at_alarm = str(monitor)
    found = monitor.finding()
    row = None if found.alarm_row is None else first + found.alarm_row - 1
    bands = model.predict_interval(X[first:])
    inside = (bands.lower <= y[first:]) & (y[first:] <= bands.upper)
    return {
        "table": name,
        "fitted on": f"{first:,} rows up to {when[first - 1]:%Y-%m-%d}",
        "monitored": f"{len(y) - first:,} rows up to {when.iloc[-1]:%Y-%m-%d}",
        "coverage by quarter": [round(float(own.mean()), 3) for own in np.array_split(inside, 4)],
        "alarm at row": found.alarm_row,
        "alarm on": None if row is None else f"{when[row]:%Y-%m-%d %H:%M}",
        "when the alarm came": at_alarm.splitlines(),
        "at the end": str(monitor).splitlines(),
    }


def main() -> None:
    """Print what the monitor says of each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = Path(os.environ["GUARDBAND_DATA"])
    found = [watched("bike", bike(folder)), watched("traffic", traffic(folder))]
    text = json.dumps(found, indent=1)
    print(text)
    if given.output is not None:
        given.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
