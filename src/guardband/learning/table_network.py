"""A fitted table model as one network: encoding, networks, calibration and units in a single forward pass."""

from __future__ import annotations

import json
from typing import Any

import torch
from torch import Tensor, nn

from guardband.bands.predicted import Context
from guardband.calibration.calibrated import Calibrated
from guardband.data.codes import Categories
from guardband.data.encoder import TableEncoder
from guardband.data.grouping import Grouping
from guardband.data.table import read_table
from guardband.data.tree_groups import TreeGroups
from guardband.learning.graph_groups import GraphGroups
from guardband.learning.learned import Learned, read_outputs
from guardband.nn.calibration_arrays import CalibrationArrays, stacked_ends
from guardband.training.members import write_state


class TableNetwork(nn.Module):
    """Rows of numbers in, ``(n, columns)`` in float64, intervals out, ``(n, 3)`` or ``(n, 3, L)``, in the units of y.

    A number is itself, a date the days since 1970. A category is its index in ``categories[column]``, -1 if it is not
    among them. A missing value is NaN. ``rows`` makes such a matrix of a table.
    """

    def __init__(
        self,
        learned: Learned,
        calibrated: Calibrated,
        names: tuple[str, ...],
        grouping: Grouping | TreeGroups | None = None,
    ) -> None:
        super().__init__()
        self.certificate = calibrated.certificate
        self._rule, self._heads, self._target = calibrated.rule, learned.heads, learned.target
        self._encoder, self.names = learned.encoder, names
        heads = learned.heads * learned.copies
        networks = [learned.architecture.build(learned.in_features, head, 0, torch.device("cpu")) for head in heads]
        write_state(networks, {name: t.cpu() for name, t in learned.members.snapshot().items()})
        self.networks = nn.ModuleList(networks)
        self.calibration = CalibrationArrays(calibrated.found.arrays)
        self._groups = None if grouping is None else GraphGroups(grouping, names, self.categories)
        self.eval().requires_grad_(False)

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """The categories of each column that has some, in order."""
        codes = self._encoder.codes if isinstance(self._encoder, TableEncoder) else ()
        pairs = zip(self.names, codes, strict=False)
        return {name: code.categories for name, code in pairs if isinstance(code, Categories)}

    def rows(self, X: Any) -> Tensor:
        """Return a table as the matrix that this network takes."""
        return torch.from_numpy(self._encoder.rows(read_table(X)))

    def forward(self, x: Tensor) -> Tensor:
        """Return the intervals."""
        encoded = self._encoder.encode_rows(x, torch)
        outputs = torch.stack([network(encoded) for network in self.networks]).double()
        predicted = read_outputs(self._heads, outputs, self._target, self._rule.each_copy, torch)
        context = Context() if self._groups is None else Context(group=self._groups.of(x))
        ends = self._rule.ends(predicted, context, self.calibration.arrays(), torch)
        out = stacked_ends(self._target.to_units(*ends, torch))
        return out[:, :, 0] if self._rule.levels.scalar else out

    def described(self) -> str:
        """Return columns and categories as JSON, for those who make the matrix elsewhere."""
        return json.dumps({"columns": self.names, "categories": self.categories})
