"""Draws docs/fleet-cost.svg from the curves that fleet_cpu.py and fleet_gpu.py saved."""

import json
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

HERE = Path(__file__).parent
CURVES = {"2 CPU cores": "curve_cpu.json", "one NVIDIA H200": "curve_gpu.json"}


def main() -> None:
    """Draw the time of a step, of the fleet and for each of its members, against the number of members."""
    mpl.rcParams["svg.hashsalt"] = "guardband"
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    whole, each = figure.subplots(1, 2)
    for name, file in CURVES.items():
        points = json.loads((HERE / "results" / file).read_text())
        members, taken = ([point[key] for point in points] for key in ("members", "us_per_step"))
        whole.loglog(members, taken, "o-", markersize=4, label=name)
        each.loglog(members, [t / m for t, m in zip(taken, members, strict=True)], "o-", markersize=4, label=name)
    whole.set(title="a step of the fleet", xlabel="members", ylabel="µs")
    each.set(title="for each member", xlabel="members", ylabel="µs")
    each.legend(frameon=False)
    for axes in (whole, each):
        axes.grid(alpha=0.3)
    figure.savefig(HERE.parent / "docs" / "fleet-cost.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
