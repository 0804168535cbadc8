"""What a calibrated network carries: the arrays of its calibration as buffers, for ``state_dict`` and ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class CalibrationArrays(nn.Module):
    """Named arrays as buffers."""

    def __init__(self, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        super().__init__()
        for name, array in arrays.items():
            self.register_buffer(name, torch.from_numpy(array))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> CalibrationArrays:
        """Follow the network to another device, but keep the precision: a rounded threshold is another promise."""
        before = self.arrays()
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, after in self.arrays().items():
            if after.dtype != before[name].dtype:
                self.register_buffer(name, before[name].to(after.device))
        return self

    def arrays(self) -> dict[str, Tensor]:
        """Return the arrays by name."""
        return dict(self.named_buffers())


def stacked_ends(ends: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Return lower, point and upper as one tensor, ``(n, L), (n,), (n, L) -> (n, 3, L)``.

    Of q targets it is ``(n, q, L), (n, q), (n, q, L) -> (n, q, 3, L)``.
    """
    lower, point, upper = ends
    return torch.stack([lower, point[..., None].expand_as(lower), upper], dim=-2)
