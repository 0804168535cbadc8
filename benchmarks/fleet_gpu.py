"""Fleets on a GPU: time of a step, against plain loops and against the number of members; memory; Figure 1's training.

python benchmarks/fleet_gpu.py [step] [curve] [memory] [stream] [figure1]: some of the parts, or all.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset

import guardband as gb
from guardband.data.artificial import PaperModel

ROWS, COLUMNS, UNITS, BATCH, LEVELS, REPETITIONS = 75_000, 100, 200, 256, 10, 10
STEPS = -(-ROWS // BATCH)
TAUS = [0.1 - 0.01 * i for i in range(LEVELS)]
DEVICE = torch.device("cuda")


def seconds(work: Callable[[], object]) -> float:
    """Return how long it takes, the device's work included."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def networks(size: int, outputs: int = 3) -> list[torch.nn.Module]:
    """Return fresh networks of the paper's shape."""
    if outputs == 3:
        return [gb.nn.FullyConnected(COLUMNS, (UNITS,)).to(DEVICE) for _ in range(size)]
    layers = torch.nn.Linear, torch.nn.ReLU
    return [
        torch.nn.Sequential(layers[0](COLUMNS, UNITS), layers[1](), layers[0](UNITS, outputs)).to(DEVICE)
        for _ in range(size)
    ]


def data(repetitions: int) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """Return all repetitions' training rows one after another, and the positions of each."""
    x = torch.rand(repetitions * ROWS, COLUMNS, device=DEVICE)
    y = 3 * (x[:, :5].sum(1) - 2.5) + torch.randn(len(x), device=DEVICE)
    return x, y, list(torch.arange(len(x)).view(repetitions, -1))


def seconds_per_epoch(size: int, repetitions: int, epochs: int = 20, **settings: object) -> float:
    """Return what one epoch more costs, for ``size`` levels of as many repetitions: the median of three."""
    x, y, own = data(repetitions)
    losses = [gb.nn.IntervalLoss(0.01 + 0.98 * i / size) for i in range(size)] * repetitions
    settings["rows"] = [positions for positions in own for _ in range(size)]
    settings["seed"] = [repetition for repetition in range(repetitions) for _ in range(size)]

    def taken(epochs: int) -> float:
        members = networks(size * repetitions)
        return seconds(lambda: gb.train(members, (x, y), losses, epochs=epochs, learning_rate=0.01, **settings))

    taken(1)
    return statistics.median((taken(epochs + 1) - taken(1)) / epochs for _ in range(3))


def plain_epoch(loader: DataLoader, network: torch.nn.Module) -> None:
    """Train one network for an epoch as a user would."""
    loss = gb.nn.IntervalLoss(0.1).to(DEVICE)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for x, y in loader:
        optimiser.zero_grad()
        loss(network(x.to(DEVICE)), y.to(DEVICE)).backward()
        optimiser.step()


def step() -> dict[str, object]:
    """Time a step of 10 levels x 10 repetitions, and a plain loop over one network."""
    x, y = torch.rand(ROWS, COLUMNS), torch.randn(ROWS)
    loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True)
    plain_epoch(loader, networks(1)[0])
    plain = statistics.median(seconds(lambda: plain_epoch(loader, networks(1)[0])) for _ in range(3))
    out: dict[str, object] = {"plain_s_per_epoch": plain, "plain_us_per_step": plain / STEPS * 1e6}
    for precision in ("float32", "tf32", "bf16"):
        fleet = seconds_per_epoch(LEVELS, REPETITIONS, precision=precision)
        out[precision] = {"us_per_step": fleet / STEPS * 1e6, "times_faster_than_100_plain": 100 * plain / fleet}
    return out


def curve() -> list[dict[str, float]]:
    """Time a step for M members on the same rows, M = 1 to 1000."""
    out = []
    for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        taken = seconds_per_epoch(size, 1, epochs=5)
        out.append(
            {
                "members": size,
                "us_per_step": taken / STEPS * 1e6,
                "us_per_step_and_member": taken / STEPS / size * 1e6,
                "peak_MB": torch.cuda.max_memory_allocated() / 1e6,
            }
        )
    return out


def memory() -> dict[str, float]:
    """Compare the peak of 10 levels x 10 repetitions with data + parameters, gradients, moments + one batch."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    seconds_per_epoch(LEVELS, REPETITIONS, epochs=1)
    peak = torch.cuda.max_memory_allocated()
    members = LEVELS * REPETITIONS
    parameters = members * sum(p.numel() for p in networks(1)[0].parameters()) * 4
    rows = REPETITIONS * ROWS * (COLUMNS + 1) * 4
    layer = members * UNITS * BATCH * 4
    positions = REPETITIONS * ROWS * 8
    return {
        "peak_MB": peak / 1e6,
        "data_MB": rows / 1e6,
        "positions_MB": positions / 1e6,
        "parameters_MB": parameters / 1e6,
        "layer_of_a_batch_MB": layer / 1e6,
    }


def stream() -> dict[str, float]:
    """Time an epoch with the rows on the device, and with the same rows streamed from the host."""
    from guardband.doors import training_table as door

    x, y = torch.rand(ROWS, COLUMNS), torch.randn(ROWS)

    losses = [gb.nn.IntervalLoss(tau) for tau in TAUS]

    def epoch(share: float) -> float:
        door.RESIDENT_SHARE = share

        def taken(epochs: int) -> float:
            members = networks(LEVELS)
            return seconds(lambda: gb.train(members, (x, y), losses, epochs=epochs, learning_rate=0.01))

        taken(1)
        return (taken(6) - taken(1)) / 5

    resident, streamed = epoch(0.5), epoch(0.0)
    return {"resident_us_per_step": resident / STEPS * 1e6, "streamed_us_per_step": streamed / STEPS * 1e6}


def figure1() -> dict[str, float]:
    """Train all networks of the paper's Figure 1: seven methods, 10 repetitions, 75,000 rows, 100 epochs.

    Ten levels of pav (the first is also conf-nn's and qreg-un's), conf-fw's point, five candidates of
    high-q's penalty and five of weight decay for the Gaussian network of neg-ll and bayes.
    """
    draws = [PaperModel().draw(ROWS, seed) for seed in range(REPETITIONS)]
    x = torch.cat([torch.as_tensor(draw[0], dtype=torch.float32) for draw in draws]).to(DEVICE)
    y = torch.cat([torch.as_tensor(draw[1], dtype=torch.float32) for draw in draws]).to(DEVICE)
    y = (y - y.mean()) / y.std()
    own = list(torch.arange(len(x)).view(REPETITIONS, -1))
    penalties, decays = (5.0, 10.0, 15.0, 30.0, 60.0), (0.0, 1e-4, 3e-4, 1e-3, 3e-3)
    members: list[torch.nn.Module] = []
    losses: list[torch.nn.Module] = []
    settings: dict[str, list[object]] = {"rows": [], "seed": [], "weight_decay": []}
    for repetition in range(REPETITIONS):
        triples = [(gb.nn.IntervalLoss(tau), 3, 0.0) for tau in TAUS]
        points = [(gb.nn.AbsoluteLoss(), 1, 0.0)]
        bounds = [(gb.nn.PearceLoss(0.1, penalty=penalty), 2, 0.0) for penalty in penalties]
        gaussians = [(gb.nn.GaussianLoss(), 2, decay) for decay in decays]
        for loss, outputs, decay in triples + points + bounds + gaussians:
            members += networks(1, outputs)
            losses.append(loss)
            settings["rows"].append(own[repetition])
            settings["seed"].append(repetition)
            settings["weight_decay"].append(decay)
    taken = seconds(lambda: gb.train(members, (x, y), losses, epochs=100, learning_rate=0.01, **settings))
    return {"networks": len(members), "seconds_of_training": taken}


def main() -> None:
    """Print each part, and write all as JSON where ``OUT`` of the environment says."""
    parts = {part.__name__: part for part in (step, curve, memory, stream, figure1)}
    results = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    for name in sys.argv[1:] or parts:
        results[name] = parts[name]()
        print(name, json.dumps(results[name], indent=1), flush=True)
    Path(os.environ.get("OUT", "."), "fleet_gpu.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
