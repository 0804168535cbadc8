"""The image experiment with the whole pre-trained network trained further, not read as it is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from guardband.doors.train import train
from guardband.experiments.reproduce.contest import Array, Own, Share
from guardband.experiments.reproduce.problem import Part, Problem
from guardband.experiments.reproduce.setting import Setting
from guardband.experiments.sources import data_file
from guardband.images import backbone, from_parquet
from guardband.methods.method import NetworkSpec
from guardband.nn.ordering import TripleHead

LEARNING_RATE = 1e-3
TURN, SHIFT, ZOOM = 20.0, 0.08, 0.12
"""The most that an image is turned, in degrees, moved, as a share of its width, and enlarged or reduced."""


class HandNetwork(nn.Module):
    """EfficientNet-Lite0, the patient's sex beside its pooled features, a hidden layer and a ``TripleHead``.

    Takes grey images ``(n, 1, h, w)`` of bytes and ``(n, 1)``. While it trains it turns, moves, enlarges and mirrors
    the images at random.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.body: Any = backbone("efficientnet-lite0").network.requires_grad_(True)
        self.head = nn.Sequential(nn.Linear(1281, hidden), nn.ReLU(), TripleHead(hidden))

    def forward(self, images: Tensor, male: Tensor) -> Tensor:
        """Return the bands."""
        x = images.float()
        if self.training:
            x = moved(x)
        x = ((x - 127) / 128).expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last)
        pooled = self.body.extract_features(x).mean(dim=(2, 3))
        bands: Tensor = self.head(torch.cat([pooled, male], dim=1))
        return bands


def moved(images: Tensor) -> Tensor:
    """Return images, ``(n, 1, h, w)``, each turned, moved, enlarged and mirrored at random."""
    n, device = len(images), images.device
    angle = (2 * torch.rand(n, device=device) - 1) * (TURN * torch.pi / 180)
    zoom = 1 + (2 * torch.rand(n, device=device) - 1) * ZOOM
    mirror = 1 - 2 * (torch.rand(n, device=device) < 0.5).float()
    shift = (2 * torch.rand(n, 2, device=device) - 1) * SHIFT
    cos, sin = angle.cos() * zoom, angle.sin() * zoom
    first = torch.stack([cos * mirror, -sin, shift[:, 0]], dim=1)
    second = torch.stack([sin * mirror, cos, shift[:, 1]], dim=1)
    grid = nn.functional.affine_grid(torch.stack([first, second], dim=1), list(images.shape), align_corners=False)
    return nn.functional.grid_sample(images, grid, align_corners=False)


class Hands:
    """The images that some problems use, as bytes on a device, and the patients' sex."""

    def __init__(self, problems: Sequence[Problem], data_dir: Path | None, device: torch.device) -> None:
        pandas = import_module("pandas")
        path = data_file("boneage", data_dir)
        every = from_parquet(path, image="image", target="boneage_months", name="id")
        parts = [part for problem in problems for part in (problem.d1, problem.d2, problem.d3)]
        used = torch.unique(torch.cat([_rows(part, torch.device("cpu")) for part in parts]))
        grey = [(255 * batch[:, :1]).round().to(torch.uint8) for batch in every.take(used.tolist()).batches(256)]
        self._images = torch.cat(grey).to(device)
        self._place = torch.zeros(len(every), dtype=torch.int64)
        self._place[used] = torch.arange(len(used))
        self._place = self._place.to(device)
        male = pandas.read_parquet(path, columns=["male"])["male"].to_numpy(np.float32)
        self._male = torch.from_numpy(male)[:, None].to(device)

    def at(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return images and sex of some rows."""
        return self._images[self._place[rows]], self._male[rows]


class _Shuffled:
    """Batches of the training rows in another order in every pass."""

    def __init__(self, hands: Hands, rows: Tensor, y: Tensor, batch_size: int, seed: int) -> None:
        self._hands, self._rows, self._y, self._size = hands, rows, y, batch_size
        self._random = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[tuple[tuple[Tensor, Tensor], Tensor]]:
        order = torch.randperm(len(self._rows), generator=self._random).to(self._rows.device)
        for start in range(0, len(self) * self._size, self._size):  # batches of one size make one graph on a GPU
            some = order[start : start + self._size]
            yield self._hands.at(self._rows[some]), self._y[some]

    def __len__(self) -> int:
        return max(1, len(self._rows) // self._size)


def fine_tune(
    data_dir: Path | None,
    problems: Sequence[Problem],
    setting: Setting,
    wanted: Sequence[NetworkSpec],
    device: torch.device,
    done: Share,
) -> dict[tuple[int, NetworkSpec], Own]:
    """Return what a network gives for the calibration and test images; tables hold the rows of the images."""
    assert isinstance(setting.epochs, int), "the number of passes is fixed"
    (spec,) = wanted  # one network for all methods
    hands, passes = Hands(problems, data_dir, device), setting.epochs
    own: dict[tuple[int, NetworkSpec], Own] = {}
    for number, problem in enumerate(problems):
        started = time.perf_counter()
        mean, scale = float(problem.d1.y.mean()), float(problem.d1.y.std())
        y = torch.as_tensor((problem.d1.y - mean) / scale, dtype=torch.float32, device=device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(problem.seed)
            network = HandNetwork(setting.hidden[0]).to(device)
        train(
            network,
            _Shuffled(hands, _rows(problem.d1, device), y, setting.batch_size, problem.seed),
            spec.head.loss(),
            epochs=passes,
            learning_rate=LEARNING_RATE,
            weight_decay=setting.decays[0],
            schedule="cosine",
            seed=problem.seed,
            precision="bf16" if device.type == "cuda" else "float32",
            verbose=False,
        )
        d2, d3 = (
            spec.head.read(_outputs(network, hands, _rows(part, device))[None, None]).moved(mean, scale)
            for part in (problem.d2, problem.d3)
        )
        seconds = time.perf_counter() - started
        own[problem.repetition, spec] = Own(d2, d3, passes, setting.decays[0], float("nan"), False, seconds)
        done((number + 1) / len(problems))
    return own


def _rows(part: Part, device: torch.device) -> Tensor:
    return torch.as_tensor(part.table.columns[0].values.astype(np.int64), device=device)


@torch.no_grad()
def _outputs(network: nn.Module, hands: Hands, rows: Tensor) -> Array:
    network.eval()
    parts = [network(*hands.at(some)).double().cpu().numpy() for some in torch.split(rows, 256)]
    outputs: NDArray[np.float64] = np.concatenate(parts)
    return outputs
