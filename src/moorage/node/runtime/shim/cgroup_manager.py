"""Limits of containers by cgroups, as far as the machine allows: version 1, 2, both, or none.

The shim finds out once, when it starts, which cgroups it can write:

    version 2   one folder for each container, always: its processes are the members. Limits for
                the controllers that could be enabled below it
    version 1   a folder in each of cpu, memory and cpuset, if a container has such a limit

Folders are made below the shim's own cgroup, so that its limits apply to containers, too; if
controllers cannot be enabled there, below the root.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from moorage.node.runtime.shim.protocol import Launch

CONTROLLERS = ("cpu", "memory", "cpuset")
PERIOD_US = 100_000
QUOTA_US_MIN = 1_000
MOUNT = "/sys/fs/cgroup"


class Hierarchy(NamedTuple):
    """The parent folder of containers' cgroups, and the resources they can limit."""

    folder: str
    controllers: frozenset[str]
    is_unified: bool


class Cgroup(NamedTuple):
    """The cgroup folders of one container."""

    folders: tuple[tuple[Hierarchy, str], ...]

    @property
    def process_files(self) -> tuple[str, ...]:
        """The files into which a process writes its pid to enter."""
        return tuple(os.path.join(folder, "cgroup.procs") for _, folder in self.folders)

    def members(self) -> set[int]:
        """Return the pids in it."""
        found: set[int] = set()
        for path in self.process_files:
            found.update(map(int, _read(path).split()))
        return found

    def oom_kills(self) -> int:
        """Return how many of its processes the OOM killer ended."""
        total = 0
        for hierarchy, folder in self.folders:
            name = "memory.events" if hierarchy.is_unified else "memory.oom_control"
            for line in _read(os.path.join(folder, name)).splitlines():
                word, _, count = line.partition(" ")
                total += int(count) if word == "oom_kill" and count.isdecimal() else 0
        return total

    def kill(self) -> None:
        """Kill all members at once, if the kernel can."""
        for hierarchy, folder in self.folders:
            if hierarchy.is_unified:
                _write(os.path.join(folder, "cgroup.kill"), "1")

    def remove(self) -> bool:
        """Remove the folders; return whether all were empty."""
        removed = [_removed(folder) for _, folder in self.folders]
        return all(removed)


class CgroupManager:
    """Makes cgroups for containers, where that is possible."""

    def __init__(self, hierarchies: Iterable[Hierarchy]) -> None:
        self._hierarchies = tuple(hierarchies)

    @property
    def controllers(self) -> tuple[str, ...]:
        """The controllers that can be used."""
        return tuple(sorted(frozenset().union(*(each.controllers for each in self._hierarchies))))

    def make(self, name: str, launch: Launch) -> Cgroup:
        """Return the cgroup of a container with its limits; a limit that fails is left out."""
        folders = []
        for hierarchy in self._hierarchies:
            values = dict(_values(hierarchy, launch))
            if not values and not hierarchy.is_unified:
                continue
            folder = os.path.join(hierarchy.folder, name)
            if _made(folder):
                folders.append((hierarchy, folder))
                for file, value in values.items():
                    _write(os.path.join(folder, file), value)
        return Cgroup(tuple(folders))

    def find(self, name: str) -> Cgroup:
        """Return the cgroup that an earlier shim made."""
        pairs = ((each, os.path.join(each.folder, name)) for each in self._hierarchies)
        return Cgroup(tuple(pair for pair in pairs if os.path.isdir(pair[1])))

    def close(self) -> None:
        """Remove empty folders."""
        for hierarchy in self._hierarchies:
            _removed(hierarchy.folder)


def probe(own: str, name: str, mount: str = MOUNT) -> CgroupManager:
    """Return what can be used; `own` is /proc/self/cgroup, `name` the name of the shim's folder."""
    paths = dict(_memberships(own))
    unified = next(
        (
            each
            for each in (mount, f"{mount}/unified")
            if os.path.exists(f"{each}/cgroup.controllers")
        ),
        None,
    )
    hierarchies = []
    if unified is not None and (found := _unified(unified, paths.get("", "/"), name)):
        hierarchies.append(found)
    for controller in CONTROLLERS:
        if folder := _legacy(f"{mount}/{controller}", paths.get(controller), name):
            hierarchies += [Hierarchy(folder, frozenset([controller]), is_unified=False)]
    return CgroupManager(hierarchies)


def _memberships(own: str) -> Iterator[tuple[str, str]]:
    """Yield each controller and our path in its hierarchy; version 2 has no controller name."""
    for line in own.splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        for controller in names.split(","):
            yield controller, path


def _unified(mount: str, path: str, name: str) -> Hierarchy | None:
    best: Hierarchy | None = None
    for parent in dict.fromkeys((mount + path.rstrip("/"), mount)):
        folder = os.path.join(parent, name)
        if not _made(folder):
            continue
        controllers = frozenset(
            each
            for each in CONTROLLERS
            if each in _read(os.path.join(parent, "cgroup.controllers")).split()
            and _write(os.path.join(parent, "cgroup.subtree_control"), f"+{each}")
            and _write(os.path.join(folder, "cgroup.subtree_control"), f"+{each}")
        )
        if best is not None and len(controllers) <= len(best.controllers):
            _removed(folder)
            continue
        if best is not None:
            _removed(best.folder)
        best = Hierarchy(folder, controllers, is_unified=True)
    return best


def _legacy(mount: str, path: str | None, name: str) -> str | None:
    if path is None:
        return None
    for parent in dict.fromkeys((mount + path.rstrip("/"), mount)):
        folder = os.path.join(parent, name)
        if os.path.isdir(parent) and _made(folder):
            if os.path.exists(os.path.join(parent, "cpuset.cpus")):
                _inherit(parent, folder)
            return folder
    return None


def _inherit(parent: str, folder: str) -> None:
    """Copy the parent's CPUs and nodes: an empty cpuset takes no process."""
    for file in ("cpuset.cpus", "cpuset.mems"):
        _write(os.path.join(folder, file), _read(os.path.join(parent, file)).strip())
    _write(os.path.join(folder, "cgroup.clone_children"), "1")


def _values(hierarchy: Hierarchy, launch: Launch) -> Iterator[tuple[str, str]]:
    unified, controllers = hierarchy.is_unified, hierarchy.controllers
    if "cpu" in controllers and launch.cpu_millis is not None:
        quota = max(launch.cpu_millis * PERIOD_US // 1000, QUOTA_US_MIN)
        if unified:
            yield "cpu.max", f"{quota} {PERIOD_US}"
        else:
            yield "cpu.cfs_period_us", str(PERIOD_US)
            yield "cpu.cfs_quota_us", str(quota)
    if "memory" in controllers and launch.memory_bytes is not None:
        limit = str(launch.memory_bytes)
        if unified:
            yield from (("memory.max", limit), ("memory.swap.max", "0"), ("memory.oom.group", "1"))
        else:
            yield "memory.limit_in_bytes", limit
            yield "memory.memsw.limit_in_bytes", limit
    if "cpuset" in controllers:
        if launch.cpus:
            yield "cpuset.cpus", ",".join(map(str, launch.cpus))
        if launch.memory_nodes:
            yield "cpuset.mems", ",".join(map(str, launch.memory_nodes))


def _made(folder: str) -> bool:
    try:
        os.mkdir(folder, 0o755)
    except FileExistsError:
        return True
    except OSError:
        return False
    return True


def _removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""


def _write(path: str, value: str) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        return False
    try:
        os.write(descriptor, value.encode())
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
