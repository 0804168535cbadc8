"""Is a verdict true of new rows? Many fits by the command line, on tables as people have them.

python run.py -o FOLDER [--tables FOLDER] [--fits 200] [--only NAME ...] [--jobs N]

Each fit gets a table, with or without ``--split-by``, and says a verdict. New rows, of entities that the table does not
hold, say what coverage is. FOLDER of ``--tables`` holds the files that ``tables.py`` writes; without it real tables are
left out. A line per fit goes to ``fits.jsonl``, what they say together to ``summary.md``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

LEVEL = 0.9
NEW_ROWS = 2000

# ------------------------------------------------------------------------------------------ tables


def smooth(rng, n):
    """Numbers that nothing is wrong with: Friedman's function, noise that grows with the first input."""
    x = rng.random((n, 6))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return pd.DataFrame(x).add_prefix("x").assign(y=y + (0.5 + x[:, 0]) * rng.normal(size=n))


def mixed(rng, n):
    """Clean rows with categories, rounded numbers, a number of the row, and a label that means nothing."""
    city, grade = rng.integers(0, 12, n), rng.integers(20, 70, n)
    y = city % 5 + 0.05 * grade + rng.normal(size=n) * (1 + grade / 50)
    frame = pd.DataFrame({"city": [f"c{own}" for own in city], "age": grade, "size": rng.gamma(2, 10, n).round(1)})
    return frame.assign(batch=[f"b{own}" for own in rng.integers(0, 150, n)], row=rng.permutation(10**6)[:n], y=y)


def counts(rng, n):
    """Clean rows whose target is a count."""
    x = rng.normal(size=(n, 4)).round(2)
    return pd.DataFrame(x).add_prefix("x").assign(y=rng.poisson(np.exp(1 + 0.5 * x[:, 0])))


def ordinals(rng, n):
    """Clean rows with whole numbers that mean something, some of them shared by many rows, and noise that grows."""
    age, hour, score = rng.integers(18, 90, n), rng.integers(0, 100, n), rng.gamma(2, 40, n).round()
    noise = np.exp(0.03 * (age - 50)) * (1 + 3 * (hour > 80)) * rng.normal(size=n)
    frame = pd.DataFrame({"age": age, "hour": hour, "score": score, "x": rng.normal(size=n)})
    return frame.assign(y=0.05 * age + 2 * np.sin(score / 30) + frame["x"] + noise)


def heavy(rng, n):
    """Clean rows with heavy tails, and numbers and names of batches that mean nothing."""
    x = rng.normal(size=(n, 4))
    frame = pd.DataFrame(x).add_prefix("x").assign(batch=rng.integers(200, size=n))
    frame = frame.assign(shift=[f"s{one}" for one in rng.integers(40, size=n)])
    return frame.assign(y=x[:, 0] + rng.standard_t(1.5, size=n) * np.exp(0.5 * x[:, 1]))


def products(rng, n):
    """Clean rows of a catalogue: a few popular products, whose sales vary more, and many rare ones."""
    catalogue = np.random.default_rng(0).normal(size=(424, 6)).round(2)
    weights = np.append(np.full(24, 20.0), np.ones(400))
    sold = rng.choice(424, n, p=weights / weights.sum())
    y = catalogue[sold, 0] + np.where(sold < 24, 3.0, 0.5) * rng.normal(size=n)
    return pd.DataFrame(catalogue[sold]).add_prefix("x").assign(y=y)


CLEAN = {"smooth": smooth, "mixed": mixed, "counts": counts, "ordinals": ordinals, "heavy": heavy, "products": products}


def clustered(rng, sizes, effect=1.0, number=False):
    """Entities with an effect of their own, a constant column, and a name."""
    own = np.repeat(np.arange(len(sizes)), sizes)
    n, start = len(own), int(rng.integers(10**6))
    trait, shift = rng.normal(size=len(sizes)), effect * rng.normal(size=len(sizes))
    x = rng.normal(size=(n, 3))
    y = x[:, 0] + np.sin(2 * x[:, 1]) + trait[own] + shift[own] + 0.7 * rng.normal(size=n)
    names = start + own if number else [f"k{start + one}" for one in own]
    return pd.DataFrame(x).add_prefix("x").assign(trait=trait[own].round(3), who=names, y=y)


def series(rng, n, rho=0.8):
    """Rows in order of time whose errors are alike nearby."""
    noise = rng.normal(size=n)
    for i in range(1, n):
        noise[i] = rho * noise[i - 1] + np.sqrt(1 - rho**2) * noise[i]
    x = rng.normal(size=(n, 3))
    return pd.DataFrame(x).add_prefix("x").assign(y=x[:, 0] + noise)


def repeated(frame, rng, times):
    """Rows several times, or a part of them twice, in random order."""
    extra = [frame] * (times - 1) if isinstance(times, int) else [frame.sample(frac=times, random_state=rng)]
    return pd.concat([frame, *extra]).sample(frac=1, random_state=rng)


SIZES = {"2": (2, 300), "5": (5, 200), "20": (20, 100), "100": (100, 50), "200": (200, 40)}


def made(name, rng):
    """Return a table and new rows of what it does not hold, by the name of a case."""
    kind, _, detail = name.partition(":")
    if kind == "clean":
        return CLEAN[detail](rng, 1000), CLEAN[detail](rng, NEW_ROWS)
    if kind == "repeated":
        base, times = detail.split(" x")
        table = repeated(CLEAN[base](rng, 800), rng, float(times) if "." in times else int(times))
        return table, CLEAN[base](rng, NEW_ROWS)
    if kind == "near copies":
        table = repeated(smooth(rng, 400), rng, 4)
        return table.assign(y=table["y"] + 0.3 * rng.normal(size=len(table))), smooth(rng, NEW_ROWS)
    if kind == "joined":  # by a join that brings a column
        table = pd.concat([smooth(rng, 400)] * 4)
        brought = {"quarter": np.repeat(["Q1", "Q2", "Q3", "Q4"], 400), "number": rng.normal(size=1600)}[detail]
        new = smooth(rng, NEW_ROWS).assign(brought=rng.choice(brought, NEW_ROWS))
        return table.assign(brought=brought).sample(frac=1, random_state=rng), new
    if detail == "stations":  # known by their place alone
        made = [clustered(rng, np.full(*size)).drop(columns="trait") for size in ((80, 25), (NEW_ROWS, 1))]
        places = [own["who"].map({who: rng.uniform(40, 60) for who in own["who"].unique()}) for own in made]
        both = [own.drop(columns="who").assign(place=place) for own, place in zip(made, places, strict=True)]
        return both[0].sample(frac=1, random_state=rng), both[1]
    if kind == "clusters":
        size, *more = detail.split(" ")
        if size == "mixed":
            sizes = np.exp(rng.uniform(0, np.log(200), 80)).astype(int)
        else:
            sizes = np.full(SIZES[size][1], SIZES[size][0])
        options = {"number": "number" in more, "effect": 0.5 if "weak" in more else 1.0}
        table = clustered(rng, sizes, **options).sample(frac=1, random_state=rng)
        return table, clustered(rng, np.ones(NEW_ROWS, dtype=int), **options)
    assert kind == "series"
    return series(rng, 1000), series(rng, NEW_ROWS)


REAL = {  # the target, what names an entity, what is left out
    "storms": ("wind", ["name", "year"], ["category", "status"]),
    "EmplUK": ("emp", ["firm"], []),
    "MathAchieve": ("MathAch", ["School"], []),
    "Exam": ("normexam", ["school"], ["student"]),
    "PSID7682": ("wage", ["id"], []),
}


def drawn(name, rng, folder):
    """Return a table of two thirds of a real one's entities, and one row of each of the others."""
    source, _, times = name.removeprefix("real:").partition(" x")
    if source == "Hitters":
        frame = pd.read_csv(folder / "Hitters.csv").dropna(subset=["Salary"]).rename(columns={"Salary": "y"})
        inside = rng.random(len(frame)) < 2 / 3
        return repeated(frame[inside], rng, int(times)), frame[~inside]
    target, keys, dropped = REAL[source]
    frame = pd.read_csv(folder / f"{source}.csv").dropna(subset=[target]).drop(columns=dropped)
    frame = frame.rename(columns={target: "y"})
    number = frame.groupby(keys).ngroup().to_numpy()
    inside = np.isin(number, rng.permutation(number.max() + 1)[: round(2 / 3 * (number.max() + 1))])
    new = frame[~inside].assign(_n=number[~inside]).sample(frac=1, random_state=rng)
    return frame[inside], new.drop_duplicates("_n").drop(columns="_n")


# -------------------------------------------------------------------------------------------- fits


def fit(case):
    """Return what one fit said, and how many of the new rows it covers."""
    import torch
    from typer.testing import CliRunner

    import guardband as gb
    from guardband.cli.app import app

    torch.set_num_threads(1)
    name, keys, seed, folder = case
    rng = np.random.default_rng([seed, *name.encode()])
    table, new = drawn(name, rng, folder) if name.startswith("real:") else made(name, rng)
    with tempfile.TemporaryDirectory() as scratch:
        path, model = Path(scratch) / "table.csv", Path(scratch) / "model.guardband"
        table.to_csv(path, index=False)
        arguments = ["fit", str(path), "-t", "y", "-o", str(model), "--preset", "fast", "--seed", str(seed)]
        arguments += [
            "--no-report",
            "--json",
            "-q",
            "--device",
            "cpu",
            *(["--split-by", ",".join(keys)] if keys else []),
        ]
        done = CliRunner().invoke(app, arguments)
        results = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not results:
            raise RuntimeError(f"{name}: {done.output} {done.exception!r}")
        said = json.loads(results[-1])
        bands = gb.load(model).predict_interval(new.drop(columns="y"))
    covered = (bands.lower <= new["y"].to_numpy()) & (new["y"].to_numpy() <= bands.upper)
    return {
        "case": name,
        "split_by": list(keys),
        "seed": seed,
        "rows": len(table),
        "exit": done.exit_code,
        "verdict": said["verdict"],
        "finite": bool(np.isfinite(bands.upper[0])),
        "coverage": float(covered.mean()),
        "one": bool(covered[0]),
    }


CASES = [
    *((f"clean:{own}", ()) for own in CLEAN),
    *((f"repeated:{base} x{times}", ()) for base in ("smooth", "mixed") for times in ("2", "4", "0.3", "0.1")),
    *((f"joined:{own}", ()) for own in ("quarter", "number")),
    ("near copies", ()),
    ("clusters:stations", ()),
    *((f"clusters:{size}", keys) for size in (*SIZES, "mixed") for keys in ((), ("who",))),
    *((f"clusters:{size}", ()) for size in ("20 number", "5 weak", "20 weak", "mixed weak number")),
    ("series", ()),
    *((f"real:Hitters x{times}", ()) for times in (2, 4)),
    *((f"real:{own}", keys) for own in REAL for keys in ((), tuple(REAL[own][1]))),
]


def summary(found):
    """Return a table of all cases: verdicts, and coverage of new rows over all fits and over those not doubted."""
    from scipy.stats import binom

    words = ("consistent", "too few rows", "broken", "cannot judge")
    lines = [
        f"| case | split by | fits | {' | '.join(words)} | coverage of new rows | of the first two | one row a fit |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for case, keys in dict.fromkeys((own["case"], tuple(own["split_by"])) for own in found):
        own = [one for one in found if (one["case"], tuple(one["split_by"])) == (case, keys)]
        verdicts = Counter(one["verdict"] for one in own)
        trusted = [one for one in own if one["verdict"] in words[:2]]
        least = int(binom.ppf(0.001, len(trusted), LEVEL)) if trusted else 0
        one_row = f"{sum(one['one'] for one in trusted)} of {len(trusted)} (at least {least})" if trusted else ""
        counted = " | ".join(str(verdicts[word]) for word in words)
        shares = " | ".join(_mean(some) for some in (own, trusted))
        lines.append(f"| {case} | {', '.join(keys)} | {len(own)} | {counted} | {shares} | {one_row} |")
    return "\n".join(lines) + "\n"


def _mean(fits):
    if not fits:
        return ""
    shares = np.array([one["coverage"] for one in fits])
    return f"{100 * shares.mean():.1f}% ({100 * shares.std() / np.sqrt(len(shares)):.1f})"


def main():
    """Run the fits that are not there yet, in processes of one thread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    file = given.output / "fits.jsonl"
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    there = {(own["case"], tuple(own["split_by"]), own["seed"]) for own in found}
    wanted = [
        (name, keys, seed, given.tables)
        for seed in range(given.fits)
        for name, keys in CASES
        if any(part in name for part in given.only)
        and (given.tables is not None or not name.startswith("real:"))
        and (name, keys, seed) not in there
    ]
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool, file.open("a") as out:
        for one in pool.map(fit, wanted, chunksize=1):
            found.append(one)
            out.write(json.dumps(one) + "\n")
            out.flush()
    (given.output / "summary.md").write_text(f"# Verdicts on real tables, the figures\n\n{summary(found)}")
    print(summary(found))


if __name__ == "__main__":
    main()
