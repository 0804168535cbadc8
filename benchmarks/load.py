"""Predictions under load: from 16 threads, 100,000 times, and with other numbers of threads.

    python benchmarks/load.py [--calls 100000] [--rounds 7] [--only threads,growth,numbers]

- threads: the same calls from one thread and from 16 on one loaded model. Results must be equal to the bit. The time is
  a ratio within one process, the median over interleaved rounds; 1 or less means that 16 threads are not slower in sum.
  Processor time says the same less disturbed by other work. With ``OMP_NUM_THREADS=1`` torch has one thread a call.
- growth: calls with one row each. Memory, open files and threads after a tenth of the calls and at the end.
- numbers: predictions, fits and trainings with 1, 2 and 4 threads of torch. The largest difference, relative to the
  standard deviation of the target.

``benchmarks/results/faults/load.csv`` has the figures.
"""

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from sklearn.ensemble import RandomForestRegressor

import guardband as gb

sys.path.insert(0, str(Path(__file__).parent / "attacks"))
from figures import keep

RESULTS = Path(__file__).parent / "results" / "faults" / "load.csv"
THREADS = 16
COLUMNS = 6
SHARE_SECONDS = 0.1
NUMBERS = (1, 2, 4)


def draw(n, seed):
    """Return rows and targets."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((n, COLUMNS)).astype(np.float32)
    return x, x.sum(1) + random.standard_normal(n).astype(np.float32)


def fit_table(hidden=(64, 64)):
    """Return a fitted model of a table."""
    return gb.IntervalRegressor(hidden=hidden, epochs=5, random_state=0).fit(*draw(2000, 0))


def train_network(hidden=(64, 64)):
    """Return a trained and calibrated network."""
    torch.manual_seed(0)
    network = gb.nn.FullyConnected(COLUMNS, hidden)
    gb.train([network], tuple(map(torch.tensor, draw(2000, 0))), gb.nn.IntervalLoss(0.1), epochs=5, learning_rate=0.01)
    return gb.calibrate(network, tuple(map(torch.tensor, draw(500, 1))))


def bounds(found):
    """Return both bounds of intervals as one array."""
    return np.stack([np.asarray(found.lower), np.asarray(found.upper)])


def predictors():
    """Return, for each kind of model, a function from rows to both bounds; models that can be saved are loaded."""
    with tempfile.TemporaryDirectory() as folder:
        table = gb.load(fit_table().save(f"{folder}/m.guardband") or f"{folder}/m.guardband")
    x, y = draw(500, 1)
    point = x.sum(1)
    bands = gb.BandCalibrator().fit(point - 1, point, point + 1, y)
    forest = gb.calibrate(RandomForestRegressor(10, random_state=0).fit(*draw(1000, 0)), (x, y))
    network = train_network()

    def by_bands(x):
        point = x.sum(1)
        return bounds(bands.transform(point - 1, point, point + 1))

    def by_numpy(x):
        """Return what takes about as many operations of numpy, without guardband."""
        out = x.sum(1)
        for _ in range(12):
            out = np.maximum(1.01 * out, out - 1)
        return out

    def by_network(x, network=network):
        with torch.no_grad():
            return network(torch.from_numpy(x)).numpy()

    plain = gb.nn.FullyConnected(COLUMNS, (64, 64)).eval()

    return {
        "table model": lambda x: bounds(table.predict_interval(x)),
        "BandCalibrator": by_bands,
        "numpy alone": by_numpy,
        "calibrated forest": lambda x: bounds(forest.predict_interval(x)),
        "calibrated network": by_network,
        "network, not calibrated": lambda x: by_network(x, plain),
    }


def threads(name, predict, rounds, rows=2000):
    """Compare calls from 16 threads with calls from one; each thread has enough of them to hide its start.

    What calls return is kept only where it is compared: to hold the results of 16 threads costs the system new memory
    for each of them, and hides what the calls cost.
    """
    began = time.perf_counter()
    for _ in range(10):
        predict(draw(rows, 0)[0])
    calls = max(10, round(10 * SHARE_SECONDS / (time.perf_counter() - began)))
    shares = [[draw(rows, seed)[0]] * calls for seed in range(THREADS)]

    def share(blocks):
        return [predict(x) for x in blocks]

    def last(blocks):
        for x in blocks:
            out = predict(x)
        return out

    expected = list(map(share, shares))
    ratios, of_processors = [], []
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(share, shares))
        is_equal = all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
        for number in range(rounds):
            seconds, processors = {}, {}
            for kind in ("one", "many") if number % 2 else ("many", "one"):
                began, used = time.perf_counter(), time.process_time()
                found = list(map(last, shares) if kind == "one" else pool.map(last, shares))
                seconds[kind], processors[kind] = time.perf_counter() - began, time.process_time() - used
                is_equal &= all(np.array_equal(a, b[-1]) for a, b in zip(found, expected, strict=True))
            ratios.append(seconds["many"] / seconds["one"])
            of_processors.append(processors["many"] / processors["one"])
    note("threads", name, "equal to the bit", is_equal)
    note("threads", name, "time of 16 threads / time of one", f"{statistics.median(ratios):.2f}")
    note("threads", name, "processor time of 16 threads / of one", f"{statistics.median(of_processors):.2f}")
    note("threads", name, "torch threads afterwards as before", torch.get_num_threads() == NUMBER)


def used():
    """Return the memory in MB, the open files and the threads of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    memory = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return memory, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), threading.active_count()


def growth(name, predict, calls):
    """Call with one row each, and look at what the process holds."""
    x = draw(1, 0)[0]
    for _ in range(calls // 10):
        predict(x)
    before = used()
    for _ in range(calls - calls // 10):
        predict(x)
    after = used()
    note("growth", name, "calls", calls)
    note("growth", name, "MB more after all calls than after a tenth", f"{after[0] - before[0]:.1f}")
    note("growth", name, "open files and threads more", sum(after[1:]) - sum(before[1:]))


def numbers():
    """Compare results with other numbers of threads of torch."""
    x, y = draw(5000, 2)
    spread = float(y.std())

    def with_each(make):
        found = []
        for number in NUMBERS:
            torch.set_num_threads(number)
            found.append(make())
        torch.set_num_threads(NUMBER)
        return max(float(np.abs(own - found[0]).max()) for own in found[1:]) / spread

    for name, predict in predictors().items():
        note("numbers", name, "largest difference / standard deviation", f"{with_each(lambda p=predict: p(x)):.1e}")

    numbers = torch.randn(10_000_000, generator=torch.Generator().manual_seed(0))
    total = with_each(lambda: numbers.sum().numpy()) * spread / float(numbers.std())
    what = "control: a sum of 10,000,000 numbers by torch"
    note("numbers", what, "largest difference / standard deviation", f"{total:.1e}")

    def convolutions():
        torch.manual_seed(0)
        network = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), gb.nn.TripleHead(16 * 14 * 14)
        )
        images = torch.randn(600, 3, 16, 16, generator=torch.Generator().manual_seed(1))
        y_images = images.flatten(1).sum(1) * spread / 28  # 768 numbers, whose sum has the standard deviation 28
        gb.train([network], (images, y_images), gb.nn.IntervalLoss(0.1), epochs=5, learning_rate=0.01)
        with torch.no_grad():
            return gb.calibrate(network, (images[:300], y_images[:300]))(images).numpy()

    found = with_each(convolutions)
    note("numbers", "gb.train, convolutions", "largest difference / standard deviation", f"{found:.1e}")

    def network(hidden):
        with torch.no_grad():
            return train_network(hidden)(torch.from_numpy(x)).numpy()

    for hidden in ((64, 64), (512, 512)):
        table = with_each(lambda own=hidden: bounds(fit_table(own).predict_interval(x)))
        note("numbers", f"fit of a table model, {hidden}", "largest difference / standard deviation", f"{table:.1e}")
        own = with_each(lambda own=hidden: network(own))
        note("numbers", f"gb.train, {hidden}", "largest difference / standard deviation", f"{own:.1e}")


def note(part, what, figure, value):
    """Print and keep a figure."""
    asked = os.environ.get("OMP_NUM_THREADS")
    part = part if asked is None else f"{part}, OMP_NUM_THREADS={asked}"
    print(f"{part}, {what}, {figure}: {value}", flush=True)
    keep(RESULTS, {"part": part, "what": what, "figure": figure, "value": str(value)}, ("part", "what", "figure"))


NUMBER = torch.get_num_threads()


def main():
    """Measure what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="threads,growth,numbers")
    given = parser.parse_args()
    parts = given.only.split(",")
    if "numbers" in parts:
        numbers()
    for name, predict in predictors().items():
        if "threads" in parts:
            threads(name, predict, given.rounds)
        if "growth" in parts:
            growth(name, predict, given.calls)


if __name__ == "__main__":
    main()
