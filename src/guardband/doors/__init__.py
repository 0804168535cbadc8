"""Doors: a table, a network, or bands from anywhere."""
