"""When work must end, by a clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Deadline:
    """A moment by which work must end, never unless it is given; ``clock`` counts seconds."""

    ends: float = math.inf
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """Return the moment so many seconds from now."""
        return cls(clock() + seconds, clock)

    @property
    def is_set(self) -> bool:
        """Whether work must end at all."""
        return self.ends < math.inf

    @property
    def left(self) -> float:
        """How many seconds are left, none if the moment has passed."""
        return max(0.0, self.ends - self.clock()) if self.is_set else math.inf

    @property
    def is_over(self) -> bool:
        """Whether the moment has come."""
        return self.left == 0

    def sooner(self, seconds: float) -> Deadline:
        """Return a moment so many seconds earlier."""
        return replace(self, ends=self.ends - seconds)

    def share(self, share: float) -> Deadline:
        """Return the moment at which only this share of what is left will have passed."""
        return replace(self, ends=self.clock() + share * self.left) if self.is_set else self


NEVER = Deadline()
