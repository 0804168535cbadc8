"""Training: many networks as one, by one loop."""
