"""A fitted table model as one network: encoding, networks, calibration and units in a single forward pass."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from guardband.bands.predicted import Context
from guardband.calibration.calibrated import Calibrated
from guardband.data.codes import (
    FURTHEST,
    MOST_RANGES,
    CategoryCode,
    Code,
    DateCode,
    NumberCode,
    PlaceCode,
    RobustCode,
    turned,
)
from guardband.data.encoder import TableEncoder
from guardband.data.table import Table, categories_from, numbers_from, read_table
from guardband.learning.learned import Learned, read_outputs
from guardband.nn.calibration_arrays import CalibrationArrays, stacked_ends
from guardband.training.members import write_state


class TableNetwork(nn.Module):
    """Rows of numbers in, ``(n, columns)`` in float64, intervals out, ``(n, 3)`` or ``(n, 3, L)``, in the units of y.

    A number is itself, a date the days since 1970. A category is its place in ``categories[column]``, -1 if it is not
    among them. All are NaN where they are missing: ``rows`` makes such a matrix of a table.
    """

    def __init__(self, learned: Learned, calibrated: Calibrated, names: tuple[str, ...]) -> None:
        super().__init__()
        self.certificate = calibrated.certificate
        self._rule, self._heads, self._target = calibrated.rule, learned.heads, learned.target
        self._encoder, self.names = learned.encoder, names
        heads = learned.heads * learned.copies
        networks = [learned.architecture.build(learned.in_features, head, 0, torch.device("cpu")) for head in heads]
        write_state(networks, {name: t.cpu() for name, t in learned.members.snapshot().items()})
        self.networks = nn.ModuleList(networks)
        self.calibration = CalibrationArrays(calibrated.found.arrays)
        self.eval().requires_grad_(False)

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """The categories of each column that has some, in order."""
        codes = self._encoder.codes if isinstance(self._encoder, TableEncoder) else ()
        pairs = zip(self.names, codes, strict=False)
        return {name: code.categories for name, code in pairs if isinstance(code, CategoryCode | PlaceCode)}

    def rows(self, X: Any) -> Tensor:
        """Return a table as the matrix that this network takes."""
        table: Table = read_table(X)
        codes = self._encoder.codes if isinstance(self._encoder, TableEncoder) else (None,) * len(table.columns)
        columns: list[NDArray[np.float64]] = []
        for code, column in zip(codes, table.columns, strict=True):
            if isinstance(code, CategoryCode | PlaceCode):
                place: dict[str | None, float] = {name: float(i) for i, name in enumerate(code.categories)}
                columns.append(np.array([place.get(v, np.nan if v is None else -1.0) for v in categories_from(column)]))
            else:
                unit = "date" if isinstance(code, DateCode) else "number" if code is None else code.unit
                columns.append(numbers_from(column, unit))
        return torch.from_numpy(np.stack(columns, axis=1))

    def forward(self, x: Tensor) -> Tensor:
        """Return the intervals."""
        encoded = self._encoded(x)
        outputs = torch.stack([network(encoded) for network in self.networks]).double()
        predicted = read_outputs(self._heads, outputs, self._target, self._rule.each_copy, torch)
        out = stacked_ends(self._rule.ends(predicted, Context(), self.calibration.arrays(), torch))
        if self._target.transform == "log":
            out = out.exp()
        if self._target.y_min is not None or self._target.y_max is not None:
            out = out.clamp(self._target.y_min, self._target.y_max)
        return out[:, :, 0] if self._rule.levels.scalar else out

    def described(self) -> str:
        """Return columns and categories as JSON, for those who make the matrix elsewhere."""
        return json.dumps({"columns": self.names, "categories": self.categories})

    def _encoded(self, x: Tensor) -> Tensor:
        if not isinstance(self._encoder, TableEncoder):
            return x.float()
        parts = [_code(code, x[:, i]) for i, code in enumerate(self._encoder.codes)]
        return torch.cat(self._encoder.in_order(parts), dim=1).float()


def _code(code: Code, values: Tensor) -> Tensor:
    """Return a column as the encoder does, ``(n,) -> (n, width)``."""
    missing = values.isnan()
    if isinstance(code, DateCode):
        made = [_code(part, turned(values, turn, torch)) for turn, part in code.parts]
        return torch.cat([part[:, :1] for part in made] + [made[0][:, 1:]], dim=1)
    if isinstance(code, PlaceCode):
        return torch.where(missing, code.size - 1, values + 1)[:, None]
    if isinstance(code, NumberCode):
        filled = torch.where(missing, code.fill, values)
        standard = ((filled - code.center) / code.scale).clamp(-FURTHEST, FURTHEST)
        if isinstance(code, RobustCode):
            standard = standard / (1 + (standard / MOST_RANGES) ** 2).sqrt()
        return torch.stack([standard, missing.double()] if code.marks_missing else [standard], dim=1)
    count = len(code.categories)
    known = values[:, None] == torch.arange(count, dtype=values.dtype, device=values.device)
    parts = [known]
    if code.has_rare:
        parts.append((~known.any(dim=1) & ~missing)[:, None])
    if code.marks_missing:
        parts.append(missing[:, None])
    return torch.cat(parts, dim=1).double()
