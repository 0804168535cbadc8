"""Bands: levels, ranks, certificates and intervals."""
