"""Data: tables, their encoding, the response, and the paper's artificial data."""
