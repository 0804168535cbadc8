"""MAPIE and crepes on the predictions and calibration rows of one split, in an environment that has them.

python benchmarks/groups/peers.py FOLDER/split.npz

Reads the arrays that run.py wrote, and writes the bounds of the test rows beside them, as ``split-peers.npz``.
MAPIE's ConditionalSplitConformalRegressor takes groups that overlap, and needs cvxpy (``pip install mapie cvxpy
'numpy<2.4'``: with numpy 2.4 its scaled score fails). It solves a problem for each row, which depends on the groups of
the row alone: it is asked once for each pattern of groups. crepes takes one set of bins: groups of several columns are
every combination.
"""

from __future__ import annotations

import importlib.metadata
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from crepes import ConformalRegressor
from mapie.conditional_conformal_prediction import ConditionalSplitConformalRegressor
from mapie.conformity_scores import ResidualNormalisedScore
from mapie.regression import ConformalizedQuantileRegressor, SplitConformalRegressor
from sklearn.base import BaseEstimator, RegressorMixin

LEVEL = 0.9

Array = np.ndarray


class Known(RegressorMixin, BaseEstimator):
    """A model whose predictions are known: the only column holds the number of the row."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def fit(self, X: Array, y: Array) -> Known:
        """Learn nothing."""
        self.is_fitted_, self.n_features_in_ = True, 1
        return self

    def predict(self, X: Array) -> Array:
        """Return what is known of these rows."""
        found: Array = self.values[np.asarray(X)[:, 0].astype(int)]
        return found


def mapie(given: Mapping[str, Array]) -> dict[str, Array]:
    """Return MAPIE's bounds around the prediction, and around the two quantiles: one promise for all rows."""
    first, second = given["calibration_bands"], given["test_bands"]
    models = [Known(np.concatenate([first[i], second[i]])).fit(first, first) for i in (0, 2, 1)]
    rows = np.arange(first.shape[1] + second.shape[1])[:, None]
    held_out, new = rows[: first.shape[1]], rows[first.shape[1] :]
    width = SplitConformalRegressor(models[2], confidence_level=LEVEL, prefit=True)
    quantiles = ConformalizedQuantileRegressor(models, confidence_level=LEVEL, prefit=True)
    out = {}
    for name, fitted in (("MAPIE|conf-fw|one", width), ("MAPIE|conf-nn|one", quantiles)):
        fitted.conformalize(held_out, given["calibration_y"])
        out[name] = fitted.predict_interval(new)[1][:, :, 0].T
    return out


def mapie_groups(given: Mapping[str, Array]) -> dict[str, Array]:
    """Return MAPIE's bounds for groups, of one width and scaled by the network's widths; infinite if it finds none."""
    bands = np.concatenate([given["calibration_bands"], given["test_bands"]], axis=1)
    n, half = given["calibration_bands"].shape[1], (bands[2] - bands[0]) / 2
    rows, out = np.arange(bands.shape[1])[:, None], {}
    for key in (key for key in given if key.startswith("members|")):
        members = given[key].astype(float)
        _, one_each, pattern = np.unique(members[n:], axis=0, return_index=True, return_inverse=True)
        for method, scale in (("conf-fw", np.ones_like(half)), ("conf-nn", half)):
            score = ResidualNormalisedScore(Known(scale).fit(rows, half), prefit=True)
            fitted = ConditionalSplitConformalRegressor(
                lambda x, members=members: members[x[:, 0].astype(int)],
                Known(bands[1]).fit(rows, half),
                confidence_level=LEVEL,
                conformity_score="absolute" if method == "conf-fw" else score,
            )
            fitted.conformalize(rows[:n], given["calibration_y"])
            asked = n + one_each
            ends = fitted.predict_interval(rows[asked])[1][:, :, 0]
            reach = ((ends[:, 1] - ends[:, 0]) / 2 / scale[asked])[pattern.reshape(-1)] * scale[n:]
            out[f"MAPIE|{method}|{key.split('|')[1]}"] = np.stack([bands[1, n:] - reach, bands[1, n:] + reach])
    return out


def crepes(given: Mapping[str, Array]) -> dict[str, Array]:
    """Return crepes' bounds: of one width, and scaled by the network's widths, for one bin and for bins by groups."""
    (low, point, high), (_, new_point, _) = given["calibration_bands"], given["test_bands"]
    half, new_half = (high - low) / 2, (given["test_bands"][2] - given["test_bands"][0]) / 2
    out = {}
    for method, scale, new_scale in (("conf-fw", None, None), ("conf-nn", half, new_half)):
        for name in ["one", *(key.split("|")[1] for key in given if key.startswith("calibration_bins|"))]:
            bins = None if name == "one" else given[f"calibration_bins|{name}"]
            new_bins = None if name == "one" else given[f"test_bins|{name}"]
            fitted = ConformalRegressor()
            fitted.fit(residuals=given["calibration_y"] - point, sigmas=scale, bins=bins)
            bounds = fitted.predict_int(y_hat=new_point, sigmas=new_scale, bins=new_bins, confidence=LEVEL)
            out[f"crepes|{method}|{name}"] = bounds.T
    return out


def main() -> None:
    """Write the bounds of all peers."""
    path = Path(sys.argv[1])
    given = np.load(path)
    warnings.simplefilter("ignore")
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("mapie", "cvxpy", "crepes")]
    found = mapie(given) | mapie_groups(given) | crepes(given)
    np.savez(path.with_name(f"{path.stem}-peers.npz"), versions=versions, **found)


if __name__ == "__main__":
    main()
