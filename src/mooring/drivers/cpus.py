"""The CPUs of a machine, from sysfs: which there are, and which share a core, a node, a socket.

devices/system/cpu/online                 0-63; without it, every cpuN whose own `online` is not 0
devices/system/cpu/cpu0/topology/         physical_package_id, core_id, thread_siblings_list
devices/system/cpu/cpu0/cache/index3/id   the cache that the cores near it share
devices/system/cpu/cpu0/node0             a link to its NUMA node; a kernel without NUMA has none
devices/cpu_atom/cpus                     the small cores of a machine that has two sorts
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from mooring.drivers.host import Host, names, natural, number, numbers
from mooring.hardware.attributes import NUMA_NODES_MAX, numa_node_of_cpu
from mooring.hardware.drivers.cpu import CpuGroup, OneCpu
from mooring.hardware.errors import NoAttributeError
from mooring.hardware.numbers import CPUS_MAX, format_cpu_list
from mooring.hardware.tree import Tree

STANDARD, PERFORMANCE, EFFICIENCY = "standard", "p-core", "e-core"

_CPUS = "devices/system/cpu"
_CPU = re.compile(r"cpu([0-9]{1,5})")


class Cpu(NamedTuple):
    """A CPU that is online; None is unknown."""

    id: int
    node: int | None
    socket: int | None
    core: int | None
    cache: int | None
    siblings: tuple[int, ...]  # all CPUs of its core, itself too
    core_type: str = STANDARD


def online_cpus(host: Host) -> tuple[Cpu, ...]:
    """Return the CPUs that can be used now, by number."""
    found = numbers(host.sys, f"{_CPUS}/online")
    ids = sorted(set(found)) if found is not None else _those_on(host.sys)
    there = set(names(host.sys, _CPUS))
    # One that went offline since is not there any more.
    present = [id_ for id_ in ids[:CPUS_MAX] if f"cpu{id_}" in there]
    small = numbers(host.sys, "devices/cpu_atom/cpus")
    found_cpus = (_cpu(host.sys, id_, set(present)) for id_ in present)
    return tuple(each._replace(core_type=_core_type(each.id, small)) for each in found_cpus)


def groups(cpus: Iterable[Cpu], *, by_socket: bool) -> dict[str, tuple[Cpu, ...]]:
    """Return the CPUs by the name of the device that they are part of."""
    found: dict[str, list[Cpu]] = {}
    for cpu in cpus:
        found.setdefault(_group_of(cpu, by_socket).name, []).append(cpu)
    return {name: tuple(members) for name, members in sorted(found.items())}


def group_of(members: tuple[Cpu, ...], *, by_socket: bool) -> CpuGroup:
    """Return the facts of a group of CPUs."""
    first = _group_of(members[0], by_socket)
    return first._replace(cpus=len(members), has_threads=any(map(_has_threads, members)))


def one_of(cpu: Cpu) -> OneCpu:
    """Return the facts of a CPU that is given away alone."""
    others = format_cpu_list(set(cpu.siblings) - {cpu.id})
    return OneCpu(
        id=cpu.id,
        has_threads=_has_threads(cpu),
        node=cpu.node,
        socket=cpu.socket,
        core=cpu.core,
        cache=cpu.cache,
        siblings=others,
        core_type=cpu.core_type,
    )


def by_core(cpus: Iterable[Cpu]) -> list[Cpu]:
    """Return CPUs with those of one core together: claims take them in this order."""
    return sorted(cpus, key=lambda cpu: (min(cpu.siblings), cpu.id))


def _group_of(cpu: Cpu, by_socket: bool) -> CpuGroup:
    # Without NUMA there are still sockets.
    node = None if by_socket else cpu.node
    return CpuGroup(1, False, node, cpu.socket)


def _has_threads(cpu: Cpu) -> bool:
    return len(cpu.siblings) > 1


def _core_type(id_: int, small: tuple[int, ...] | None) -> str:
    if small is None:
        return STANDARD
    return EFFICIENCY if id_ in small else PERFORMANCE


def _those_on(tree: Tree) -> list[int]:
    found = (_CPU.fullmatch(name) for name in names(tree, _CPUS))
    ids = sorted(int(each[1]) for each in found if each is not None)
    return [id_ for id_ in ids if number(tree, f"{_CPUS}/cpu{id_}/online") != 0]


def _cpu(tree: Tree, id_: int, online: set[int]) -> Cpu:
    folder = f"{_CPUS}/cpu{id_}"
    siblings = numbers(tree, f"{folder}/topology/thread_siblings_list") or ()
    return Cpu(
        id=id_,
        node=_node(tree, id_),
        socket=natural(tree, f"{folder}/topology/physical_package_id"),
        core=natural(tree, f"{folder}/topology/core_id"),
        cache=natural(tree, f"{folder}/cache/index3/id"),
        siblings=tuple(sorted({id_, *siblings} & online)),
    )


def _node(tree: Tree, cpu: int) -> int | None:
    try:
        node = numa_node_of_cpu(tree, cpu)
    except NoAttributeError:
        return None
    return node if 0 <= node < NUMA_NODES_MAX else None
