"""What is said of rows and a value: how probable it is that each lies above or below, and which rows to select."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.certificate import Certificate

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Probabilities:
    """The stated probability of each row to lie above or below a value, and what is promised of it.

    ``np.asarray`` returns the numbers.

    Parameters
    ----------
    values : array of shape (n,)
        The probabilities.
    event : str
        What is probable, such as "above 300000".
    certificate : Certificate
        What is promised.
    index : index, default None
        The index of the input, for ``to_pandas``.
    """

    values: Array
    event: str
    certificate: Certificate
    index: Any = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Probabilities of {len(self):,} rows to lie {self.event}: {np.array2string(self.values, threshold=20)}"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.values.astype(dtype or np.float64)

    def to_pandas(self) -> pd.Series[float]:
        """Return the probabilities as a series with the index of the input."""
        import pandas as pd

        return pd.Series(self.values, index=self.index, name=f"probability_{self.event.replace(' ', '_')}")


@dataclass(frozen=True, eq=False)
class Selection:
    """Which rows were selected because they probably lie above or below a value.

    Parameters
    ----------
    mask : array of bool, shape (n,)
        Which rows were selected.
    p_values : array of shape (n,)
        A small p-value speaks against a row that is not as selected for.
    event : str
        What the rows were selected for, such as "above 300000".
    certificate : Certificate
        What is promised of the selected rows.
    """

    mask: NDArray[np.bool_]
    p_values: Array
    event: str
    certificate: Certificate

    @property
    def rows(self) -> NDArray[np.intp]:
        """The positions of the selected rows."""
        return np.flatnonzero(self.mask)

    def __len__(self) -> int:
        return int(self.mask.sum())

    def __repr__(self) -> str:
        return f"Selection of {len(self):,} of {len(self.mask):,} rows that lie {self.event}"


def benjamini_hochberg(p_values: Array, fdr: float) -> NDArray[np.bool_]:
    """Return which p-values are at most fdr r / n, with r the largest number for which r of them are.

    Parameters
    ----------
    p_values : array of shape (n,)
        The p-values.
    fdr : float
        The share of wrong ones among those chosen, on average at most.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.5]), 0.1).tolist()
    [True, True, False]
    """
    n = len(p_values)
    order = np.sort(p_values)
    # what is equal but for rounding counts as equal: the rate is then held up to a factor 1 + 1e-12
    allowed = np.flatnonzero(order * n <= fdr * np.arange(1, n + 1) * (1 + 1e-12))
    return p_values <= order[allowed[-1]] if len(allowed) else np.zeros(n, dtype=bool)
