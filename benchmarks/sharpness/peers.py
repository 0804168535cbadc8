"""One peer on one split: trains on D1, calibrates on D2, gives 90% intervals for D3; in the peers' own environment.

python peers.py PEER FOLDER DEVICE: FOLDER holds d1.parquet, d2.parquet and d3.parquet, whose last column is the
response; bands.npz is written there, with lower, point, upper and the seconds of fit (with calibration) and predict.

Each library is used as its documentation says, with its defaults but for the loss.
"""

from __future__ import annotations

import importlib
import math
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

LEVELS = (0.05, 0.5, 0.95)
ALPHA = 0.1
SEED = 0

Predictor = Callable[[pd.DataFrame], np.ndarray]
"""Gives the three quantiles of rows, ``(n, 3)``."""


def main() -> None:
    """Run the peer that the command line names."""
    warnings.filterwarnings("ignore")
    name, folder, device = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    (x1, y1), (x2, y2), (x3, _) = (_parts(pd.read_parquet(folder / f"{part}.parquet")) for part in ("d1", "d2", "d3"))
    x1, x2, x3 = _with_categories(x1, x2, x3)
    if name in REFUSE_MISSING:
        x1, x2, x3 = _filled(x1, x2, x3)
    importlib.import_module(MODULES[name])  # before the clock starts, as guardband is
    started = time.perf_counter()
    if name in MAPIE:
        predict = _mapie(MAPIE[name], x1, y1, x2, y2)
    elif name in NETWORKS:
        predict = _cqr(_pytabkit(NETWORKS[name], device, x1, y1), x2, y2)
    else:
        predict = _cqr(PEERS[name](x1, y1), x2, y2)
    fitted = time.perf_counter()
    bands = predict(x3)
    predicted = time.perf_counter()
    lower, point, upper = bands.T
    seconds = np.array([fitted - started, predicted - fitted])
    np.savez(folder / "bands.npz", lower=lower, point=point, upper=upper, seconds=seconds)


def _parts(frame: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    return frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy()


def _with_categories(*frames: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the frames with text columns as categories of D1; what D1 did not hold is missing."""
    text = frames[0].select_dtypes(exclude="number").columns
    kinds = {c: pd.CategoricalDtype(sorted(frames[0][c].unique())) for c in text}
    return [frame.astype(kinds) for frame in frames]


def _filled(*frames: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the frames with the median of D1 for missing numbers, and a column that tells where."""
    first = frames[0].select_dtypes("number")
    medians, gaps = first.median().fillna(0), [c for c in first if any(frame[c].isna().any() for frame in frames)]
    told = [{f"{c} is missing": frame[c].isna().astype(float) for c in gaps} for frame in frames]
    return [frame.fillna(medians).assign(**own) for frame, own in zip(frames, told, strict=True)]


def _codes(x: pd.DataFrame) -> pd.DataFrame:
    """Return categories as numbers."""
    text = x.select_dtypes("category").columns
    return x.assign(**{c: x[c].cat.codes.astype(float) for c in text})


def _cqr(quantiles: Predictor, x2: pd.DataFrame, y2: np.ndarray) -> Predictor:
    """Return split conformal quantile regression: one offset for both ends."""
    low, _, high = quantiles(x2).T
    scores = np.sort(np.maximum(low - y2, y2 - high))
    offset = scores[math.ceil((1 - ALPHA) * (len(y2) + 1) - 1e-9) - 1]

    def predict(x: pd.DataFrame) -> np.ndarray:
        low, middle, high = quantiles(x).T
        return np.stack([low - offset, middle, high + offset], axis=1)

    return predict


# ------------------------------------------------------------------------------------------------------------- trees


def _mapie(make: Callable[[float, list[str]], Any], x1: Any, y1: Any, x2: Any, y2: Any) -> Predictor:
    """Return MAPIE's conformalized quantile regression over three models that are fitted already."""
    from mapie.regression import ConformalizedQuantileRegressor

    text = list(x1.select_dtypes("category").columns)
    low, high, middle = (make(q, text).fit(_codes(x1), y1) for q in (LEVELS[0], LEVELS[2], LEVELS[1]))
    mapie = ConformalizedQuantileRegressor([low, high, middle], confidence_level=1 - ALPHA, prefit=True)
    mapie.conformalize(_codes(x2), y2)

    def predict(x: pd.DataFrame) -> np.ndarray:
        point, ends = mapie.predict_interval(_codes(x), symmetric_correction=True)
        return np.stack([ends[:, 0, 0], point, ends[:, 1, 0]], axis=1)

    return predict


def _lightgbm(q: float, text: list[str]) -> Any:
    import lightgbm

    class Model(lightgbm.LGBMRegressor):
        def fit(self, x: Any, y: Any, **kwargs: Any) -> Any:
            return super().fit(x, y, categorical_feature=text or "auto", **kwargs)

    return Model(objective="quantile", alpha=q, verbose=-1, random_state=SEED, n_jobs=-1)


def _hist_gradient_boosting(q: float, text: list[str]) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    small = text or None
    return HistGradientBoostingRegressor(loss="quantile", quantile=q, categorical_features=small, random_state=SEED)


def _catboost(x1: pd.DataFrame, y1: np.ndarray) -> Predictor:
    from catboost import CatBoostRegressor

    def read(x: pd.DataFrame) -> pd.DataFrame:
        return x.assign(**{c: x[c].astype(object).fillna("unknown") for c in x.select_dtypes("category").columns})

    loss = f"MultiQuantile:alpha={','.join(map(str, LEVELS))}"
    text = list(x1.select_dtypes("category").columns)
    model = CatBoostRegressor(loss_function=loss, cat_features=text, random_seed=SEED, verbose=False)
    model.fit(read(x1), y1)
    return lambda x: np.asarray(model.predict(read(x)))


def _quantile_forest(x1: pd.DataFrame, y1: np.ndarray) -> Predictor:
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(n_estimators=200, n_jobs=-1, random_state=SEED)
    model.fit(_codes(x1), y1)
    return lambda x: np.asarray(model.predict(_codes(x), quantiles=list(LEVELS)))


def _ngboost(x1: pd.DataFrame, y1: np.ndarray) -> Predictor:
    from ngboost import NGBRegressor

    model = NGBRegressor(verbose=False, random_state=SEED).fit(_codes(x1).to_numpy(), y1)
    return lambda x: np.stack([model.pred_dist(_codes(x).to_numpy()).ppf(q) for q in LEVELS], axis=1)


# ---------------------------------------------------------------------------------------------------------- networks


def _pytabkit(kind: str, device: str, x1: pd.DataFrame, y1: np.ndarray) -> Predictor:
    import pytabkit

    metric = f"multi_pinball({','.join(map(str, LEVELS))})"
    make = getattr(pytabkit, kind)
    model = make(device=device, random_state=SEED, train_metric_name=metric, val_metric_name=metric)
    model.fit(x1, y1)
    return lambda x: np.sort(np.asarray(model.predict(x)), axis=1)


MAPIE = {"lightgbm": _lightgbm, "hist-gradient-boosting": _hist_gradient_boosting}
PEERS = {"catboost": _catboost, "quantile-forest": _quantile_forest, "ngboost": _ngboost}
NETWORKS = {"realmlp": "RealMLP_TD_Regressor", "tabm": "TabM_D_Regressor"}
REFUSE_MISSING = (*NETWORKS, "quantile-forest")
MODULES = dict.fromkeys(NETWORKS, "pytabkit") | {
    "lightgbm": "mapie.regression",
    "hist-gradient-boosting": "mapie.regression",
    "catboost": "catboost",
    "quantile-forest": "quantile_forest",
    "ngboost": "ngboost",
}

if __name__ == "__main__":
    main()
