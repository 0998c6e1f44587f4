"""How long users wait first: `moor --help` at most 110 ms, `import mooring` at most 5 ms."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

RUNS = 15
# The time of the import alone: what Python needs to start is not Mooring's.
_IMPORT = "import time; t = time.perf_counter(); import mooring; print(time.perf_counter() - t)"


def main() -> None:
    """Print the best and the median times."""
    _print("moor --help", _help_ms, 110)
    _print("import mooring", _import_ms, 5)


def _print(what: str, measure: Callable[[], float], goal_ms: int) -> None:
    times = sorted(measure() for _ in range(RUNS))
    best, median = times[0], times[RUNS // 2]
    print(f"{what}: best {best:.3g} ms, median {median:.3g} ms (goal: {goal_ms})")


def _help_ms() -> float:
    started = time.perf_counter()
    command = [sys.executable, "-m", "mooring.cli.main", "--help"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    return (time.perf_counter() - started) * 1000


def _import_ms() -> float:
    command = [sys.executable, "-c", _IMPORT]
    done = subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    return float(done.stdout) * 1000
