"""Random worlds: no answer of a command, the library or the page contradicts another.

A case is a cluster in which pods run, with much that can stand in the way, and manifests for it.
All commands are asked about it, the library, the page, and a server that has the same objects. The
laws are functions, and their docstrings say what holds:

    soak._agreement.pod_laws      plan, explain, what-if, lint, the library and exit statuses
    soak._agreement.trial_laws    what was said is tried: one replica more, fixes, waits
    soak._agreement.device_laws   devices, claims, metrics and the page count the same
    soak._agreement.form_laws     files in another order, a snapshot, a server, no stand-ins

`docs/explanation/agreement.md` lists them, and says what the words mean that answers share.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from soak import Outcome, Plan, Tally
from soak._agreement.doors import BrokenLawError, Doors
from soak._agreement.laws import LAWS, Law, name_of
from soak._agreement.worlds import World, random_world

CASES: Final = 300


@dataclass(frozen=True)
class Case:
    """A world, and where to count what is said about it."""

    world: World
    counts: Counter[str] = field(compare=False, repr=False)

    def outcomes(self) -> Counter[str]:
        """Check every law; raise the first broken one."""
        broken: list[BrokenLawError] = []
        with TemporaryDirectory() as folder:
            doors = Doors(self.world, Path(folder))
            for law in LAWS:
                broken += self._broken(law, doors)
            if not broken:
                self.counts.update(facts_of(doors))
        for error in broken:
            self.counts[f"broken: {error.kind}"] += 1
        if broken:
            raise broken[0]
        return Counter()

    def _broken(self, law: Law, doors: Doors) -> list[BrokenLawError]:
        try:
            found = list(law(doors))
        except BrokenLawError as error:
            return [error]
        return [BrokenLawError(name_of(law), "\n".join(found))] if found else []

    def __str__(self) -> str:
        return str(self.world)


def facts_of(doors: Doors) -> Counter[str]:
    """Return how much of what a law is about there is in a world."""
    plan, said = doors.whole_plan.tree, doors.explanation.tree
    fixes = Counter(fix["kind"] for answer in said["pending"] for fix in answer["fixes"])
    return Counter(
        {
            "pods placed": sum(bool(each.get("node")) for each in plan["pods"]),
            "pods pending": sum(not each.get("node") for each in plan["pods"]),
            "unused claims and templates": len(plan["standIns"]),
            "changes offered": fixes["change"],
            "advice": fixes["advice"],
            "devices": len(doors.devices),
            "claims with devices": sum(bool(each["devices"]) for each in doors.claims),
            "findings of lint": len(doors.ask("lint").tree["findings"]),
        }
    )


def run(plan: Plan) -> Outcome:
    """Run the campaign."""
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    tally = Tally("agreement", lambda seed, number: make_case(seed, number, counts))
    tally.run(plan)
    figures = {"cases": f"{tally.cases:,}", "laws": str(len(LAWS))}
    figures |= {name: f"{count:,}" for name, count in sorted(counts.items())}
    figures |= {
        "seconds": f"{time.perf_counter() - started:.1f}",
        "worst case": tally.worst(),
        "seed": str(plan.seed),
    }
    return Outcome(figures, tuple(tally.faults.values()))


def make_case(seed: int, number: int, counts: Counter[str] | None = None) -> Case:
    """Return a case of a seed."""
    return Case(random_world(f"{seed}/{number}"), Counter() if counts is None else counts)
