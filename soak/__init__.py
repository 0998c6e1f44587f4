"""Campaigns: long runs over random input that must never break a law.

One module per campaign, found by its name (`store-crash` is `store_crash`): its docstring's first
line says what it does, and `run(plan)` does it and returns an Outcome. `CASES`, if it has them, are
how many make the whole campaign. Case n of a seed is always the same case (until the
examples change), so `--seed S --case N` reproduces a failure.
"""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

FAULTS_MAX = 20


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
    """The counts and measurements of a campaign, and the texts of broken laws."""

    figures: Mapping[str, str]
    faults: tuple[str, ...] = ()


class Case(Protocol):
    """One case of a campaign."""

    def outcomes(self) -> Counter[str]:
        """Return the counts, or raise an exception that breaks a law."""


@dataclass
class Tally:
    """Runs cases and counts what becomes of them."""

    campaign: str
    make_case: Callable[[int, int], Case]
    seconds_max: float | None = None  # of the processor's time, for one case
    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    worst_s: float = 0.0
    worst_case: int = 0
    faults: dict[str, str] = field(default_factory=dict)  # one for each kind of failure
    kind_of: Callable[[Exception], str] | None = None  # default: by where it was raised

    def run(self, plan: Plan) -> None:
        """Run the cases of the plan."""
        for number in plan.numbers():
            self._run_case(plan.seed, number)

    def finish(self, end: Callable[[], None]) -> None:
        """Run the final checks after all cases; an exception is a failure, too."""
        try:
            end()
        except Exception as error:
            self._note_fault(error, f"{self.campaign}: after all cases")

    def worst(self) -> str:
        """Return which case took longest, and how long."""
        return f"{self.worst_s * 1e3:.1f} ms (case {self.worst_case})"

    def _run_case(self, seed: int, number: int) -> None:
        """Run one case, which seed and number alone decide."""
        case = self.make_case(seed, number)
        started = time.process_time()  # Other load of the machine does not count against the case.
        try:
            self.counts.update(case.outcomes())
            elapsed_s = time.process_time() - started
            if self.seconds_max is not None:
                assert elapsed_s < self.seconds_max, f"took {elapsed_s:.1f} s"
        except Exception as error:  # any exception is what we are looking for
            again = f"python3 dev.py soak {self.campaign} --seed {seed} --case {number}"
            self._note_fault(error, f"{again}\n{case}")
        elapsed_s = time.process_time() - started
        self.cases += 1
        if elapsed_s > self.worst_s:
            self.worst_s, self.worst_case = elapsed_s, number

    def _note_fault(self, error: Exception, case: str) -> None:
        """Keep the first failure of its kind: by its own name, or by exception and line."""
        story = "".join(traceback.format_exception(error, limit=-8)).rstrip()
        raised = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} {raised.filename}:{raised.lineno}"
        kind = getattr(error, "kind", kind)
        if self.kind_of is not None:
            kind = self.kind_of(error)
        if len(self.faults) < FAULTS_MAX:
            self.faults.setdefault(kind, f"{case}\n{story}")
