"""Where a pod's CPU time goes in a live cluster: `dev.py bench live WORKLOAD --profile`.

Server and programs run with `benchmarks._cpu_samples`; only what happens while pods are bound is
counted. Sampling costs about a hundredth of the time.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks._live_cluster import Processes, Usage

MAIN_THREAD = "MainThread"
WRITTEN_S = 10.0
LEAST_MS = 0.005  # less is left out


class SampledProcesses:
    """The processes of a cluster, sampled between the first and the second look at their usage."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, Path] = {}
        self._processes: Processes | None = None
        self._is_counting = False

    def of(self, processes: Any) -> SampledProcesses:
        """Return the same for processes that run."""
        assert isinstance(processes, Processes)
        self._processes = processes
        names = ("server",) if processes.programs is None else ("server", "programs")
        self._files = {name: self._folder / f"{name}.json" for name in names}
        return self

    def usages(self) -> tuple[Usage, ...]:
        """Return what the processes have taken; begin to count, or end it."""
        assert self._processes is not None
        self._signal(signal.SIGUSR2 if self._is_counting else signal.SIGUSR1)
        if self._is_counting:
            self._wait()
        self._is_counting = not self._is_counting
        return self._processes.usages()

    def _signal(self, number: signal.Signals) -> None:
        assert self._processes is not None
        for process in (self._processes.server, self._processes.programs):
            if process is not None:  # its program runs in the server's process
                process.send_signal(number)

    def _wait(self) -> None:
        end_s = time.monotonic() + WRITTEN_S
        while not all(file.exists() for file in self._files.values()):
            if time.monotonic() > end_s:
                raise TimeoutError("a process has written no samples")
            time.sleep(0.01)

    def lines(self, pods: int) -> Iterator[str]:
        """Yield a table: CPU milliseconds a pod of each component."""
        yield "| process | component | CPU ms/pod | % |"
        yield "| --- | --- | --- | --- |"
        rows = [
            (name, component, seconds / pods * 1e3)
            for name, file in self._files.items()
            for component, seconds in component_seconds(json.loads(file.read_text()))
        ]
        total = sum(ms for _, _, ms in rows)
        for name, component, ms in rows:
            if ms >= LEAST_MS:
                yield f"| {name} | {component} | {ms:.2f} | {ms / total:.0%} |"
        yield f"| | all | {total:.2f} | |"


def component_seconds(found: dict[str, dict[str, float]]) -> list[tuple[str, float]]:
    """Return the CPU seconds of components, most first, and then those of other threads."""
    samples, threads = found["samples"], found["threads"]
    main_s = threads.pop(MAIN_THREAD, 0.0)
    total = sum(samples.values()) or 1
    parts = {name: main_s * count / total for name, count in samples.items()}
    ranked = sorted(parts.items(), key=lambda each: -each[1])
    beside = sorted(threads.items(), key=lambda each: -each[1])
    return [*ranked, *((f"thread {name}", seconds) for name, seconds in beside)]
