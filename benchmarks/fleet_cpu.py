"""pav's ten networks as a fleet on the CPU, beside a plain loop, a stack by ``torch.func`` and the bare products.

python benchmarks/fleet_cpu.py [ten_networks] [curve] [crowded]: some tables or all; minutes on 2 cores.
"""

import json
import multiprocessing
import platform
import statistics
import sys
import time
from collections.abc import Callable
from datetime import date
from multiprocessing.synchronize import Barrier
from pathlib import Path

import torch
from torch.func import functional_call, stack_module_state, vmap
from torch.utils.data import DataLoader, TensorDataset

import guardband as gb

ROWS, COLUMNS, UNITS, BATCH, LEVELS = 75_000, 100, 200, 256, 10
TURNS, EPOCHS = 9, 2
TAUS = [0.1 - 0.01 * i for i in range(LEVELS)]
X, Y = torch.rand(ROWS, COLUMNS), torch.randn(ROWS)


def networks(size: int) -> list[torch.nn.Module]:
    """Return fresh networks of the paper's shape."""
    return [gb.nn.FullyConnected(COLUMNS, (UNITS,)) for _ in range(size)]


def plain_loop() -> None:
    """Train one network as a user would."""
    (network,), loss = networks(1), gb.nn.IntervalLoss(0.1)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(EPOCHS):
        for x, y in DataLoader(TensorDataset(X, Y), batch_size=BATCH, shuffle=True):
            optimiser.zero_grad()
            loss(network(x), y).backward()
            optimiser.step()


def torch_func() -> None:
    """Train ten networks as PyTorch's tutorial on ensembles does, with batches from tensors."""
    many, loss = networks(LEVELS), gb.nn.IntervalLoss(TAUS)
    parameters, buffers = stack_module_state(many)
    optimiser = torch.optim.Adam(parameters.values(), lr=0.01)
    one = many[0].to("meta")

    def run(own: dict[str, torch.Tensor], kept: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return functional_call(one, (own, kept), (x,))

    for _ in range(EPOCHS):
        for index in torch.randperm(ROWS).split(BATCH):
            optimiser.zero_grad()
            loss(vmap(run, in_dims=(0, 0, None))(parameters, buffers, X[index]), Y[index]).sum().backward()
            optimiser.step()


def fleet(size: int, epochs: int = EPOCHS, x: torch.Tensor = X, y: torch.Tensor = Y) -> None:
    """Train networks as a fleet."""
    losses = [gb.nn.IntervalLoss(0.01 + 0.98 * i / size) for i in range(size)]
    gb.train(networks(size), (x, y), losses, epochs=epochs, learning_rate=0.01, batch_size=BATCH)


def pav_fleet() -> None:
    """Train pav's ten networks as a fleet."""
    fleet(LEVELS)


def fleet_of_one() -> None:
    """Train one network with guardband."""
    fleet(1)


def products() -> None:
    """Do the first layer's products of ten networks, forward and backward to the weights, and nothing else."""
    weights, out = torch.randn(LEVELS * UNITS, COLUMNS), torch.empty(LEVELS * UNITS, BATCH)
    gradient = torch.empty(LEVELS * UNITS, COLUMNS)
    for _ in range(EPOCHS):
        for start in range(0, ROWS - BATCH + 1, BATCH):
            x = X[start : start + BATCH]
            torch.mm(weights, x.T, out=out)
            torch.mm(out, x, out=gradient)


def seconds(work: Callable[[], object]) -> float:
    """Return how long it takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def ten_networks() -> None:
    """Print medians after a warm-up, taken in turns, and their ratios."""
    works = (plain_loop, pav_fleet, fleet_of_one, torch_func, products)
    times: dict[str, list[float]] = {work.__name__: [] for work in works}
    for turn in range(TURNS + 1):
        for work in works:
            taken = seconds(work) / EPOCHS
            if turn:
                times[work.__name__].append(taken)
    plain, limit = (statistics.median(times[name]) for name in ("plain_loop", "products"))
    print(f"\nAn epoch of {ROWS:,} x {COLUMNS}, {UNITS} units, batch {BATCH}; medians of {TURNS}, in turns")
    print(f"{'':14}{'s an epoch':>12}{'least':>8}{'most':>8}{'x plain':>9}{'x products':>12}")
    for name, taken in times.items():
        middle = statistics.median(taken)
        print(f"{name:14}{middle:12.2f}{min(taken):8.2f}{max(taken):8.2f}{middle / plain:9.2f}{middle / limit:12.2f}")
    print("bar: pav_fleet at most 1.2 x plain_loop and at most 4 x products, the limit of its arithmetic")


def crowded() -> None:
    """Print how two processes at a time slow each other: twice the time of one is what sharing costs at least."""
    print("\nTwo processes at once, each with as many threads as there are cores")
    print(f"{'':14}{'alone, s':>12}{'both, s':>12}{'ratio':>8}")
    for work in (pav_fleet, fleet_of_one, plain_loop, torch_func):
        alone, both = _at_a_time(1, work), _at_a_time(2, work)
        print(f"{work.__name__:14}{alone:12.2f}{both:12.2f}{both / alone:8.2f}", flush=True)


def _at_a_time(count: int, work: Callable[[], None]) -> float:
    """Return the seconds until all of several processes that start together are done, the median of three times."""
    context = multiprocessing.get_context("spawn")
    barrier, times = context.Barrier(count), context.Queue()
    processes = [context.Process(target=_timed, args=(work, barrier, times)) for _ in range(count)]
    for process in processes:
        process.start()
    taken = [times.get() for _ in range(3 * count)]
    for process in processes:
        process.join()
    return statistics.median(max(t for turn, t in taken if turn == i) for i in range(3))


def _timed(work: Callable[[], None], barrier: Barrier, times: "multiprocessing.Queue[tuple[int, float]]") -> None:
    work()
    for turn in range(3):
        barrier.wait()
        times.put((turn, seconds(work)))


def curve() -> None:
    """Print and save the time of a step against the number of members, on the same rows."""
    saved = []
    x, y = X[: 20 * BATCH], Y[: 20 * BATCH]
    steps = 20 * 3
    print("\nA step of M members on the same rows")
    print(f"{'M':>6}{'us a step':>12}{'us a member':>14}")
    for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000):
        fleet(size, 1, x, y)
        taken = statistics.median(
            seconds(lambda size=size: fleet(size, 4, x, y)) - seconds(lambda size=size: fleet(size, 1, x, y))
            for _ in range(3)
        )
        print(f"{size:6}{taken / steps * 1e6:12.0f}{taken / steps / size * 1e6:14.1f}", flush=True)
        saved.append({"members": size, "us_per_step": taken / steps * 1e6})
    (Path(__file__).parent / "results" / "curve_cpu.json").write_text(json.dumps(saved, indent=1) + "\n")


def main() -> None:
    """Print the parts named on the command line, or all."""
    machine = f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}"
    print(f"{date.today()}, {machine}")
    parts = {part.__name__: part for part in (ten_networks, curve, crowded)}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
