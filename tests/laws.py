"""Limits for statistical tests, from exact laws.

A thousandth of false alarms over all of them, shared by about a hundred tests: each is judged at 1e-5. Seeds
are fixed, so a test either passes always or never.
"""

import numpy as np
from scipy.stats import betabinom

SIGNIFICANCE = 1e-3 / 100


def total_count_band(significance: float, replications: int, n_test: int, k: int, n: int) -> tuple[int, int]:
    """Return the central band of the sum of independent BetaBinomial(n_test; k, n + 1 - k) counts."""
    one = betabinom.pmf(np.arange(n_test + 1), n_test, k, n + 1 - k)
    size = replications * n_test + 1
    spectrum = np.fft.rfft(one, size) ** replications
    cumulative = np.cumsum(np.clip(np.fft.irfft(spectrum, size), 0, None))
    low, high = np.searchsorted(cumulative, [significance / 2, 1 - significance / 2])
    return int(low), int(high)
