"""Campaigns: long runs over random input that must never break a law.

One module per campaign, found by its name: its docstring's first line says what it does, and
`run(plan)` does it and returns an Outcome. Case n of a seed is always the same case (until the
examples change), so a fault is seen again with `--seed S --case N`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """How much to run: until the seconds are over or the cases are done, whichever is first."""

    seed: int
    seconds: float | None = None
    cases: int | None = None
    first: int = 0  # number of the first case

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of the cases to run."""
        end_s = None if self.seconds is None else time.monotonic() + self.seconds
        number = self.first
        while self.cases is None or number < self.first + self.cases:
            if end_s is not None and time.monotonic() >= end_s:
                return
            yield number
            number += 1


@dataclass(frozen=True)
class Outcome:
    """What a campaign counted and measured, and the texts of the laws that were broken."""

    figures: Mapping[str, str]
    faults: tuple[str, ...] = ()
