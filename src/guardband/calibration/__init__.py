"""Calibration: rules that turn held-out bands into intervals with a guarantee."""
