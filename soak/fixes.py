"""Answers about pending pods: every change that is offered is valid, and places the pod.

A case is a recorded case that Kubernetes could not allocate, a situation, an example of the seeds,
or, after those, a random cluster with mistakes. The laws are those of `soak._fixes.trial`.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from soak import Outcome, Plan, Tally
from soak._fixes.mistakes import random_world
from soak._fixes.trial import Trial
from soak._fixes.worlds import Form, World, file_worlds, recorded_cases

CASES: Final = 8_000
FORMS: Final = (Form.CLAIM, Form.TEMPLATE, Form.DEPLOYMENT, Form.STORED)


@dataclass(frozen=True)
class Case:
    """A world, and where to count what is said about it."""

    world: World
    counts: Counter[str] = field(compare=False, repr=False)

    def outcomes(self) -> Counter[str]:
        """Try all fixes, or raise the first broken law."""
        Trial(self.world, self.counts).run()
        return Counter()

    def __str__(self) -> str:
        return str(self.world)


@cache
def recorded_worlds() -> list[World]:
    """Return the worlds that do not depend on the seed."""
    worlds = list(file_worlds())
    for number, case in enumerate(recorded_cases()):
        worlds.append(case.world(FORMS[number % len(FORMS)]))
    return worlds


def run(plan: Plan) -> Outcome:
    """Run the campaign."""
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    tally = Tally("fixes", lambda seed, number: make_case(seed, number, counts))
    tally.run(plan)
    figures = {"cases": f"{tally.cases:,}"} | {k: f"{v:,}" for k, v in sorted(counts.items())}
    figures |= {
        "seconds": f"{time.perf_counter() - started:.1f}",
        "worst case": tally.worst(),
        "seed": str(plan.seed),
    }
    return Outcome(figures, tuple(tally.faults.values()))


def make_case(seed: int, number: int, counts: Counter[str] | None = None) -> Case:
    """Return a case of a seed."""
    worlds = recorded_worlds()
    world = worlds[number] if number < len(worlds) else random_world(f"{seed}/{number}")
    return Case(world, Counter() if counts is None else counts)
