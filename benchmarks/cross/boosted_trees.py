"""MAPIE's intervals over boosted trees on one split of the rows, by cv+ and by a split; in an environment of its own.

python boosted_trees.py FOLDER (needs mapie, lightgbm, catboost and pyarrow): FOLDER holds train.parquet and
test.parquet, whose last column is the response. bands.npz is written there: lower, point and upper of each method, the
trees that were chosen and the seconds.

The trees with the least absolute error in 5-fold cross-validation are taken. The quarter of the rows that the split
calibrates with has no part in that choice.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mapie.regression import CrossConformalRegressor, SplitConformalRegressor
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import cross_val_score

sys.path.append(str(Path(__file__).parents[1] / "sharpness"))

from peers import _codes, _parts, _with_categories

SEED, LEVEL, FOLDS, CALIBRATION_SIZE = 0, 0.9, 8, 0.25


class Trees(RegressorMixin, BaseEstimator):
    """Boosted trees of one kind; categories are columns of whole numbers, named by their place."""

    def __init__(self, kind: str = "catboost", text: tuple[int, ...] = ()):
        self.kind = kind
        self.text = text

    def fit(self, X: Any, y: Any) -> Trees:
        """Fit the trees."""
        self.model_ = KINDS[self.kind](list(self.text))
        self.model_.fit(self._read(X), np.asarray(y))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions."""
        return np.asarray(self.model_.predict(self._read(X)))

    def _read(self, X: Any) -> Any:
        x = np.asarray(X, dtype=np.float64)
        if self.kind != "catboost":
            return x
        return pd.DataFrame(x).astype(dict.fromkeys(self.text, int))


def _catboost(text: list[int]) -> Any:
    from catboost import CatBoostRegressor

    fixed = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
    return CatBoostRegressor(cat_features=text, random_seed=SEED, **fixed)


def _lightgbm(text: list[int], **more: Any) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(random_state=SEED, n_jobs=1, verbose=-1, categorical_feature=text, **more)


def _hist(text: list[int], **more: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(categorical_features=text or None, random_state=SEED, **more)


KINDS = {
    "catboost": _catboost,
    "lightgbm": _lightgbm,
    "lightgbm, small": lambda text: _lightgbm(
        text, num_leaves=7, learning_rate=0.05, n_estimators=200, min_child_samples=10
    ),
    "hist-gradient-boosting": _hist,
    "hist-gradient-boosting, small": lambda text: _hist(
        text, max_leaf_nodes=7, learning_rate=0.05, max_iter=200, min_samples_leaf=10
    ),
}


def main() -> None:
    """Choose the trees and run both methods."""
    warnings.filterwarnings("ignore")
    folder = Path(sys.argv[1])
    (x, y), (x3, _) = (_parts(pd.read_parquet(folder / f"{part}.parquet")) for part in ("train", "test"))
    text = tuple(i for i, c in enumerate(x.columns) if not pd.api.types.is_numeric_dtype(x[c]))
    x, x3 = (_codes(frame) for frame in _with_categories(x, x3))
    order = np.random.default_rng(SEED).permutation(len(y))
    n2 = round(CALIBRATION_SIZE * len(y))
    d1, d2 = order[n2:], order[:n2]
    errors = {kind: -_error(Trees(kind, text), x.iloc[d1], y[d1]) for kind in KINDS}
    chosen = min(errors, key=errors.__getitem__)
    out: dict[str, Any] = {"chosen": chosen}
    started = time.perf_counter()
    cross = CrossConformalRegressor(Trees(chosen, text), confidence_level=LEVEL, method="plus", cv=FOLDS)
    cross.fit_conformalize(x, y)
    out |= _bands("mapie-cv+", cross, x3, time.perf_counter() - started)
    started = time.perf_counter()
    split = SplitConformalRegressor(Trees(chosen, text), confidence_level=LEVEL, prefit=False)
    split.fit(x.iloc[d1], y[d1]).conformalize(x.iloc[d2], y[d2])
    out |= _bands("mapie-split", split, x3, time.perf_counter() - started)
    np.savez(folder / "bands.npz", **out)


def _error(model: Trees, x: pd.DataFrame, y: np.ndarray) -> float:
    return float(cross_val_score(model, x, y, scoring="neg_mean_absolute_error", cv=5).mean())


def _bands(name: str, model: Any, x: pd.DataFrame, seconds: float) -> dict[str, Any]:
    point, ends = model.predict_interval(x)
    return {name: np.stack([ends[:, 0, 0], point, ends[:, 1, 0]]), f"{name} seconds": seconds}


if __name__ == "__main__":
    main()
