"""Measures the resource usage of the node and its containers: the kubelet's /stats/summary.

Nothing is measured before a request. A rate needs two measurements: the last answer is the
first of them if it is not too old; otherwise the first request waits a moment for its second one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from moorage.api.core import Pod
from moorage.api.timestamp import Timestamp
from moorage.kit.clock import Clock
from moorage.node.runtime.contract import ContainerStats, Runtime

WINDOW_S_MIN: Final = 1.0
WINDOW_S_MAX: Final = 60.0
NANO: Final = 10**9
FILE_BYTES_MAX: Final = 65_536

Tree = dict[str, Any]


class Measurement(NamedTuple):
    """Usage at one moment: CPU time since the start, and current memory."""

    at_s: float
    cpu_ns: int  # of the machine
    memory_bytes: int
    containers: dict[tuple[str, str, int], ContainerStats]


class UsageMeter:
    """Measures a node on request."""

    def __init__(self, runtime: Runtime, clock: Clock, proc: Path = Path("/proc")) -> None:
        self._runtime, self._clock, self._proc = runtime, clock, proc
        self._last: Measurement | None = None
        self._lock = asyncio.Lock()

    async def summary(self, node: str, pods: Iterable[Pod]) -> Tree:
        """Return the usage of the node and its pods."""
        async with self._lock:
            before = self._last
            now_s = self._clock.monotonic()
            if before is None or not WINDOW_S_MIN <= now_s - before.at_s <= WINDOW_S_MAX:
                before = await self._measure()
                await self._clock.sleep(WINDOW_S_MIN)
            self._last = after = await self._measure()
        time = str(Timestamp(self._clock.now()))
        return {
            "node": {"nodeName": node, **_stats(time, *_machine(before, after))},
            "pods": [_pod(pod, before, after, time) for pod in pods],
        }

    async def _measure(self) -> Measurement:
        stats = await self._runtime.stats()
        by_id = {(each.id.pod_uid, each.id.name, each.id.attempt): each for each in stats}
        cpu_ns, memory = _cpu_ns(self._proc / "stat"), _memory_bytes(self._proc / "meminfo")
        return Measurement(self._clock.monotonic(), cpu_ns, memory, by_id)


def _machine(before: Measurement, after: Measurement) -> tuple[float, int, int, int]:
    used_ns = max(after.cpu_ns - before.cpu_ns, 0)
    return after.at_s - before.at_s, used_ns, after.cpu_ns, after.memory_bytes


def _pod(pod: Pod, before: Measurement, after: Measurement, time: str) -> Tree:
    window_s = after.at_s - before.at_s
    containers, used_ns, total_ns, memory = [], 0, 0, 0
    for key, now in after.containers.items():
        if key[0] != pod.metadata.uid:
            continue
        then = before.containers.get(key)
        own_ns = max(now.cpu_ns - (0 if then is None else then.cpu_ns), 0)
        own = _stats(time, window_s, own_ns, now.cpu_ns, now.memory_bytes)
        containers.append({"name": key[1], **own})
        used_ns, total_ns = used_ns + own_ns, total_ns + now.cpu_ns
        memory += now.memory_bytes
    metadata = pod.metadata
    reference = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
    whole = _stats(time, window_s, used_ns, total_ns, memory) if containers else {}
    return {"podRef": reference, "containers": containers, **whole}


def _stats(time: str, window_s: float, used_ns: int, total_ns: int, memory: int) -> Tree:
    cores = round(used_ns / window_s) if window_s > 0 else 0
    cpu = {
        "time": time,
        "usageNanoCores": cores,
        "usageCoreNanoSeconds": total_ns,
        "windowSeconds": round(window_s, 3),
    }
    return {"cpu": cpu, "memory": {"time": time, "workingSetBytes": memory}}


# --- the machine ----------------------------------------------------------------------------------


def _cpu_ns(path: Path) -> int:
    """Return the time that all CPUs were busy: neither idle nor waiting for a disk."""
    fields = _text(path).partition("\n")[0].split()
    if len(fields) < 9 or fields[0] != "cpu":
        return 0
    user, nice, system, _, _, irq, softirq, steal = map(int, fields[1:9])
    ticks = user + nice + system + irq + softirq + steal
    return ticks * (NANO // os.sysconf("SC_CLK_TCK"))


def _memory_bytes(path: Path) -> int:
    sizes = {}
    for line in _text(path).splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            sizes[name] = int(words[0]) * 1024
    return max(sizes.get("MemTotal", 0) - sizes.get("MemAvailable", 0), 0)


def _text(path: Path) -> str:
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            return file.read(FILE_BYTES_MAX)
    except OSError:
        return ""
