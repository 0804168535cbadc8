"""Experiments: the demonstration."""
