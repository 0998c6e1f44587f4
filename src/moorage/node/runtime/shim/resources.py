"""The resources of a running container: other limits, and what it has used.

What a cgroup does not report is summed up over its processes: CPU time, including that of children
that they have waited for, and resident memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from moorage.node.runtime.shim.cgroup_manager import PERIOD_US, QUOTA_US_MIN, Hierarchy
from moorage.node.runtime.shim.container import Container, ContainerStage, ShimRefusalError

REFUSED = "ResizeError"
READ_BYTES_MAX = 1 << 16


def update_limits(
    container: Container, *, cpu_millis: int | None, memory_bytes: int | None
) -> None:
    """Change the limits of a running container, or raise ShimRefusalError."""
    launch = container.launch
    if container.stage is not ContainerStage.RUNNING or launch is None:
        raise ShimRefusalError(REFUSED, f"container {container.record.key} is not running")
    if memory_bytes != launch.memory_bytes:
        _limit_memory(container, memory_bytes)
    if cpu_millis != launch.cpu_millis:
        _limit_cpu(container, cpu_millis)
    container.launch = launch._replace(cpu_millis=cpu_millis, memory_bytes=memory_bytes)


def _limit_memory(container: Container, limit: int | None) -> None:
    found = _folder(container, "memory")
    if found is None:
        return  # its state says that the limit is not kept
    hierarchy, folder = found
    names = ("memory.current", "memory.usage_in_bytes")
    used = _number(os.path.join(folder, names[0 if hierarchy.is_unified else 1]))
    if limit is not None and used is not None and limit < used:
        text = f"memory limit ({limit}) below current usage ({used})"
        name = container.record.key.name
        raise ShimRefusalError(REFUSED, f'attempting to set container "{name}" {text}')
    if hierarchy.is_unified:
        _write(folder, "memory.max", "max" if limit is None else str(limit))
        return
    value = str(-1 if limit is None else limit)
    # The limit of memory and swap must never be below that of memory.
    files = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
    before = _number(os.path.join(folder, files[0])) or 0
    for file in files if limit is not None and limit < before else reversed(files):
        if os.path.exists(os.path.join(folder, file)):
            _write(folder, file, value)


def _limit_cpu(container: Container, millis: int | None) -> None:
    found = _folder(container, "cpu")
    if found is None:
        return
    hierarchy, folder = found
    quota = None if millis is None else max(millis * PERIOD_US // 1000, QUOTA_US_MIN)
    if hierarchy.is_unified:
        _write(folder, "cpu.max", f"{'max' if quota is None else quota} {PERIOD_US}")
        return
    _write(folder, "cpu.cfs_period_us", str(PERIOD_US))
    _write(folder, "cpu.cfs_quota_us", str(-1 if quota is None else quota))


def _folder(container: Container, controller: str) -> tuple[Hierarchy, str] | None:
    """Return the cgroup that limits a resource; None if the machine has none that can."""
    for hierarchy, folder in container.cgroup.folders:
        if controller in hierarchy.controllers:
            return hierarchy, folder
    if controller in container.host.cgroups.controllers:
        text = f"it was started without a {controller} limit, and has no cgroup for one"
        raise ShimRefusalError(REFUSED, f"container {container.record.key}: {text}")
    return None


def _write(folder: str, file: str, value: str) -> None:
    try:
        with open(os.path.join(folder, file), "w", encoding="ascii") as opened:
            opened.write(value)
    except OSError as error:
        raise ShimRefusalError(REFUSED, f"{file}: {error.strerror}") from None


# --- usage ----------------------------------------------------------------------------------------


def usage(container: Container) -> dict[str, Any] | None:
    """Return what a running container has used; None for another."""
    if container.stage is not ContainerStage.RUNNING:
        return None
    unified = [folder for each, folder in container.cgroup.folders if each.is_unified]

    def members() -> list[int]:
        return [each.pid for each in container.host.members(container)]

    cpu_ns, memory_bytes = measured(unified[0] if unified else "", members)
    return {"key": container.record.key, "cpu_ns": cpu_ns, "memory_bytes": memory_bytes}


def measured(cgroup: str, members: Callable[[], list[int]]) -> tuple[int, int]:
    """Return CPU time in ns and working set in bytes, by a cgroup of version 2 or by processes."""
    used_us = _table(os.path.join(cgroup, "cpu.stat")).get("usage_usec") if cgroup else None
    memory = _working_set(cgroup) if cgroup else None
    if used_us is not None and memory is not None:
        return used_us * 1000, memory
    pids = members()
    cpu_ns = sum(map(_cpu_ns, pids)) if used_us is None else used_us * 1000
    return cpu_ns, sum(map(_memory, pids)) if memory is None else memory


def _working_set(cgroup: str) -> int | None:
    """Return the memory in use, without inactive file pages."""
    used = _number(os.path.join(cgroup, "memory.current"))
    if used is None:
        return None
    return max(used - _table(os.path.join(cgroup, "memory.stat")).get("inactive_file", 0), 0)


def _cpu_ns(pid: int) -> int:
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    ticks = sum(map(int, fields[11:15])) if len(fields) > 15 else 0
    return ticks * (10**9 // os.sysconf("SC_CLK_TCK"))


def _memory(pid: int) -> int:
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 else 0


def _table(path: str) -> dict[str, int]:
    lines = (line.partition(" ") for line in _read(path).splitlines())
    return {name: int(value) for name, _, value in lines if value.isdecimal()}


def _number(path: str) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdecimal() else None


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(READ_BYTES_MAX)
    except OSError:
        return ""
