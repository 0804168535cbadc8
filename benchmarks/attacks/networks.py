"""Damage to the files of networks: graphs for MLflow with their checksum made good, and checkpoints.

python benchmarks/attacks/networks.py graphs [--tries 600]
python benchmarks/attacks/networks.py checkpoints [--tries 400]

``graphs`` changes bytes of an ONNX graph as an intruder would who also rewrites the checksum, and loads and asks each
in a process that may die of it. ``checkpoints`` changes single bits of one, and cuts it short.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

import guardband as gb
from guardband.doors.served_graph import CHECKSUM, GRAPH, ServedGraph, write_graph
from guardband.exceptions import ModelFileError
from guardband.training.checkpoint import Checkpoint

MEMORY = 24 * 2**30


def changed(body: bytes, number: int) -> bytes:
    """Return a graph with some damage: a bit, a byte, a stretch of zeros, a cut, or bytes put in."""
    random = np.random.default_rng(number)
    place, kind = int(random.integers(len(body))), number % 5
    if kind == 0:
        return body[:place] + bytes([body[place] ^ (1 << int(random.integers(8)))]) + body[place + 1 :]
    if kind == 1:
        return body[:place] + bytes([int(random.integers(256))]) + body[place + 1 :]
    if kind == 2:
        return body[:place] + bytes(16) + body[place + 16 :]
    if kind == 3:
        return body[:place]
    return body[:place] + random.bytes(int(random.integers(1, 9))) + body[place:]


def judge(folder: Path, first: int, last: int) -> None:
    """Load and ask damaged graphs, and say what came of each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    body, rows = (folder / "whole").read_bytes(), np.ones((5, 6), np.float32)
    expected = (folder / "expected.npy").read_bytes()
    for number in range(first, last):
        damaged = changed(body, number)
        (folder / GRAPH).write_bytes(damaged)
        (folder / CHECKSUM).write_text(f"{hashlib.sha256(damaged).hexdigest()}  {GRAPH}\n")
        print("try", number, flush=True)
        try:
            same = np.stack(ServedGraph(folder)(rows)).tobytes() == expected
            print("same" if same else "other numbers", flush=True)
        except ModelFileError:
            print("refused", flush=True)
        except Exception as error:  # what the attack looks for
            print(f"OTHER ERROR {error!r:.200}", flush=True)


def graphs(tries: int) -> None:
    """Judge damaged graphs in processes that go on after the one that killed the last."""
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        torch.manual_seed(0)
        x = torch.randn(400, 6)
        guarded = gb.calibrate(gb.nn.FullyConnected(6, (8,)), (x, x.sum(1)))
        write_graph(guarded, x[:3], folder)
        (folder / "whole").write_bytes((folder / GRAPH).read_bytes())
        (folder / "expected.npy").write_bytes(np.stack(ServedGraph(folder)(np.ones((5, 6), np.float32))).tobytes())
        first = 0
        while first < tries:
            command = [sys.executable, __file__, "judge", str(folder), str(first), str(tries)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = done.stdout.splitlines()
            counts.update(line for line in lines if not line.startswith("try"))
            tried = [int(line.split()[1]) for line in lines if line.startswith("try")]
            if done.returncode == 0:
                break
            assert tried, done.stderr
            counts[f"PROCESS ENDED BY {done.returncode}"] += 1
            print("the process was ended by", tried[-1], done.stderr[-300:])
            first = tried[-1] + 1
    print(dict(counts))


def checkpoints(tries: int) -> None:
    """Count what becomes of a checkpoint with one bit changed, or cut short."""
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "one"
        x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
        gb.train(gb.nn.FullyConnected(3, (8,)), (x, x.sum(1)), gb.nn.IntervalLoss(0.1), epochs=2, checkpoint=name)
        whole, random = (Path(name) / "fleet-0.checkpoint").read_bytes(), np.random.default_rng(0)
        for bit in random.permutation(8 * len(whole))[:tries]:
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << (bit % 8)
            counts[_loaded(path, bytes(damaged))] += 1
        for end in random.permutation(len(whole))[:tries]:
            counts[_loaded(path, whole[:end]) + ", cut short"] += 1
    print(dict(counts))


def _loaded(path: Path, body: bytes) -> str:
    path.write_bytes(body)
    try:
        Checkpoint(path, "job").load()
    except ValueError as error:
        return "refused" if "Remove it" in str(error) and "same run" not in str(error) else f"OTHER {error}"
    return "RESUMED"


if __name__ == "__main__":
    if sys.argv[1:2] == ["judge"]:
        judge(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("what", choices=["graphs", "checkpoints"])
        parser.add_argument("--tries", type=int, default=600)
        given = parser.parse_args()
        {"graphs": graphs, "checkpoints": checkpoints}[given.what](given.tries)
