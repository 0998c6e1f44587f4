"""Random problems of allocation: the answers of the plain search, and how long they take.

A case is one problem, small or near capacity. The laws:

1. allocating raises nothing;
2. the answer, error text included, equals the plain search's, where that ends;
3. where it does not, an allocation is at least one that the rules admit;
4. the order of objects and of the keys of their maps does not matter;
5. no answer takes more than SECONDS_MAX.

How long the problems near capacity take is measured besides.
"""

from __future__ import annotations

import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from conformance import _plain as plain
from conformance._allocation import Answer, Problem
from conformance.allocator import answer
from soak import Outcome, Plan, Tally
from tests.allocator.problems import FAMILIES, NEAR_CAPACITY, SMALL, Size, problem
from tests.allocator.worlds import described, is_valid, shuffled

NEAR_CAPACITY_EVERY = 5  # one in this many cases is near capacity
STEPS_MAX = {SMALL: 100_000, NEAR_CAPACITY: 1_000}  # of the plain search
GOAL_MS = 50.0
SECONDS_MAX = 20.0
GIVEN_UP = "filter operation aborted"

Times = defaultdict[str, list[float]]  # in milliseconds, by family


def run(plan: Plan) -> Outcome:
    """Run the campaign."""
    started = time.perf_counter()
    times: Times = defaultdict(list)
    tally = Tally("allocator", lambda seed, number: make_case(seed, number, times))
    tally.run(plan)
    figures = {"cases": f"{tally.cases:,}"}
    for family in FAMILIES:
        figures[family] = _counted(family, tally.counts)
    for family in FAMILIES:
        figures[f"{family}, near capacity"] = _timed(times[family])
    figures |= {
        "given up": f"{tally.counts['given up']:,}",
        "seconds": f"{time.perf_counter() - started:.1f}",
        "worst case": tally.worst(),
        "seed": str(plan.seed),
    }
    return Outcome(figures, tuple(tally.faults.values()))


def _counted(family: str, counts: Counter[str]) -> str:
    names = ("allocated", "none", "error", "compared", "checked", "not compared")
    return ", ".join(f"{counts[f'{family} {name}']:,} {name}" for name in names)


def _timed(times: list[float]) -> str:
    if not times:
        return "none"
    good = sum(spent <= GOAL_MS for spent in times)
    middle = sorted(times)[len(times) // 2]
    return (
        f"{len(times):,}, median {middle:.2f} ms, slowest {max(times):.1f} ms, "
        f"{good / len(times):.1%} within {GOAL_MS:g} ms"
    )


# --- one case -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A problem, by what decides it."""

    family: str
    size: Size
    seed: str
    times: Times = field(compare=False, repr=False)

    def outcomes(self) -> Counter[str]:
        """Return what became of the problem, or raise what must not be raised."""
        found = problem(self.family, self.size, self.seed)
        actual = self._timed_answer(found)
        counts = Counter([f"{self.family} {actual.outcome}"])
        if actual.error.startswith(GIVEN_UP):
            counts["given up"] += 1
            return counts
        other = answer(shuffled(found, Random(self.seed)))  # noqa: S311
        _check_equal(described(actual), described(other), "in another order")
        counts[f"{self.family} {self._check(found, actual)}"] += 1
        return counts

    def _timed_answer(self, found: Problem) -> Answer:
        started = time.process_time()
        with _limited(SECONDS_MAX):
            actual = answer(found)
        if self.size is NEAR_CAPACITY:
            self.times[self.family].append((time.process_time() - started) * 1e3)
        return actual

    def _check(self, found: Problem, actual: Answer) -> str:
        """Compare with the plain search as far as possible; return how far that was."""
        try:
            expected = plain.allocate(found, steps_max=STEPS_MAX[self.size])
        except plain.TooManyStepsError:
            if actual.outcome != "allocated":
                return "not compared"
            assert is_valid(found, actual), "an allocation that the rules do not admit"
            return "checked"
        _check_equal(described(expected), described(actual), "by the plain search")
        return "compared"

    def __str__(self) -> str:
        return f"problem({self.family!r}, {self.size.name}, {self.seed!r})"


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise in the middle of what takes longer."""

    def stop(*_: object) -> None:
        raise AssertionError(f"takes more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _check_equal(expected: dict[str, Any], actual: dict[str, Any], how: str) -> None:
    assert expected == actual, f"\n  {how}: {expected}\n  answer: {actual}"


def make_case(seed: int, number: int, times: Times | None = None) -> Case:
    """Return a case of a seed."""
    families = list(FAMILIES)
    size = SMALL if number // len(families) % NEAR_CAPACITY_EVERY else NEAR_CAPACITY
    family = families[number % len(families)]
    return Case(family, size, f"{seed}/{number}", defaultdict(list) if times is None else times)
