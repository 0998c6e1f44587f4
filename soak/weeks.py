"""Let weeks of pods come and go: memory, descriptors, tasks and files do not grow.

A case is a cluster through windows of churn: namespaces with pods, claims, Jobs, Deployments and
their events and leases come and go, drivers restart, nodes and slices vanish and come back. After
each window, at rest, everything is measured; a figure that still grows after it has warmed up is a
fault. Every other case is one process in simulated time, where a window is a day; the others are
real programs, through as many pods as fit into the time.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from soak import Outcome, Plan, Tally
from soak._weeks.growth import Growths
from soak._weeks.programs import ProgramWeeks
from soak._weeks.simulated import Weeks

CASES = 2
DAY_S = 86_400.0


@dataclass(frozen=True)
class Size:
    """How large a case is."""

    windows: int = 21
    rounds: int = 8  # namespaces in a window of simulated time
    window_s: float = DAY_S
    machines: int = 2
    real_windows: int = 30
    real_rounds: int = 10


@dataclass
class WeeksCase:
    """One cluster."""

    seed: int
    number: int
    size: Size
    growths: dict[str, Growths] = field(default_factory=dict)
    kept: str = ""

    def outcomes(self) -> Counter[str]:
        """Return the counts; raise when something grows."""
        folder = Path(tempfile.mkdtemp(prefix="w", dir="/tmp"))  # sockets need short paths
        level = logging.getLogger("moorage").level
        logging.getLogger("moorage").setLevel(logging.CRITICAL)  # nodes are gone all the time
        try:
            counts, growths = self._run(folder)
            faults = growths.faults()
            assert not faults, "\n".join(faults)
        except BaseException:
            self.kept = str(folder)
            raise
        finally:
            logging.getLogger("moorage").setLevel(level)
            if not self.kept:
                shutil.rmtree(folder)
        return counts

    def _run(self, folder: Path) -> tuple[Counter[str], Growths]:
        random = Random(f"{self.seed}/{self.number}")  # noqa: S311
        size = self.size
        if self.number % 2:
            programs = ProgramWeeks(random, windows=size.real_windows, rounds=size.real_rounds)
            self.growths["programs"] = programs.growths
            asyncio.run(programs.run(folder))
            return programs.counts, programs.growths
        weeks = Weeks(
            random,
            windows=size.windows,
            rounds=size.rounds,
            window_s=size.window_s,
            machines=size.machines,
        )
        self.growths["simulated"] = weeks.growths
        weeks.run(folder)
        return weeks.counts, weeks.growths

    def __str__(self) -> str:
        return f"{self.size}{f'; logs are in {self.kept}' if self.kept else ''}"


def run(plan: Plan, size: Size | None = None) -> Outcome:
    """Run the campaign."""
    growths: dict[str, Growths] = {}
    made = size or Size()
    tally = Tally("weeks", lambda seed, number: WeeksCase(seed, number, made, growths))
    started = time.monotonic()
    tally.run(plan)
    figures = {"cases": str(tally.cases), "seed": str(plan.seed)}
    days = tally.counts.pop("simulated seconds", 0) / DAY_S
    figures |= {name: f"{count:,}" for name, count in sorted(tally.counts.items())}
    figures["simulated days"] = f"{days:.1f}"
    for what, each in growths.items():
        figures |= {f"{what}: {name}": text for name, text in each.figures().items()}
    figures["seconds"] = f"{time.monotonic() - started:.0f}"
    return Outcome(figures, tuple(tally.faults.values()))
