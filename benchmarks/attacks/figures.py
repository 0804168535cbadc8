"""Figures in a CSV file, a row for each thing that was attacked."""

import csv


def keep(path, row, key):
    """Write a row in the place of the one with the same ``key``, or at the end."""
    path.parent.mkdir(exist_ok=True)
    known = {}
    if path.exists():
        with path.open(newline="") as file:
            known = {tuple(own[name] for name in key): own for own in csv.DictReader(file)}
    known[tuple(row[name] for name in key)] = row
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows(known.values())
