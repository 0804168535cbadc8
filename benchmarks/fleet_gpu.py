"""Fleets on a GPU: time of a step, against plain loops and against the number of members; memory; Figure 1's training.

python benchmarks/fleet_gpu.py [step] [curve] [memory] [stream] [precision] [figure1]: some or all.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path

import torch
from torch.func import functional_call, stack_module_state, vmap
from torch.utils.data import DataLoader, TensorDataset

import guardband as gb
from guardband.data.artificial import PaperModel

ROWS, COLUMNS, UNITS, BATCH, LEVELS, REPETITIONS = 75_000, 100, 200, 256, 10, 10
STEPS = -(-ROWS // BATCH)
TAUS = [0.1 - 0.01 * i for i in range(LEVELS)]
DEVICE = torch.device("cuda")
FLOAT32_PER_SECOND, BYTES_PER_SECOND = 67e12, 4.8e12  # an H200's, by its data sheet


def seconds(work: Callable[[], object]) -> float:
    """Return how long it takes, the device's work included."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def networks(size: int, last: Callable[[int], torch.nn.Module] = gb.nn.TripleHead) -> list[torch.nn.Module]:
    """Return fresh networks of the paper's shape."""
    return [gb.nn.FullyConnected(COLUMNS, (UNITS,), last=last).to(DEVICE) for _ in range(size)]


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


def torch_func_step() -> float:
    """Return the seconds of a step of 100 networks on the same rows, as PyTorch's tutorial on ensembles takes it."""
    many = networks(LEVELS * REPETITIONS)
    parameters, buffers = stack_module_state(many)
    optimiser, loss = torch.optim.Adam(parameters.values(), lr=0.01), gb.nn.IntervalLoss(0.1).to(DEVICE)
    one = many[0].to("meta")
    x, y = torch.rand(BATCH, COLUMNS, device=DEVICE), torch.randn(BATCH, device=DEVICE)

    def run(own: dict[str, torch.Tensor], kept: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return functional_call(one, (own, kept), (x,))

    def steps(count: int) -> None:
        for _ in range(count):
            optimiser.zero_grad()
            loss(vmap(run, in_dims=(0, 0, None))(parameters, buffers, x), y).sum().backward()
            optimiser.step()

    steps(20)
    return statistics.median(seconds(lambda: steps(100)) for _ in range(3)) / 100


def limit() -> tuple[float, float]:
    """Return the least microseconds of a step of 100 networks: its arithmetic in float32, and its traffic."""
    members = LEVELS * REPETITIONS
    operations = 2 * members * BATCH * UNITS * (2 * COLUMNS + 3 * 3)
    layers = 7 * 4 * members * BATCH * UNITS  # written, clipped at zero, read for the next layer, and as often back
    parameters = (
        8 * 4 * members * UNITS * (COLUMNS + 4)
    )  # gradient written; gradient, moments, value read; three written
    return operations / FLOAT32_PER_SECOND * 1e6, (layers + parameters) / BYTES_PER_SECOND * 1e6


def step() -> dict[str, object]:
    """Time a step of 10 levels x 10 repetitions, beside plain loops and a stack by ``torch.func``."""
    x, y = torch.rand(ROWS, COLUMNS), torch.randn(ROWS)
    loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True)
    plain_epoch(loader, networks(1)[0])
    plain = statistics.median(seconds(lambda: plain_epoch(loader, networks(1)[0])) for _ in range(3)) / STEPS
    hundred = 100 * plain
    fleets = {
        precision: seconds_per_epoch(LEVELS, REPETITIONS, precision=precision) / STEPS
        for precision in ("float32", "tf32", "bf16")
    }
    times = {"100 plain loops (from 1)": hundred, "torch.func, same rows": torch_func_step()}
    times |= {f"fleet, {precision}": taken for precision, taken in fleets.items()}
    arithmetic, traffic = limit()
    print(f"\nA step of {LEVELS} levels x {REPETITIONS} repetitions; bar: at most 250 us, at least 1000 x")
    print(f"{'':26}{'us a step':>12}{'x faster':>10}{'x limit':>9}")
    for name, taken in times.items():
        print(f"{name:26}{taken * 1e6:12.0f}{hundred / taken:10.0f}{taken * 1e6 / (arithmetic + traffic):9.1f}")
    print(f"limit: {arithmetic:.0f} us of arithmetic in float32 + {traffic:.0f} us of traffic")
    return times


def curve() -> list[dict[str, float]]:
    """Time a step for M members on the same rows, M = 1 to 1000."""
    out = []
    print("\nA step of M members on the same rows; bar: the time of a member falls until the device is full")
    print(f"{'M':>6}{'us a step':>12}{'us a member':>14}{'peak, MB':>10}")
    for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        taken = seconds_per_epoch(size, 1, epochs=max(5, min(40, 2000 // size))) / STEPS * 1e6
        peak = torch.cuda.max_memory_allocated() / 1e6
        print(f"{size:6}{taken:12.0f}{taken / size:14.2f}{peak:10.0f}")
        out.append({"members": size, "us_per_step": taken})
    return out


def memory() -> dict[str, float]:
    """Compare the peak of 10 levels x 10 repetitions with what must be there."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    seconds_per_epoch(LEVELS, REPETITIONS, epochs=1)
    peak = torch.cuda.max_memory_allocated() / 1e6
    members = LEVELS * REPETITIONS
    parameters = members * sum(p.numel() for p in networks(1)[0].parameters()) * 4 / 1e6
    parts = {
        "data": REPETITIONS * ROWS * (COLUMNS + 1) * 4 / 1e6,
        "positions and their order": 3 * REPETITIONS * ROWS * 8 / 1e6,
        "parameters, gradients, two moments": 4 * parameters,
        "the networks given, a kept and a last copy": 3 * parameters,
        "one batch: a layer and its gradient": 2 * members * UNITS * BATCH * 4 / 1e6,
        "cuBLAS's workspaces, of two streams": 2 * 2**25 / 1e6,
    }
    print("\nMemory of 10 levels x 10 repetitions, MB")
    for name, size in parts.items():
        print(f"{name:45}{size:8.0f}")
    print(f"{'sum':45}{sum(parts.values()):8.0f}\n{'measured peak':45}{peak:8.0f}")
    return parts | {"peak": peak}


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
        return statistics.median((taken(41) - taken(1)) / 40 for _ in range(3))

    resident, streamed = (epoch(share) / STEPS * 1e6 for share in (0.5, 0.0))
    print(f"\nA step of 10 networks: rows on the device {resident:.0f} us, streamed from the host {streamed:.0f} us")
    return {"resident": resident, "streamed": streamed}


def precision() -> dict[str, float]:
    """Compare the held-out loss after 20 epochs on the paper's data with float32's, as the order of rows does."""
    (x, y), (x_new, y_new) = (
        tuple(torch.as_tensor(part, dtype=torch.float32, device=DEVICE) for part in PaperModel().draw(n, seed))
        for n, seed in ((ROWS, 0), (20_000, 1))
    )
    mean, scale = y.mean(), y.std()
    loss = gb.nn.IntervalLoss(TAUS).to(DEVICE)

    def held_out(**settings: object) -> torch.Tensor:
        torch.manual_seed(0)
        members = networks(LEVELS)
        gb.train(members, (x, (y - mean) / scale), loss, epochs=20, learning_rate=0.01, weight_decay=1e-3, **settings)
        with torch.no_grad():
            return loss(torch.stack([member(x_new) for member in members]), (y_new - mean) / scale)

    exact = held_out()
    others = {"tf32": {"precision": "tf32"}, "bf16": {"precision": "bf16"}, "float32, other order": {"seed": 1}}
    print("\nHeld-out loss after 20 epochs beside float32's: largest difference over ten levels")
    out = {}
    for name, settings in others.items():
        out[name] = float(((held_out(**settings) - exact) / exact).abs().max())
        print(f"{name:24}{out[name]:8.2%}")
    return out


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
        triples = [(gb.nn.IntervalLoss(tau), gb.nn.TripleHead, 0.0) for tau in TAUS]
        points = [(gb.nn.AbsoluteLoss(), partial(torch.nn.Linear, out_features=1), 0.0)]
        bounds = [
            (gb.nn.PearceLoss(0.1, penalty=penalty), partial(torch.nn.Linear, out_features=2), 0.0)
            for penalty in penalties
        ]
        gaussians = [(gb.nn.GaussianLoss(), gb.nn.GaussianHead, decay) for decay in decays]
        for loss, last, decay in triples + points + bounds + gaussians:
            members += networks(1, last)
            losses.append(loss)
            settings["rows"].append(own[repetition])
            settings["seed"].append(repetition)
            settings["weight_decay"].append(decay)
    taken = seconds(lambda: gb.train(members, (x, y), losses, epochs=100, learning_rate=0.01, **settings))
    print(f"\nFigure 1: {len(members)} networks, 100 epochs: {taken:.1f} s; bar: under 60 s")
    return {"networks": len(members), "seconds_of_training": taken}


def main() -> None:
    """Print the parts named on the command line, or all, and save the curve."""
    parts = {part.__name__: part for part in (step, curve, memory, stream, precision, figure1)}
    print(f"{date.today()}, {torch.cuda.get_device_name()}, torch {torch.__version__}")
    for name in sys.argv[1:] or parts:
        result = parts[name]()
        if name == "curve":
            folder = Path(os.environ.get("OUT", Path(__file__).parent / "results"))
            (folder / "curve_gpu.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
