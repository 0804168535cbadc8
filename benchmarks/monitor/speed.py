"""A million rows through a monitor: seconds and memory. The bar is 20 s on two cores, and memory that does not grow.

``python benchmarks/monitor/speed.py [rows]`` prints a line for each way of use. Rows come in updates of 10,000.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import guardband as gb

AT_A_TIME = 10_000
Array = NDArray[np.float64]


def unit(n: int) -> tuple[Array, Array, Array]:
    """Return intervals of width 2 around zero."""
    zero = np.zeros(n)
    return zero - 1, zero, zero + 1


def measure(name: str, rows: int, more: Callable[[NDArray[np.int64]], dict[str, Any]], **options: Any) -> None:
    """Print how long rows take, how much memory is added, and how large the state is."""
    random, n = np.random.default_rng(0), 5_000
    known = more(np.arange(n))
    fit = {"groups": known["groups"]} if "groups" in known else {}
    rule = gb.BandCalibrator(**options).fit(*unit(n), random.standard_normal(n), **fit)
    monitor = gb.Monitor(rule)
    wall = cpu = 0.0
    peaks = []
    for first in range(0, rows, AT_A_TIME):
        y, given = random.standard_normal(AT_A_TIME), more(first + np.arange(AT_A_TIME))
        bands = rule.transform(*unit(AT_A_TIME), **({"groups": given["groups"]} if "groups" in given else {}))
        begun, busy = time.perf_counter(), time.process_time()
        monitor.update(y, bands, **given)
        wall, cpu = wall + time.perf_counter() - begun, cpu + time.process_time() - busy
        if first in (rows // 10 // AT_A_TIME * AT_A_TIME, rows - AT_A_TIME):
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    with tempfile.TemporaryDirectory() as folder:
        monitor.save(Path(folder) / "state.monitor")
        size = (Path(folder) / "state.monitor").stat().st_size / 1024
    print(
        f"{name}: {rows:,} rows in {cpu:.1f} s of process time ({wall:.1f} s), peak memory {peaks[0]:.0f} MiB after a "
        f"tenth of the rows and {peaks[-1]:.0f} MiB after all, state {size:,.0f} KiB",
        flush=True,
    )


def main() -> None:
    """Print a line for each way of use."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    measure("marginal", rows, lambda at: {})
    measure("pac", rows, lambda at: {}, guarantee="pac")
    measure("marginal, ten groups", rows, lambda at: {"groups": at % 10})
    measure("marginal, with keys", rows, lambda at: {"keys": at})


if __name__ == "__main__":
    main()
