"""A promise in use: evidence against it that may be looked at after every row, and what changed."""
