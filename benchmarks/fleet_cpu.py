"""One epoch of pav's ten networks as a fleet on the CPU, beside one network in a plain loop and the bare products."""

import statistics
import time
from collections.abc import Callable

import torch
from torch.utils.data import DataLoader, TensorDataset

import guardband as gb

ROWS, COLUMNS, UNITS, BATCH, LEVELS = 75_000, 100, 200, 256, 10
TURNS, EPOCHS = 7, 2
X, Y = torch.rand(ROWS, COLUMNS), torch.randn(ROWS)


def plain_loop() -> None:
    """Train one network as a user would."""
    network, loss = gb.nn.FullyConnected(COLUMNS, (UNITS,)), gb.nn.IntervalLoss(0.1)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(EPOCHS):
        for x, y in DataLoader(TensorDataset(X, Y), batch_size=BATCH, shuffle=True):
            optimiser.zero_grad()
            loss(network(x), y).backward()
            optimiser.step()


def fleet(size: int) -> None:
    """Train networks as one."""
    networks = [gb.nn.FullyConnected(COLUMNS, (UNITS,)) for _ in range(size)]
    losses = [gb.nn.IntervalLoss((i + 1) / (size + 1)) for i in range(size)]
    gb.train(networks, (X, Y), losses, epochs=EPOCHS, learning_rate=0.01, batch_size=BATCH)


def pav_fleet() -> None:
    """Train pav's ten networks as one."""
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


def seconds(work: Callable[[], None]) -> float:
    """Return how long an epoch takes."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) / EPOCHS


def main() -> None:
    """Print medians after a warm-up, taken in turns, and their ratios."""
    works = (plain_loop, pav_fleet, fleet_of_one, products)
    times: dict[str, list[float]] = {work.__name__: [] for work in works}
    for turn in range(TURNS + 1):
        for work in works:
            taken = seconds(work)
            if turn:
                times[work.__name__].append(taken)
    plain, limit = (statistics.median(times[name]) for name in ("plain_loop", "products"))
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}, medians of {TURNS} after a warm-up")
    print(f"{'':14}{'s an epoch':>12}{'least':>8}{'most':>8}{'x plain':>9}{'x products':>12}")
    for name, taken in times.items():
        middle = statistics.median(taken)
        row = f"{name:14}{middle:12.2f}{min(taken):8.2f}{max(taken):8.2f}{middle / plain:9.2f}{middle / limit:12.2f}"
        print(row)


if __name__ == "__main__":
    main()
