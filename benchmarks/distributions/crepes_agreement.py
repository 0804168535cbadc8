"""Agreement with crepes where it computes the same: quantiles, probabilities and the mean CRPS of a predictive system.

With difficulty estimates the CRPS of crepes 0.9.1 multiplies the piece that holds the true value by the estimate once
more than it should (``get_crps``). That piece is divided by it here, and the difference as crepes gives it is printed
too. For quantiles, its levels are moved by a thousandth of a rank, because it takes ceilings of rounded numbers.

    pip install crepes
    python benchmarks/distributions/crepes_agreement.py
"""

from __future__ import annotations

from unittest import mock

import crepes.base
import numpy as np
from crepes import ConformalPredictiveSystem

import guardband as gb

AS_IS = crepes.base.get_crps


def mended(index, lower_errors, higher_errors, widths, sigma, cpd, y):
    """Return what ``get_crps`` returns, with the piece about y in its own unit."""
    score = AS_IS(index, lower_errors, higher_errors, widths, sigma, cpd, y)
    if index in (-1, len(cpd) - 1):
        return score
    piece = lower_errors[index] * (y - cpd[index]) + higher_errors[index] * (cpd[index + 1] - y)
    return score - piece * sigma + piece


def main() -> None:
    """Print the figures."""
    rng = np.random.default_rng(0)
    worst = dict.fromkeys(["quantiles", "probabilities", "crps", "crps, scaled, mended", "crps, scaled, as it is"], 0.0)

    def note(what, difference):
        worst[what] = max(worst[what], float(np.max(np.abs(difference))))

    for n in (19, 99, 500, 999):
        point, scale = rng.normal(size=n), 0.5 + rng.random(n)
        y = point + scale * rng.gumbel(size=n)
        new, new_scale = rng.normal(size=200), 0.5 + rng.random(200)
        truth = new + new_scale * rng.gumbel(size=200)
        ranks = (1, (n + 1) // 3, n)
        for is_scaled in (False, True):
            residuals = (y - point) / (scale if is_scaled else 1)
            sigmas, new_sigmas = (scale, new_scale) if is_scaled else (None, None)
            theirs = ConformalPredictiveSystem().fit(residuals=y - point, sigmas=sigmas, seed=0)
            brought = ((point, scale), (new, new_scale)) if is_scaled else (point, new)
            ours = gb.DistributionCalibrator().fit(brought[0], y).transform(brought[1])
            assert np.array_equal(ours.places, np.sort(residuals))
            percents = [100 * (k - 1e-3) / (n + 1) for k in ranks]
            values = theirs.predict_percentiles(new, new_sigmas, higher_percentiles=percents)
            note("quantiles", values - ours.quantile([k / (n + 1) - 1e-9 for k in ranks]))
            p_values = theirs.predict_p(new, truth, new_sigmas, smoothing=False)
            note("probabilities", p_values - (ours.cdf(truth) * (n + 1) + 1) / (n + 1))
            score = theirs.evaluate(new, truth, new_sigmas, metrics=["CRPS"])["CRPS"]
            own = gb.metrics.crps(truth, ours)
            if not is_scaled:
                note("crps", score - own)
                continue
            note("crps, scaled, as it is", score - own)
            with mock.patch.object(crepes.base, "get_crps", mended):
                note("crps, scaled, mended", theirs.evaluate(new, truth, new_sigmas, metrics=["CRPS"])["CRPS"] - own)
    for what, difference in worst.items():
        print(f"{what:24s} largest difference {difference:.2e}")


if __name__ == "__main__":
    main()
