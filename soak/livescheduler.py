"""Random histories of a live scheduler: whatever happens, every pod that fits gets its node.

A case is one history: objects come, change and go at any moment, the server refuses writes, loses
answers, schedulers are killed and restarted, sometimes two run at once. The laws:

1. nothing raises;
2. at rest no pod waits that the pure cycle would place;
3. no device has two claims; with two schedulers, none whose pods are on nodes, at no moment;
4. at rest a scheduler sees the claims as the server has them;
5. once all pods are gone everything is free.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from random import Random

from soak import Outcome, Plan, Tally
from tests.scheduler.live.histories import run_live_history

STEPS_MAX = 60
FAULTS = (0.0, 0.0, 0.1, 0.3)


@dataclass(frozen=True)
class Case:
    """A history, by what decides it."""

    seed: str

    def outcomes(self) -> Counter[str]:
        """Return what there was in the history, or raise what must not be raised."""
        random = Random(self.seed)  # noqa: S311
        steps = random.randint(10, STEPS_MAX)
        schedulers = random.choice((1, 1, 1, 2))
        return run_live_history(
            random, steps=steps, faults=random.choice(FAULTS), schedulers=schedulers
        )

    def __str__(self) -> str:
        return f"history {self.seed!r}"


def run(plan: Plan) -> Outcome:
    """Run the campaign."""
    started = time.perf_counter()
    tally = Tally("livescheduler", make_case)
    tally.run(plan)
    counts = tally.counts
    figures = {
        "cases": f"{tally.cases:,}",
        "pods on nodes, at rest": f"{counts['on nodes']:,}",
        "pods that wait, at rest": f"{counts['waiting']:,}",
        "writes": f"{counts['writes']:,}",
        "restarts": f"{counts['restarts']:,}",
        "seconds": f"{time.perf_counter() - started:.1f}",
        "worst case": tally.worst(),
        "seed": str(plan.seed),
    }
    return Outcome(figures, tuple(tally.faults.values()))


def make_case(seed: int, number: int) -> Case:
    """Return a case of a seed."""
    return Case(f"{seed}/{number}")
