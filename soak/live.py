"""Random histories of a control plane: nothing is ever allocated twice, leaked or stuck.

A case is one history: the real scheduler, controllers and informers run on a server in memory,
which lets each request, answer and change through when the case says so (see `soak._live`). Pods,
groups, claims, slices, rules, classes and nodes come, change and go; some pods want to be near
others, or away from them; others edit claims; programs are killed while requests of theirs are
under way and start with empty memory; sometimes a second scheduler works against the first;
watches break and forget; answers are lost; the clock jumps.
The laws are those of `soak._live.laws`. A history that breaks one is shrunk to a short story.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from soak import Outcome, Plan, Tally
from soak._live.actions import Action, some_actions
from soak._live.embedded import run_embedded
from soak._live.history import OTHER, SAME, Result, shrink
from soak._live.history import run as run_history

CASES = 2100
EMBEDDED_EVERY = 250
ACTIONS = (8, 15, 25, 40)
RIVALRY = ("", "", OTHER, OTHER, SAME)
FIGURES = {
    "actions": "actions",
    "writes": "writes",
    "crashes": "crashes",
    "writes of the dead": "ghosts",
    "second schedulers": "second schedulers",
    "faults of the server": "faults of the server",
    "lost answers": "lost answers",
    "watches cut off": "watches cut",
    "pods on nodes, at rest": "on nodes",
    "pods that wait, at rest": "waiting",
    "pods that two schedulers left without devices": "without devices",
    "pods displaced by others": "displaced",
    "devices that got ready": "devices that got ready",
    "devices that failed": "devices that failed",
    "claims refused by quota": "refused by quota",
    "events told": "events",
    "warnings logged": "warnings",
    "histories on the real server": "embedded histories",
    "restarts of the real server": "embedded restarts",
}


@dataclass
class Case:
    """A history, by what decides it."""

    seed: str
    story: tuple[Action, ...] = ()  # the history after shrinking

    def outcomes(self) -> Counter[str]:
        """Return what there was in the history, or raise what must not be."""
        random = Random(self.seed)  # noqa: S311
        actions = some_actions(random, random.choice(ACTIONS))
        rivalry = random.choice(RIVALRY)
        result = self._run(actions, rivalry)
        if result.broken:
            kind = _kind(result.broken)
            self.story = shrink(
                actions, lambda fewer: _kind(self._run(fewer, rivalry).broken) == kind
            )
            result = self._run(self.story, rivalry)
        assert not result.broken, result.broken
        return result.counts

    def _run(self, actions: Sequence[Action], rivalry: str) -> Result:
        return run_history(self.seed, actions, rivalry=rivalry)

    def __str__(self) -> str:
        lines = [f"history {self.seed!r}, as short as it could be made:"]
        return "\n".join([*lines, *(f"  {action}" for action in self.story)])


def _kind(broken: str) -> str:
    """Return the subject of a failure, without the names and numbers in it."""
    return " ".join(word for word in broken.split() if word.isalpha())


def run(plan: Plan) -> Outcome:
    """Run the campaign."""
    started = time.perf_counter()
    tally = Tally("live", make_case, kind_of=lambda error: _kind(str(error)))
    tally.run(plan)
    figures = {"histories": f"{tally.cases:,}"}
    figures |= {figure: f"{tally.counts[name]:,}" for figure, name in FIGURES.items()}
    figures |= {
        "seconds": f"{time.perf_counter() - started:.1f}",
        "worst case": tally.worst(),
        "seed": str(plan.seed),
    }
    return Outcome(figures, tuple(tally.faults.values()))


@dataclass(frozen=True)
class EmbeddedCase:
    """A history on the real server."""

    seed: str

    def outcomes(self) -> Counter[str]:
        """Return what there was in the history, or raise what must not be."""
        return run_embedded(self.seed)

    def __str__(self) -> str:
        return f"history {self.seed!r} on the real server"


def make_case(seed: int, number: int) -> Case | EmbeddedCase:
    """Return a case of a seed; one of some hundred is on the real server."""
    is_embedded = number % EMBEDDED_EVERY == EMBEDDED_EVERY - 1
    return (EmbeddedCase if is_embedded else Case)(f"{seed}/{number}")
