"""Exponential backoff: delays that grow with each failure, up to a bound, with jitter."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

EXPONENT_MAX = 64  # beyond, every delay is the longest


class Backoff(Struct, frozen=True):
    """Delays that grow: `first_s`, then `factor` times as long each time, at most `longest_s`."""

    first_s: float = 0.005
    longest_s: float = 1000.0
    factor: float = 2.0
    jitter: float = 0.0  # a delay is up to this part longer, so that clients spread out

    def delay_s(self, failures: int, random: Callable[[], float] | None = None) -> float:
        """Return the delay after a number of failures in a row (1 or more).

        `random` returns numbers from 0 to 1; without it there is no jitter.
        """
        exponent = min(max(failures - 1, 0), EXPONENT_MAX)
        delay = min(self.first_s * self.factor**exponent, self.longest_s)
        return delay * (1 + self.jitter * random()) if random is not None else delay
