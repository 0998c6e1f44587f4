"""Time of the processor until `moor` answers: its help, and shells that complete a command line.

Goals: `moor --help` 110 ms, a completion 150 ms; a cluster has 100 ms more to answer;
`import moorage` 5 ms.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

RUNS = 15
ROOT = Path(__file__).parents[1]
EXAMPLES = str(ROOT / "examples")
HELP_MS_MAX = 110
COMPLETION_MS_MAX = 150
IMPORT_MS_MAX = 5
# The time of the import alone: what Python needs to start is not Moorage's.
_IMPORT = "import time; t = time.perf_counter(); import moorage; print(time.perf_counter() - t)"

_COMPLETE = ("__complete", "--")
CASES: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("moor --help", ("--help",), HELP_MS_MAX),
    ("commands", (*_COMPLETE, "pl"), COMPLETION_MS_MAX),
    ("profiles", (*_COMPLETE, "plan", "--profile", "dgx"), COMPLETION_MS_MAX),
    ("gates", (*_COMPLETE, "plan", "--feature-gates", "DRA"), COMPLETION_MS_MAX),
    (
        "classes",
        (*_COMPLETE, "devices", "--on", f"{EXAMPLES}/gpu-node", "--class", ""),
        COMPLETION_MS_MAX,
    ),
    ("objects", (*_COMPLETE, "explain", "-Rf", EXAMPLES, "pod/"), COMPLETION_MS_MAX),
    (
        "objects of a cluster that is not there",
        (*_COMPLETE, "explain", "--kubeconfig", os.devnull, "pod/"),
        COMPLETION_MS_MAX,
    ),
)


def main() -> None:
    """Print the best and the median time of each case."""
    for title, arguments, goal_ms in CASES:
        times = sorted(_cpu_ms(arguments) for _ in range(RUNS))
        figures = f"best {times[0]:.0f} ms, median {times[RUNS // 2]:.0f} ms"
        print(f"{title}: {figures} (goal: {goal_ms})")
    times = sorted(_import_ms() for _ in range(RUNS))
    figures = f"best {times[0]:.2g} ms, median {times[RUNS // 2]:.2g} ms"
    print(f"import moorage: {figures} (goal: {IMPORT_MS_MAX})")


def _cpu_ms(arguments: tuple[str, ...]) -> float:
    """Return the time of the processor that a run of `moor` takes."""
    before = getrusage(RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "moorage.cli", *arguments]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    after = getrusage(RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000


def _import_ms() -> float:
    command = [sys.executable, "-c", _IMPORT]
    done = subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    return float(done.stdout) * 1000
