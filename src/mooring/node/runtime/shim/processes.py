"""Processes as /proc tells of them: whose they are, and how they are killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mooring.node.runtime.shim.launches import MARKER

_HAS_CHILDREN = os.path.exists("/proc/thread-self/children")  # not every kernel is made so


class Process(NamedTuple):
    """One process; its start tells it from a later one with the same number."""

    pid: int
    parent: int
    session: int
    started: int  # ticks since the boot
    is_zombie: bool


def boot_id() -> str:
    """Return what this start of the machine is called."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def process(pid: int) -> Process | None:
    """Return a process, if there is one."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    state, parent, _, session = fields[:4]
    return Process(pid, int(parent), int(session), int(fields[19]), state in (b"Z", b"X"))


def processes() -> Iterator[Process]:
    """Yield all processes that can be seen."""
    for name in os.listdir("/proc"):
        if name.isdecimal() and (found := process(int(name))) is not None:
            yield found


def children(pid: int) -> list[int]:
    """Return the children of a process, of all its threads."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        if not _HAS_CHILDREN:
            return [each.pid for each in processes() if each.parent == pid]
    return found  # of one that has just ended, none


def tree(pids: Iterable[int]) -> list[int]:
    """Return processes and all their descendants."""
    found = list(pids)
    for pid in found:  # grows while it is walked
        found += [each for each in children(pid) if each not in found]
    return found


def marker(pid: int) -> str:
    """Return whose a process says it is, by the environment it was started with."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            content = file.read(1 << 22)
    except OSError:
        return ""
    start = f"{MARKER}=".encode()
    for variable in content.split(b"\0"):
        if variable.startswith(start):
            return variable[len(start) :].decode(errors="replace")
    return ""


def mount_namespace(pid: int) -> int:
    """Return the number of a process's mount namespace, 0 if that cannot be known."""
    try:
        return os.stat(f"/proc/{pid}/ns/mnt").st_ino
    except OSError:
        return 0


def kill(found: Process) -> None:
    """Kill this process, and no later one with its number."""
    try:
        descriptor = os.pidfd_open(found.pid)
    except OSError:
        return  # gone
    try:
        now = process(found.pid)
        if now is not None and now.started == found.started:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(descriptor)
