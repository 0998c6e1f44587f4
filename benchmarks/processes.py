"""How fast containers start as processes, on one core, and how large their shim is.

Goals: 50 starts a second, 10 ms of the shim for each, 20 MB.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

from moorage.node.runtime.contract import ContainerId, ContainerSpec
from moorage.node.runtime.process import ProcessRuntime

ROUNDS, CONTAINERS = 3, 200


def main() -> None:
    """Print how long starts take, and the resources of the shim."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})  # and so the shim and all containers
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(_measure(Path(folder)))
    finally:
        os.sched_setaffinity(0, allowed)


async def _measure(folder: Path) -> None:
    runtime = ProcessRuntime(folder)
    shim = await runtime.shim_pid()
    for number in range(ROUNDS):
        used_s = _processor_s(shim)
        times = [await _start(runtime, f"c{number}-{index}") for index in range(CONTAINERS)]
        each_ms = (_processor_s(shim) - used_s) * 1000 / CONTAINERS
        started = time.perf_counter()
        resident = _resident_mb(shim)
        await runtime.remove("pod")
        removed_s = time.perf_counter() - started
        print(
            f"{CONTAINERS / sum(times):.0f} starts/s (goal: 50), "
            f"median {statistics.median(times) * 1000:.1f} ms, "
            f"{each_ms:.1f} ms of the shim each (goal: 10), "
            f"{resident:.1f} MB with {CONTAINERS} containers (goal: 20), "
            f"{CONTAINERS / removed_s:.0f} removed/s"
        )
    await runtime.shut_down()


async def _start(runtime: ProcessRuntime, name: str) -> float:
    started = time.perf_counter()
    id_ = ContainerId("pod", name, 0)
    await runtime.start(ContainerSpec(id_, "default", "web", command=("sleep", "1000")))
    return time.perf_counter() - started


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1000
