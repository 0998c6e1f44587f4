"""dra.cpu: the CPUs of this machine, each as a device, or in groups of which claims take some.

In groups a claim says how many CPUs it wants; which ones they are is decided here, when it is
prepared, and remembered until it is unprepared. What was decided stands in the variables that the
container gets, so that a driver that starts again learns it from what it prepared before.

    DRA_CPUSET_<uid>=0-3              the CPUs of the claim, as dra-driver-cpu tells them
    MOORING_CPUSET_<uid>_<request>=…  those of a request: a process is bound to them
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mooring.api.binding import CPUS, variable
from mooring.api.cdi import ContainerEdits
from mooring.api.resource.v1 import Device
from mooring.driver.driver import (
    AllocatedDevice,
    Claim,
    ClaimName,
    Prepared,
    PrepareError,
)
from mooring.drivers.changes import WatchingDriver
from mooring.drivers.cpus import Cpu, by_core, group_of, groups, one_of, online_cpus
from mooring.drivers.cpusets import choose
from mooring.drivers.given import consumed, gone
from mooring.drivers.host import Host
from mooring.hardware.drivers.cpu import CAPACITY, DRIVER, cpu_device, group_device
from mooring.hardware.numbers import format_cpu_list, parse_cpu_list
from mooring.hardware.values import whole

CLAIM_VARIABLE = "DRA_CPUSET"
ALLOCATED = "dra.cpu/allocatedNumCPUs"

Given = dict[str, tuple[int, ...]]  # the CPUs of each request of a claim


class CpuSettings(NamedTuple):
    """How the CPUs are given away."""

    is_individual: bool = False  # each CPU is a device; else they are in groups
    by_socket: bool = False  # groups are sockets; else NUMA nodes
    reserved: tuple[int, ...] = ()  # never given away


class CpuDriver(WatchingDriver):
    """Gives CPUs away, none to two claims."""

    name = DRIVER
    subsystems = frozenset({"cpu", "node"})

    def __init__(self, host: Host, settings: CpuSettings = CpuSettings()) -> None:  # noqa: B008
        self._host = host
        self._settings = settings
        self._given: dict[str, Given] = {}  # by the uid of the claim

    def devices(self) -> list[Device]:
        """Return the CPUs that are online and not reserved."""
        cpus, place = self._cpus(), self._host.place
        if self._settings.is_individual:
            return [cpu_device(place, one_of(cpu)) for cpu in by_core(cpus)]
        by_socket = self._settings.by_socket
        found = groups(cpus, by_socket=by_socket).values()
        return [group_device(place, group_of(each, by_socket=by_socket)) for each in found]

    def prepare(self, claim: Claim) -> Iterator[Prepared]:
        """Decide which CPUs the claim has, and tell its containers."""
        given = self._known(claim) or self._decide(claim)
        owned = {each.request for each in claim.devices if not each.has_admin_access}
        self._given[claim.uid] = {name: cpus for name, cpus in given.items() if name in owned}
        every = format_cpu_list(cpu for cpus in given.values() for cpu in cpus)
        for device in claim.devices:
            cpus = given[device.request]
            env = (
                f"{CLAIM_VARIABLE}_{claim.uid}={every}",
                f"{variable(CPUS, claim.uid, device.request)}={format_cpu_list(cpus)}",
            )
            count = {ALLOCATED: whole(len(cpus))}
            yield Prepared(device, ContainerEdits(env=env), attributes=count)

    def unprepare(self, claim: ClaimName) -> None:
        """Have the CPUs of a claim back."""
        self._given.pop(claim.uid, None)

    def restored(self, claim: ClaimName, prepared: Iterable[Prepared]) -> None:
        """Learn which CPUs a claim has that was prepared before this driver started."""
        told = {each.device.request: _told(claim, each) for each in _owned(prepared)}
        self._given[claim.uid] = {request: cpus for request, cpus in told.items() if cpus}

    # --- deciding -------------------------------------------------------------------------

    def _known(self, claim: Claim) -> Given | None:
        """Return what was decided before, if it was for all requests of the claim."""
        given = self._given.get(claim.uid, {})
        return given if all(each.request in given for each in claim.devices) else None

    def _decide(self, claim: Claim) -> Given:
        """Return the CPUs of each request; nothing changes if there is no room for all."""
        others = (given for uid, given in self._given.items() if uid != claim.uid)
        taken = {cpu for given in others for cpus in given.values() for cpu in cpus}
        given: Given = {}
        for device in claim.devices:
            if device.has_admin_access:
                cpus = self._all_of(device)
            else:
                cpus = self._some_of(device, taken)
                taken.update(cpus)
            given[device.request] = (*given.get(device.request, ()), *cpus)
        return given

    def _some_of(self, device: AllocatedDevice, taken: set[int]) -> tuple[int, ...]:
        members = self._members(device)
        free = [cpu for cpu in members if cpu.id not in taken]
        count = 1 if self._settings.is_individual else _wanted(device)
        chosen = choose(free, count)
        if chosen is None:
            raise PrepareError(
                f"device {device.name}: {count} CPUs are wanted, and {len(free)} of its "
                f"{len(members)} are free"
            )
        return chosen

    def _all_of(self, device: AllocatedDevice) -> tuple[int, ...]:
        return tuple(cpu.id for cpu in self._members(device))

    def _members(self, device: AllocatedDevice) -> tuple[Cpu, ...]:
        """Return the CPUs that a device stands for, or raise PrepareError."""
        cpus = self._cpus()
        if self._settings.is_individual:
            found = tuple(cpu for cpu in cpus if one_of(cpu).name == device.name)
        else:
            by_name = groups(cpus, by_socket=self._settings.by_socket)
            found = by_name.get(device.name, ())
        if not found:
            raise gone(device)
        return found

    def _cpus(self) -> list[Cpu]:
        reserved = set(self._settings.reserved)
        return [cpu for cpu in online_cpus(self._host) if cpu.id not in reserved]


def _wanted(device: AllocatedDevice) -> int:
    amount = consumed(device, CAPACITY)
    if amount is None:
        raise PrepareError(f"device {device.name}: the claim does not say how many CPUs it takes")
    if amount.sign <= 0 or amount.nano % 1_000_000_000:
        raise PrepareError(f"device {device.name}: {amount} is not a whole number of CPUs")
    return amount.value


def _owned(prepared: Iterable[Prepared]) -> Iterator[Prepared]:
    return (each for each in prepared if not each.device.has_admin_access)


def _told(claim: ClaimName, prepared: Prepared) -> tuple[int, ...]:
    """Return the CPUs of a request from what its containers were told."""
    name = variable(CPUS, claim.uid, prepared.device.request)
    for line in prepared.edits.env:
        key, _, value = line.partition("=")
        if key == name:
            return parse_cpu_list(value)
    return ()
