"""Methods: one file each, found by name."""
