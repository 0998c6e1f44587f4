"""Simulated time: training workers and notebooks arrive for a day at machines of a profile.

dev.py bench simulated_time
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

import moorage

EXAMPLE = Path(__file__).parents[1] / "examples" / "training"


def main() -> None:
    """Print how long simulations of a day take."""
    for machines, per_hour in ((4, 10.0), (32, 80.0), (128, 320.0)):
        _print(machines, per_hour)


def _print(machines: int, per_hour: float) -> None:
    world = moorage.load(EXAMPLE, profile=f"dgx-h100x{machines}")
    workers = moorage.random_arrivals(
        "deployment/training", per_hour=per_hour, until="24h", duration="1h", seed=1
    )
    notebooks = moorage.random_arrivals(
        "pod/notebook-0", per_hour=2 * per_hour, until="24h", duration="30m", seed=2
    )
    for left_over in (False, True):
        started = process_time()
        found = moorage.simulate(world, [*workers, *notebooks], left_over=left_over)
        taken_s = process_time() - started
        kind = "with left-over devices" if left_over else "without"
        print(
            f"{machines:4} nodes, {len(found.pods):6,} pods, {kind}: {taken_s:.1f} s, "
            f"{len(found.pods) / taken_s:,.0f} pods/s"
        )
