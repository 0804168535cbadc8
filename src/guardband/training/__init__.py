"""Training: many networks as one, by one loop."""

from guardband.training import threads as threads  # loaded with any part: it makes forked processes safe
