"""How a table's model was made, in words for its page."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from guardband.doors.fitted import Fitted
    from guardband.doors.table import IntervalRegressor
    from guardband.doors.table_model import TableModel


def made_by(model: TableModel) -> list[tuple[str, str]]:
    """Return rows, seed and networks by name."""
    fitted = model.fitted_
    learned, seed = fitted.learned, fitted.params["random_state"]
    prints = blake2b(digest_size=8)
    for rows in (fitted.training_prints, fitted.held_out_prints):
        prints.update(np.sort(rows).tobytes())
    return [
        ("Training rows", f"{len(fitted.training_prints):,}"),
        ("Columns", f"{model.n_features_in_:,}"),
        ("Fingerprint of the rows given to fit", prints.hexdigest()),
        ("Seed", str(seed) if isinstance(seed, int | np.integer) else "none given"),
        ("Networks", f"{len(learned.epochs)}"),
        ("Epochs", _span(learned.epochs)),
        ("Chosen on the training rows", learned.choices or "nothing"),
        ("Device", f"{learned.device}, torch {torch.__version__}, numpy {np.__version__}"),
    ]


def settings_of(fitted: Fitted, default: IntervalRegressor) -> list[tuple[str, str]]:
    """Return the arguments that were given, other than by default."""
    defaults = default.get_params(deep=False)
    return [
        (name, value if isinstance(value, str) else getattr(value, "__name__", repr(value)))
        for name, value in fitted.params.items()
        if name not in ("verbose", "device") and repr(value) != repr(defaults[name])
    ]


def _span(values: tuple[int, ...]) -> str:
    return f"{min(values)}" if min(values) == max(values) else f"{min(values)} to {max(values)}"
