"""Samples of a figure over time, and how much it grows after it has warmed up.

The growth is the median slope of all pairs of samples, times their number: one sample that is far
off, as garbage collection and caches have them, does not change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import NamedTuple

WARM = 1 / 3  # of the samples come before it has warmed up
SAMPLES_MIN = 4


class Bound(NamedTuple):
    """How much a figure may grow during the samples: a share of it, but at least an amount."""

    share: float
    least: float

    def of(self, level: float) -> float:
        """Return the bound for a figure at a level."""
        return max(self.share * level, self.least)


BOUNDS = {
    "objects": Bound(0.08, 8_000),  # of Python; some records of the last thousands are kept
    "MB": Bound(0.15, 16),
    "tasks": Bound(0.0, 4),
    "descriptors": Bound(0.0, 6),
    "threads": Bound(0.0, 4),
    "keys": Bound(0.02, 8),  # in the store
    "KB": Bound(0.15, 6_000),  # of files; a write-ahead log has some megabytes
    "files": Bound(0.02, 12),
}


class Growths:
    """Samples of several figures; the last word of a name is its unit, as in `server MB`."""

    def __init__(self) -> None:
        self._samples: dict[str, list[float]] = {}

    def add(self, sample: Mapping[str, float]) -> None:
        """Take one sample of each figure."""
        for name, value in sample.items():
            self._samples.setdefault(name, []).append(value)

    def faults(self) -> list[str]:
        """Return which figures grew too much."""
        found = []
        for name, samples in self._samples.items():
            grown, level = growth(samples)
            bound = BOUNDS[name.split()[-1]].of(level)
            if grown > bound:
                text = ", ".join(f"{value:g}" for value in samples)
                found.append(f"{name} grew by {grown:.1f}, and not at most {bound:.1f}: {text}")
        return found

    def figures(self) -> dict[str, str]:
        """Return the first, the last and the growth of each figure."""
        return {
            name: f"{samples[0]:,.0f} … {samples[-1]:,.0f}, growth {growth(samples)[0]:+,.1f}"
            for name, samples in self._samples.items()
        }


def growth(samples: list[float]) -> tuple[float, float]:
    """Return how much a figure grew after it had warmed up, and its level."""
    warm = samples[int(len(samples) * WARM) :]
    if len(samples) < SAMPLES_MIN or len(warm) < 2:
        return 0.0, samples[-1] if samples else 0.0
    slopes = [
        (later - earlier) / (j - i)
        for i, earlier in enumerate(warm)
        for j, later in enumerate(warm[i + 1 :], i + 1)
    ]
    return median(slopes) * (len(warm) - 1), median(warm)
