"""The paper's tables: dirt taken out, and each encoded twice.

The paper does not print how it encoded them. ``paper`` is the encoding that came closest to its figures of about
130 that were tried (docs/reproduction.md); ``full`` is what one would do with care.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.table import Table, read_table
from guardband.experiments.sources import data_file

if TYPE_CHECKING:
    import pandas as pd

Encoded = tuple[Any, Any]


def load(name: str, encoding: str, data_dir: Path | None) -> tuple[Table, NDArray[np.float64]]:
    """Return the covariates and the response of ``bike``, ``traffic`` or ``house`` in one of their encodings."""
    import pandas as pd

    frame = pd.read_csv(data_file(name, data_dir), keep_default_na=False)  # a holiday named None is no missing value
    X, y = ENCODINGS[name, encoding](frame)
    return read_table(X), y.to_numpy(np.float64)


def _bike_paper(bike: pd.DataFrame) -> Encoded:
    """Weather, hour and working day as plain numbers; the logarithm of the count."""
    columns = ["hr", "workingday", "weathersit", "temp", "atemp", "hum", "windspeed"]
    return bike[columns].astype(float), np.log(bike["cnt"])


def _bike_full(bike: pd.DataFrame) -> Encoded:
    """Also the calendar, as categories, and the day. Casual and registered users add up to the count: left out."""
    day = _dates(bike["dteday"])
    X = bike[["temp", "atemp", "hum", "windspeed", "holiday", "workingday", "yr"]].astype(float)
    X["hum"] = X["hum"].where(X["hum"] > 0)  # a day on which the sensor failed
    for column in ("season", "mnth", "hr", "weekday", "weathersit"):
        X[column] = _words(bike[column])
    return X.assign(day=_since_first(day)), np.log(bike["cnt"])


def _traffic_paper(traffic: pd.DataFrame) -> Encoded:
    """Weather, and hour, weekday and month as dummies, all as they stand in the file; thousands of cars."""
    import pandas as pd

    time = _dates(traffic["date_time"])
    X = traffic[["temp", "rain_1h", "snow_1h", "clouds_all", "weather_main", "holiday"]].assign(
        hour=_words(time.dt.hour), weekday=_words(time.dt.day_of_week), month=_words(time.dt.month)
    )
    return pd.get_dummies(X, dtype=float), traffic["traffic_volume"] / 1000


def _traffic_full(traffic: pd.DataFrame) -> Encoded:
    """Also year and day; a holiday, in the file named at midnight alone, for its whole day."""
    time = _dates(traffic["date_time"])
    day, named = time.dt.normalize(), traffic["holiday"] != "None"
    X = traffic[["temp", "rain_1h", "snow_1h", "clouds_all"]].astype(float)
    X["temp"] = X["temp"].where(X["temp"] > 0)  # zero kelvin
    X["rain_1h"] = X["rain_1h"].where(X["rain_1h"] < 1000)  # ten metres in an hour
    for column, values in (("hour", time.dt.hour), ("weekday", time.dt.day_of_week), ("month", time.dt.month)):
        X[column] = _words(values)
    X["year"] = _words(time.dt.year)
    X["holiday"] = day.map(dict(zip(day[named], traffic["holiday"][named], strict=True))).fillna("none")
    X["weather"] = traffic["weather_description"].str.lower()  # Sky is Clear, sky is clear
    return X.assign(day=_since_first(day)), traffic["traffic_volume"] / 1000


def _house_paper(house: pd.DataFrame) -> Encoded:
    """All 19 covariates, the date, which is text, as a dummy for each day; the logarithm of the price."""
    import pandas as pd

    return pd.get_dummies(house.drop(columns=["id", "price"]), dtype=float), np.log(house["price"])


def _house_full(house: pd.DataFrame) -> Encoded:
    """Areas by their logarithm, the postal code as a category, the date as a number."""
    day = _dates(house["date"].str[:8])
    X = house.drop(columns=["id", "date", "price"]).astype(float)
    for column in ("sqft_living", "sqft_lot", "sqft_above", "sqft_living15", "sqft_lot15"):
        X[column] = np.log(X[column])
    X["bedrooms"] = X["bedrooms"].where(X["bedrooms"] < 20)  # 33 of them on 150 square metres
    X["zipcode"] = _words(house["zipcode"])
    X["renovated"] = (house["yr_renovated"] > 0).astype(float)
    X["yr_renovated"] = house[["yr_built", "yr_renovated"]].max(axis=1).astype(float)  # 0 is never
    return X.assign(day=_since_first(day)), np.log(house["price"])


ENCODINGS: dict[tuple[str, str], Callable[[pd.DataFrame], Encoded]] = {
    ("bike", "paper"): _bike_paper,
    ("bike", "full"): _bike_full,
    ("traffic", "paper"): _traffic_paper,
    ("traffic", "full"): _traffic_full,
    ("house", "paper"): _house_paper,
    ("house", "full"): _house_full,
}


def _dates(text: pd.Series[Any]) -> pd.Series[Any]:
    import pandas as pd

    return pd.to_datetime(text)


def _since_first(day: pd.Series[Any]) -> Any:
    return (day - day.min()).dt.days.astype(float)


def _words(values: pd.Series[Any]) -> Any:
    """Return numbers that are names as text, so that they are encoded as categories."""
    return "c" + values.astype(str)
