"""How long `moor --help` takes to answer: at most 110 ms."""

from __future__ import annotations

import subprocess
import sys
import time

RUNS = 15


def main() -> None:
    """Print the best and the median time."""
    times = sorted(_measure() for _ in range(RUNS))
    print(f"moor --help: best {times[0]:.0f} ms, median {times[RUNS // 2]:.0f} ms (goal: 110)")


def _measure() -> float:
    started = time.perf_counter()
    command = [sys.executable, "-m", "mooring.cli.main", "--help"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    return (time.perf_counter() - started) * 1000
