"""One epoch of pav's ten networks as one stack, beside one network in a plain loop and the bare products."""

import statistics
import time
from collections.abc import Callable

import torch
from torch.utils.data import DataLoader, TensorDataset

from guardband.nn import FullyConnected, IntervalLoss
from guardband.training.batches import Rows, ShuffledBatches
from guardband.training.loop import train_loop
from guardband.training.stack import stack

ROWS, COLUMNS, UNITS, BATCH, LEVELS = 75_000, 100, 200, 256, 10
X, Y = torch.rand(ROWS, COLUMNS), torch.randn(ROWS)


def plain_loop() -> None:
    """Train one network as a user would."""
    network, loss = FullyConnected(COLUMNS, (UNITS,)), IntervalLoss(0.1)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for x, y in DataLoader(TensorDataset(X, Y), batch_size=BATCH, shuffle=True):
        optimiser.zero_grad()
        loss(network(x), y).backward()
        optimiser.step()


def stacked() -> None:
    """Train ten networks as one."""
    members = stack([FullyConnected(COLUMNS, (UNITS,)) for _ in range(LEVELS)], X[:2])
    batches = ShuffledBatches(Rows(X, Y), torch.arange(ROWS), BATCH, seed=0)
    loss = IntervalLoss([(i + 1) / 100 for i in range(LEVELS)])
    train_loop(members, batches, loss, epochs=1, learning_rate=0.01, weight_decay=0.0, after_epoch=lambda epoch: False)


def products() -> None:
    """Do the first layer's products of ten networks, forward and backward to the weights, and nothing else."""
    weights, gradient = torch.randn(COLUMNS, LEVELS * UNITS), torch.randn(BATCH, LEVELS * UNITS)
    for start in range(0, ROWS - BATCH + 1, BATCH):
        x = X[start : start + BATCH]
        torch.mm(x, weights)
        torch.mm(x.T, gradient)


def seconds(work: Callable[[], None]) -> float:
    """Return how long it takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    """Print medians of five after a warm-up, taken in turns, and their ratios."""
    works = (plain_loop, stacked, products)
    times: dict[str, list[float]] = {work.__name__: [] for work in works}
    for turn in range(6):
        for work in works:
            taken = seconds(work)
            if turn:
                times[work.__name__].append(taken)
    plain = statistics.median(times["plain_loop"])
    for name, taken in times.items():
        middle = statistics.median(taken)
        print(f"{name:10} {middle:.2f} s an epoch ({min(taken):.2f} to {max(taken):.2f}), {middle / plain:.2f} x plain")


if __name__ == "__main__":
    main()
