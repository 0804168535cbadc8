"""What goes into the first layer of stacked networks for tables, forward and backward by hand."""

from __future__ import annotations

import torch
from torch import Tensor

from guardband.nn.tabular import FASTER, VECTOR, WIDTH, TabularNetwork
from guardband.training.by_hand import Parameter, Product, Values
from guardband.training.workspace import Workspace

NAMES = ("frequency", "phase", "weight", "bias")


class TabularInputs:
    """Embedded numbers, columns as they are and the vectors of categories, all of them scaled."""

    def __init__(self, network: TabularNetwork, parameters: dict[str, Parameter], n: int, space: Workspace) -> None:
        self._scale = parameters["scale"]
        value = self._scale.value
        size, width = value.shape
        self.scaled = Values.room("scaled", width, n, self._scale, space)
        self._columns, self._product = (
            space.like(name, (size, width, n), value) for name in ("columns", "gradient of scales")
        )
        self._one, self._factor = value.new_ones(()), value.new_empty(size, width, 1)
        self._value = value.unsqueeze(-1)
        self._embedded = 0 if network.embedding is None else network.numbers
        self._waves = None
        if self._embedded:
            columns, slope = (t[:, : self._embedded * WIDTH] for t in self._both)
            self._waves = _Waves(parameters, columns, slope, space)
        vectors = len(network.vectors)
        self._plain = self._columns[:, self._embedded * WIDTH : width - VECTOR * vectors]
        places = range(width - VECTOR * vectors, width, VECTOR)
        self._vectors = [
            _Vectors(parameters[f"vectors.{i}.weight"], *(t[:, first : first + VECTOR] for t in self._both))
            for i, first in enumerate(places)
        ]

    @property
    def _both(self) -> tuple[Tensor, Tensor]:
        """The columns, and on the way back their gradient."""
        return self._columns, self.scaled.full

    def forward(self, x: Tensor) -> None:
        """Compute the scaled inputs of rows ``(M or 1, n, d)``."""
        columns, first_place = x.mT, x.shape[-1] - len(self._vectors)
        if self._waves is not None:
            self._waves.forward(columns[:, : self._embedded])
        self._plain.copy_(columns[:, self._embedded : first_place])
        for i, vectors in enumerate(self._vectors, first_place):
            vectors.forward(columns[:, i])
        torch.add(self._one, self._value, alpha=FASTER, out=self._factor)
        torch.mul(self._columns, self._factor, out=self.scaled.full)

    def backward(self) -> None:
        """Compute the gradients of scales, waves and vectors from that of the scaled inputs."""
        columns, slope = self._both
        torch.mul(columns, slope, out=self._product)
        torch.sum(self._product, -1, out=self._scale.gradient).mul_(FASTER)
        slope.mul_(self._factor)
        if self._waves is not None:
            self._waves.backward()
        for vectors in self._vectors:
            vectors.backward()


class _Waves:
    """Numbers, each with linear functions of cosines of itself, in ``columns`` ``(M, k * WIDTH, n)``."""

    def __init__(self, parameters: dict[str, Parameter], columns: Tensor, slope: Tensor, space: Workspace) -> None:
        frequency, phase, weight, bias = (parameters[f"embedding.{name}"] for name in NAMES)
        size, k, waves, _ = weight.value.shape
        n = columns.shape[-1]
        self._frequency, self._phase = (p.value.unsqueeze(-1) for p in (frequency, phase))
        self._bias, self._bias_gradient = bias.value.unsqueeze(-1), bias.gradient
        self._frequency_gradient, self._phase_gradient = frequency.gradient, phase.gradient
        embedded, slopes = (t.view(size, k, WIDTH, n) for t in (columns, slope))
        self._number, self._rest, self._slope = embedded[:, :, :1], embedded[:, :, 1:], slopes[:, :, 1:]
        each = Parameter(*(t.flatten(0, 1) for t in (weight.value, weight.work, weight.gradient)))
        self._cosine = Values.room("cosine of waves", waves, n, each, space)
        self._mixed = Values.room("mixed waves", WIDTH - 1, n, each, space)
        self._angle, self._passed = (
            space.like(f"{name} of waves", (size, k, waves, n), columns) for name in ("angle", "gradient")
        )
        self._cosine_of_each = self._cosine.full.view(self._angle.shape)
        self._mixed_of_each = self._mixed.full.view(self._rest.shape)
        self._mix = Product(each.work.mT, self._cosine.work, self._mixed.full, space)
        self._weight_gradient = Product(self._cosine.work, self._mixed.work.mT, each.gradient, space)
        self._pass = Product(each.work, self._mixed.work, self._passed.flatten(0, 1), space)

    def forward(self, numbers: Tensor) -> None:
        """Compute the columns of numbers ``(M or 1, k, n)``."""
        self._number.copy_(numbers.unsqueeze(2))
        torch.mul(self._frequency, self._number, out=self._angle).add_(self._phase)
        torch.cos(self._angle, out=self._cosine_of_each)
        self._cosine.cast()
        self._mix()
        torch.add(self._mixed_of_each, self._bias, out=self._rest)

    def backward(self) -> None:
        """Compute the gradients of the parameters from that of the columns."""
        self._mixed_of_each.copy_(self._slope)
        torch.sum(self._mixed_of_each, -1, out=self._bias_gradient)
        self._mixed.cast()
        self._weight_gradient()
        self._pass()
        self._passed.mul_(self._angle.sin_().neg_())
        torch.sum(self._passed, -1, out=self._phase_gradient)
        torch.sum(self._passed.mul_(self._number), -1, out=self._frequency_gradient)


class _Vectors:
    """The vectors of one column of categories, in ``columns`` ``(M, VECTOR, n)``."""

    def __init__(self, weight: Parameter, columns: Tensor, slope: Tensor) -> None:
        self._columns, self._slope = columns.mT, slope.mT
        self._every, self._gradient = (t.flatten(0, 1) for t in (weight.value, weight.gradient))
        size, places, _ = weight.value.shape
        self._first = torch.arange(0, size * places, places, device=columns.device).unsqueeze(-1)
        self._place = self._first

    def forward(self, place: Tensor) -> None:
        """Compute the columns of places ``(M or 1, n)``."""
        self._place = place.long() + self._first
        self._columns.copy_(torch.nn.functional.embedding(self._place, self._every))

    def backward(self) -> None:
        """Compute the gradient of the vectors from that of the columns."""
        found = torch.ops.aten.embedding_dense_backward(self._slope, self._place, len(self._every), -1, False)
        self._gradient.copy_(found)
