"""dra.cpu: the CPUs of this machine, each as a device, or in groups of which claims take some.

With groups, a claim requests a number of CPUs. The driver decides which ones when it prepares the
claim, and remembers them until it unprepares it. The container's environment has the decision, so
that a restarted driver learns it from what it prepared before.

    DRA_CPUSET_<uid>=0-3              the CPUs of the claim, as dra-driver-cpu names them
    MOORAGE_CPUSET_<uid>_<request>=…  those of a request: a process is bound to them

CPUs are chosen as whole cores, near to each other:

1. Of the NUMA nodes with enough free CPUs, take the one with the fewest, so that others stay whole.
   If none has enough, begin with those that have the most.
2. In a node, take cores that are completely free, as long as all their CPUs are needed.
3. Take the rest from cores that others use already; then split one.

They are read from sysfs:

devices/system/cpu/online                 0-63; without it, every cpuN whose own `online` is not 0
devices/system/cpu/cpu0/topology/         physical_package_id, core_id, thread_siblings_list
devices/system/cpu/cpu0/cache/index3/id   the cache that the cores near it share
devices/system/cpu/cpu0/node0             a link to its NUMA node; a kernel without NUMA has none
devices/cpu_atom/cpus                     the small cores of a machine that has two types
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from moorage.api.cdi import ContainerEdits
from moorage.api.process_binding import CPUS, binding_variable
from moorage.api.resource.v1 import Device
from moorage.driver.driver import (
    AllocatedDevice,
    Claim,
    ClaimName,
    Prepared,
    PrepareError,
)
from moorage.drivers.host import (
    Host,
    WatchingDriver,
    consumed,
    device_gone,
    folder_names,
    read_integer,
    read_list,
    read_natural,
)
from moorage.hardware.attributes import NUMA_NODES_MAX, numa_node_of_cpu, whole
from moorage.hardware.drivers.cpu import (
    CAPACITY,
    DRIVER,
    CpuGroup,
    OneCpu,
    cpu_device,
    group_device,
)
from moorage.hardware.errors import NoAttributeError
from moorage.hardware.numbers import CPUS_MAX, format_cpu_list, parse_cpu_list
from moorage.hardware.sysfs_tree import SysfsTree

CLAIM_VARIABLE = "DRA_CPUSET"
ALLOCATED = "dra.cpu/allocatedNumCPUs"

RequestCpus = dict[str, tuple[int, ...]]  # the CPUs of each request of a claim

STANDARD, PERFORMANCE, EFFICIENCY = "standard", "p-core", "e-core"

_CPUS = "devices/system/cpu"
_CPU = re.compile(r"cpu([0-9]{1,5})")


class CpuSettings(NamedTuple):
    """How CPUs are published."""

    is_individual: bool = False  # each CPU is a device; else they are in groups
    by_socket: bool = False  # groups are sockets; else NUMA nodes
    reserved: tuple[int, ...] = ()  # never published


class CpuDriver(WatchingDriver):
    """Allocates CPUs, each to one claim only."""

    name = DRIVER
    subsystems = frozenset({"cpu", "node"})

    def __init__(self, host: Host, settings: CpuSettings = CpuSettings()) -> None:  # noqa: B008
        super().__init__(host)
        self._settings = settings
        self._assigned: dict[str, RequestCpus] = {}  # by the uid of the claim

    def devices(self) -> list[Device]:
        """Return the CPUs that are online and not reserved."""
        cpus, place = self._cpus(), self._host.place
        if self._settings.is_individual:
            return [cpu_device(place, cpu_facts(cpu)) for cpu in sorted_by_core(cpus)]
        by_socket = self._settings.by_socket
        found = cpu_groups(cpus, by_socket=by_socket).values()
        return [group_device(place, group_facts(each, by_socket=by_socket)) for each in found]

    def prepare(self, claim: Claim) -> Iterator[Prepared]:
        """Decide which CPUs the claim gets, and set the environment of its containers."""
        assigned = self._decided(claim) or self._decide(claim)
        owned = {each.request for each in claim.devices if not each.has_admin_access}
        self._assigned[claim.uid] = {name: cpus for name, cpus in assigned.items() if name in owned}
        every = format_cpu_list(cpu for cpus in assigned.values() for cpu in cpus)
        for device in claim.devices:
            cpus = assigned[device.request]
            env = (
                f"{CLAIM_VARIABLE}_{claim.uid}={every}",
                f"{binding_variable(CPUS, claim.uid, device.request)}={format_cpu_list(cpus)}",
            )
            count = {ALLOCATED: whole(len(cpus))}
            yield Prepared(device, ContainerEdits(env=env), attributes=count)

    def unprepare(self, claim: ClaimName) -> None:
        """Free the CPUs of a claim."""
        self._assigned.pop(claim.uid, None)

    def restored(self, claim: ClaimName, prepared: Iterable[Prepared]) -> None:
        """Restore the CPUs of a claim that was prepared before this driver started."""
        cpus_by_request = {each.device.request: _cpus_of(claim, each) for each in _owned(prepared)}
        self._assigned[claim.uid] = {key: cpus for key, cpus in cpus_by_request.items() if cpus}

    # --- allocation -------------------------------------------------------------------------------

    def _decided(self, claim: Claim) -> RequestCpus | None:
        """Return the earlier decision, if it covers all requests of the claim."""
        assigned = self._assigned.get(claim.uid, {})
        return assigned if all(each.request in assigned for each in claim.devices) else None

    def _decide(self, claim: Claim) -> RequestCpus:
        """Return the CPUs of each request, or raise without changing anything."""
        others = (assigned for uid, assigned in self._assigned.items() if uid != claim.uid)
        taken = {cpu for assigned in others for cpus in assigned.values() for cpu in cpus}
        assigned: RequestCpus = {}
        for device in claim.devices:
            if device.has_admin_access:
                cpus = self._all_of(device)
            else:
                cpus = self._some_of(device, taken)
                taken.update(cpus)
            assigned[device.request] = (*assigned.get(device.request, ()), *cpus)
        return assigned

    def _some_of(self, device: AllocatedDevice, taken: set[int]) -> tuple[int, ...]:
        members = self._members(device)
        free = [cpu for cpu in members if cpu.id not in taken]
        count = 1 if self._settings.is_individual else _requested(device)
        chosen = choose_cpus(free, count)
        if chosen is None:
            raise PrepareError(
                f"device {device.name}: {count} CPUs are requested, and {len(free)} of its "
                f"{len(members)} are free"
            )
        return chosen

    def _all_of(self, device: AllocatedDevice) -> tuple[int, ...]:
        return tuple(cpu.id for cpu in self._members(device))

    def _members(self, device: AllocatedDevice) -> tuple[Cpu, ...]:
        """Return the CPUs of a device, or raise PrepareError."""
        cpus = self._cpus()
        if self._settings.is_individual:
            found = tuple(cpu for cpu in cpus if cpu_facts(cpu).name == device.name)
        else:
            by_name = cpu_groups(cpus, by_socket=self._settings.by_socket)
            found = by_name.get(device.name, ())
        if not found:
            raise device_gone(device)
        return found

    def _cpus(self) -> list[Cpu]:
        reserved = set(self._settings.reserved)
        return [cpu for cpu in online_cpus(self._host) if cpu.id not in reserved]


def _requested(device: AllocatedDevice) -> int:
    amount = consumed(device, CAPACITY)
    if amount is None:
        raise PrepareError(f"device {device.name}: the claim does not say how many CPUs it takes")
    if amount.sign <= 0 or amount.nano % 1_000_000_000:
        raise PrepareError(f"device {device.name}: {amount} is not a whole number of CPUs")
    return amount.value


def _owned(prepared: Iterable[Prepared]) -> Iterator[Prepared]:
    return (each for each in prepared if not each.device.has_admin_access)


def _cpus_of(claim: ClaimName, prepared: Prepared) -> tuple[int, ...]:
    """Return the CPUs of a request from its environment variable."""
    name = binding_variable(CPUS, claim.uid, prepared.device.request)
    for line in prepared.edits.env:
        key, _, value = line.partition("=")
        if key == name:
            return parse_cpu_list(value)
    return ()


# --- choosing CPUs --------------------------------------------------------------------------------


def choose_cpus(free: Iterable[Cpu], count: int) -> tuple[int, ...] | None:
    """Return a number of free CPUs; None if there are too few."""
    nodes: dict[int, list[Cpu]] = {}
    for cpu in free:
        nodes.setdefault(-1 if cpu.node is None else cpu.node, []).append(cpu)
    if sum(map(len, nodes.values())) < count:
        return None
    chosen: list[int] = []
    for node in _best_first(nodes, count):
        chosen += _of_node(node, count - len(chosen))
    return tuple(sorted(chosen))


def _best_first(nodes: dict[int, list[Cpu]], count: int) -> Iterator[list[Cpu]]:
    sufficient = [node for node, cpus in nodes.items() if len(cpus) >= count]
    if sufficient:
        yield nodes[min(sufficient, key=lambda node: (len(nodes[node]), node))]
        return
    for node in sorted(nodes, key=lambda node: (-len(nodes[node]), node)):
        yield nodes[node]


def _of_node(cpus: list[Cpu], count: int) -> list[int]:
    cores: dict[int, list[Cpu]] = {}
    for cpu in sorted(cpus):
        cores.setdefault(min(cpu.siblings), []).append(cpu)
    chosen: list[int] = []
    for members in cores.values():
        is_whole = len(members) == len(members[0].siblings)
        if is_whole and len(members) <= count - len(chosen):
            chosen += [cpu.id for cpu in members]
    # Cores with the fewest free CPUs come first: those are in use, or the smallest to split.
    rest = sorted(cores.values(), key=lambda members: (len(members), members[0].id))
    for cpu in (cpu for members in rest for cpu in members if cpu.id not in chosen):
        if len(chosen) == count:
            break
        chosen.append(cpu.id)
    return chosen


# --- sysfs ----------------------------------------------------------------------------------------


class Cpu(NamedTuple):
    """An online CPU; None is unknown."""

    id: int
    node: int | None
    socket: int | None
    core: int | None
    cache: int | None
    siblings: tuple[int, ...]  # all CPUs of its core, including itself
    core_type: str = STANDARD


def online_cpus(host: Host) -> tuple[Cpu, ...]:
    """Return the online CPUs, by number."""
    found = read_list(host.sys, f"{_CPUS}/online")
    ids = sorted(set(found)) if found is not None else _online_ids(host.sys)
    existing = set(folder_names(host.sys, _CPUS))
    # A CPU that just went offline has no folder.
    present = [id_ for id_ in ids[:CPUS_MAX] if f"cpu{id_}" in existing]
    small = read_list(host.sys, "devices/cpu_atom/cpus")
    found_cpus = (_read_cpu(host.sys, id_, set(present)) for id_ in present)
    return tuple(each._replace(core_type=_core_type(each.id, small)) for each in found_cpus)


def cpu_groups(cpus: Iterable[Cpu], *, by_socket: bool) -> dict[str, tuple[Cpu, ...]]:
    """Return the CPUs by the name of their device."""
    found: dict[str, list[Cpu]] = {}
    for cpu in cpus:
        found.setdefault(_group_of(cpu, by_socket).name, []).append(cpu)
    return {name: tuple(members) for name, members in sorted(found.items())}


def group_facts(members: tuple[Cpu, ...], *, by_socket: bool) -> CpuGroup:
    """Describe a group of CPUs."""
    first = _group_of(members[0], by_socket)
    return first._replace(cpus=len(members), has_threads=any(map(_has_threads, members)))


def cpu_facts(cpu: Cpu) -> OneCpu:
    """Describe a single CPU."""
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


def sorted_by_core(cpus: Iterable[Cpu]) -> list[Cpu]:
    """Return CPUs with those of one core together, the order of allocation."""
    return sorted(cpus, key=lambda cpu: (min(cpu.siblings), cpu.id))


def _group_of(cpu: Cpu, by_socket: bool) -> CpuGroup:
    # Without NUMA, the group is the socket.
    node = None if by_socket else cpu.node
    return CpuGroup(1, False, node, cpu.socket)


def _has_threads(cpu: Cpu) -> bool:
    return len(cpu.siblings) > 1


def _core_type(id_: int, small: tuple[int, ...] | None) -> str:
    if small is None:
        return STANDARD
    return EFFICIENCY if id_ in small else PERFORMANCE


def _online_ids(tree: SysfsTree) -> list[int]:
    found = (_CPU.fullmatch(name) for name in folder_names(tree, _CPUS))
    ids = sorted(int(each[1]) for each in found if each is not None)
    return [id_ for id_ in ids if read_integer(tree, f"{_CPUS}/cpu{id_}/online") != 0]


def _read_cpu(tree: SysfsTree, id_: int, online: set[int]) -> Cpu:
    folder = f"{_CPUS}/cpu{id_}"
    siblings = read_list(tree, f"{folder}/topology/thread_siblings_list") or ()
    return Cpu(
        id=id_,
        node=_numa_node(tree, id_),
        socket=read_natural(tree, f"{folder}/topology/physical_package_id"),
        core=read_natural(tree, f"{folder}/topology/core_id"),
        cache=read_natural(tree, f"{folder}/cache/index3/id"),
        siblings=tuple(sorted({id_, *siblings} & online)),
    )


def _numa_node(tree: SysfsTree, cpu: int) -> int | None:
    try:
        node = numa_node_of_cpu(tree, cpu)
    except NoAttributeError:
        return None
    return node if 0 <= node < NUMA_NODES_MAX else None
