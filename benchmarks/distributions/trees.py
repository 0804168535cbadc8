"""One peer on one split: trained on D1, 99 quantiles for the rows of D2 and D3; in the peers' own environment.

python trees.py PEER TABLE SPLIT FILE (needs `GUARDBAND_DATA`): FILE gets the quantiles, the setting that was chosen and
the seconds. Calibration comes later, and is the same for all peers.

A fifth of D1 chooses: how many trees boosting needs (it stops early), its learning rate (CatBoost's on small tables
alone), how deep NGBoost's trees are, how small a forest's leaves are and how many columns its splits see. The model is
then fitted again, on all of D1.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scores import LEVELS, crps_of_quantiles

sys.path.append(str(Path(__file__).parents[1] / "sharpness"))

from peers import _codes, _with_categories
from tables import split, table

SEED = 0
MOST_TREES, PATIENCE = 1_000, 30
RATES = (0.1, 0.03)
SMALL = 5_000
"""From so many rows on, 99 quantiles at a slow rate would take CatBoost hours."""

Predictor = Callable[[pd.DataFrame], np.ndarray]
"""Gives the quantiles of rows, ``(n, 99)``."""
Fitter = Callable[[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray], tuple[Predictor, str]]
"""Takes the rows that train and those that choose; returns the model fitted on both, and what was chosen."""


def main() -> None:
    """Run the peer that the command line names."""
    warnings.filterwarnings("ignore")
    name, source, repetition, path = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    x, y = table(source)
    d1, d2, d3 = split(len(y), repetition)
    frames = _with_categories(x.iloc[d1], x.iloc[d2], x.iloc[d3])
    order = np.random.default_rng([2024, repetition]).permutation(len(d1))
    train, choose = order[len(d1) // 5 :], order[: len(d1) // 5]
    x1, y1 = frames[0], y[d1]
    started = time.perf_counter()
    predict, chosen = PEERS[name](x1.iloc[train], y1[train], x1.iloc[choose], y1[choose])
    seconds = time.perf_counter() - started
    calibration, test = (np.sort(predict(frame), axis=1) for frame in frames[1:])
    draft = path.with_suffix(".draft.npz")
    np.savez(draft, calibration=calibration, test=test, seconds=seconds, chosen=chosen)
    draft.rename(path)


def _catboost(x1: pd.DataFrame, y1: np.ndarray, x0: pd.DataFrame, y0: np.ndarray) -> tuple[Predictor, str]:
    from catboost import CatBoostRegressor

    def read(x: pd.DataFrame) -> pd.DataFrame:
        return x.astype(dict.fromkeys(text, str))

    def new(rate: float, trees: int) -> Any:
        fixed = {"random_seed": SEED, "verbose": False, "allow_writing_files": False, "thread_count": 1}
        return CatBoostRegressor(loss_function=loss, cat_features=text, learning_rate=rate, iterations=trees, **fixed)

    text = list(x1.select_dtypes("category").columns)
    loss = f"MultiQuantile:alpha={','.join(map(str, LEVELS))}"
    found = []
    for rate in RATES if len(y1) < SMALL else RATES[:1]:
        first = new(rate, MOST_TREES)
        first.fit(read(x1), y1, eval_set=(read(x0), y0), early_stopping_rounds=PATIENCE)
        score = crps_of_quantiles(y0, np.sort(first.predict(read(x0)), axis=1)).mean()
        found.append((score, rate, first.get_best_iteration() + 1))
    _, rate, trees = min(found)
    model = new(rate, trees).fit(read(pd.concat([x1, x0])), np.concatenate([y1, y0]))
    return lambda x: np.asarray(model.predict(read(x))), f"rate {rate}, {trees} trees"


def _ngboost(law: str) -> Fitter:
    def fit(x1: pd.DataFrame, y1: np.ndarray, x0: pd.DataFrame, y0: np.ndarray) -> tuple[Predictor, str]:
        import ngboost.distns
        from ngboost import NGBRegressor
        from sklearn.tree import DecisionTreeRegressor

        def new(rate: float, depth: int, trees: int) -> Any:
            base = DecisionTreeRegressor(criterion="friedman_mse", max_depth=depth, random_state=SEED)
            fixed = {"random_state": SEED, "verbose": False}
            dist = getattr(ngboost.distns, law)
            return NGBRegressor(dist, Base=base, n_estimators=trees, learning_rate=rate, **fixed)

        def quantiles(model: Any, x: np.ndarray, trees: int) -> np.ndarray:
            law = model.pred_dist(x, max_iter=trees)
            return np.stack([law.ppf(level) for level in LEVELS], axis=1)

        n1, n0 = (_codes(x).to_numpy() for x in (x1, x0))
        found = []
        for rate, depth in [(rate, depth) for rate in RATES for depth in (3, 6)]:
            model = new(rate, depth, MOST_TREES)
            model.fit(n1, y1, X_val=n0, Y_val=y0, early_stopping_rounds=PATIENCE)
            trees = int(model.best_val_loss_itr) + 1
            found.append((crps_of_quantiles(y0, quantiles(model, n0, trees)).mean(), rate, depth, trees))
        _, rate, depth, trees = min(found)
        model = new(rate, depth, trees).fit(np.concatenate([n1, n0]), np.concatenate([y1, y0]))
        return lambda x: quantiles(model, _codes(x).to_numpy(), trees), f"rate {rate}, depth {depth}, {trees} trees"

    return fit


def _forest(x1: pd.DataFrame, y1: np.ndarray, x0: pd.DataFrame, y0: np.ndarray) -> tuple[Predictor, str]:
    from quantile_forest import RandomForestQuantileRegressor

    def fitted(leaf: int, share: float, x: pd.DataFrame, y: np.ndarray) -> Predictor:
        model = RandomForestQuantileRegressor(
            n_estimators=200, min_samples_leaf=leaf, max_features=share, n_jobs=1, random_state=SEED
        ).fit(_codes(x), y)
        return lambda rows: np.asarray(model.predict(_codes(rows), quantiles=list(LEVELS)))

    settings = [(leaf, share) for leaf in (1, 5) for share in (1.0, 0.5)]
    scores = [crps_of_quantiles(y0, fitted(*setting, x1, y1)(x0)).mean() for setting in settings]
    leaf, share = settings[int(np.argmin(scores))]
    model = fitted(leaf, share, pd.concat([x1, x0]), np.concatenate([y1, y0]))
    return model, f"leaves of at least {leaf}, {share:g} of the columns"


PEERS: dict[str, Fitter] = {
    "quantile-forest": _forest,
    "ngboost-normal": _ngboost("Normal"),
    "ngboost-lognormal": _ngboost("LogNormal"),
    "catboost": _catboost,
}

if __name__ == "__main__":
    main()
