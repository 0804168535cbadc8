"""Data: tables, their encoding, the target, and the paper's artificial data."""
