"""Limits for statistical tests, from exact laws.

A thousandth of false alarms over all of them, shared by about a hundred tests: each is judged at 1e-5. Seeds
are fixed, so a test either passes always or never.
"""

from guardband.experiments.reproduce.claims import count_band

SIGNIFICANCE = 1e-3 / 100


def total_count_band(significance: float, replications: int, n_test: int, k: int, n: int) -> tuple[int, int]:
    """Return the central band of the sum of independent BetaBinomial(n_test; k, n + 1 - k) counts."""
    return count_band(replications, n_test, k, n, 1 - significance)
