"""Random histories of clusters: updated clusters answer like newly made ones.

A case is one history: nodes, slices, classes, taint rules, claims and pods come, change and go,
pods get nodes and lose them again. The laws:

1. nothing raises;
2. every pod gets the same answer as from a new cluster made from the same objects, in any order:
   the same node and devices, or the same reasons, messages and victims of preemption;
3. without the victims of preemption the pod would get the node;
4. a reservation that is released leaves every claim as it was, and the pod's answer, too.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from random import Random

from soak import Outcome, Plan, Tally
from tests.scheduler.histories import run_history

STEPS_MAX = 80
CHECK_EVERY = (1, 3, 8)  # now and then several changes come before the next question


@dataclass(frozen=True)
class Case:
    """A history, by what decides it."""

    seed: str

    def outcomes(self) -> Counter[str]:
        """Return what there was in the history, or raise what must not be raised."""
        random = Random(self.seed)  # noqa: S311
        steps = random.randint(10, STEPS_MAX)
        return run_history(random, steps=steps, check_every=random.choice(CHECK_EVERY))

    def __str__(self) -> str:
        return f"history {self.seed!r}"


def run(plan: Plan) -> Outcome:
    """Run the campaign."""
    started = time.perf_counter()
    tally = Tally("scheduler", make_case)
    tally.run(plan)
    counts = tally.counts
    figures = {
        "cases": f"{tally.cases:,}",
        "pods that fit": f"{counts['fits']:,}",
        "pods that do not": f"{counts['pending']:,}",
        "victims found": f"{counts['preempts']:,}",
        "reservations": f"{counts['reserved']:,}",
        "releases": f"{counts['release']:,}",
        "seconds": f"{time.perf_counter() - started:.1f}",
        "worst case": tally.worst(),
        "seed": str(plan.seed),
    }
    return Outcome(figures, tuple(tally.faults.values()))


def make_case(seed: int, number: int) -> Case:
    """Return a case of a seed."""
    return Case(f"{seed}/{number}")
