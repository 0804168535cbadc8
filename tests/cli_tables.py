"""Tables that the commands are tried on: a small one, and one that is as awkward as tables are."""

import csv
import io

import numpy as np
import pyarrow as pa


def small_table(n=500, seed=0):
    random = np.random.default_rng(seed)
    x, town = random.standard_normal(n), random.choice(["Wien", "Graz", "Linz"], n)
    day = np.datetime64("2024-01-01") + random.integers(0, 300, n)
    sold = random.random(n) < 0.5
    y = 10 + 3 * x + (town == "Wien") * 2 + 0.01 * (day - day.min()).astype(int) + random.standard_normal(n)
    gone = random.random(n) < 0.05
    return pa.table(
        {
            "size": pa.array(x.round(4), mask=gone),
            "town": pa.array(town),
            "day": pa.array(day),
            "sold": pa.array(np.where(sold, "yes", "no")),
            "price": pa.array(y.round(3)),
        }
    )


def awkward_table(n=400, seed=0):
    """Return 60 names and the CSV: blanks, unicode, repeated and empty names, dates, truth, free text, 5% missing."""
    random = np.random.default_rng(seed)
    first = [
        "größe (m²)",
        "lower",
        "point",
        "x",
        "x",
        "",
        "日付",
        'say "hi"',
        "a,b",
        "two\nlines",
        "-o",
        "[bold]red[/]",
    ]
    names = first + [f"col {i}" for i in range(60 - len(first))]
    words = ["alpha", "beta, gamma", "delta\nepsilon", "ζ", "'quoted'"]
    columns = []
    for i, name in enumerate(names):
        if i == 0:
            columns.append([f"{value:.3f}" for value in 50 + 5 * random.standard_normal(n)])
        elif name == "日付":
            columns.append([str(np.datetime64("2023-05-01T00:00") + int(m)) for m in random.integers(0, 10**6, n)])
        elif i % 6 == 0:
            columns.append(random.choice(["true", "FALSE"], n).tolist())
        elif i % 6 == 1:
            columns.append([" ".join(random.choice(words, 3)) + f" {j}" for j in range(n)])
        elif i % 6 == 2:
            columns.append(random.choice(words, n).tolist())
        elif i % 6 == 3:
            columns.append([str(np.datetime64("2020-01-01") + int(day)) for day in random.integers(0, 900, n)])
        else:
            columns.append([f"{value:.4g}" for value in random.standard_normal(n) * 10.0**i])
    for column in columns:
        for j in np.flatnonzero(random.random(n) < 0.05):
            column[j] = random.choice(["", "NA", "?"])
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))
    return names, out.getvalue()
