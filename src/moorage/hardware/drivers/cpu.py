"""dra.cpu (kubernetes-sigs/dra-driver-cpu): CPUs in groups that pods share, or one by one.

A profile shows them grouped by NUMA node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Device, NodeAllocatableMapping, NodeAllocatableResource
from moorage.hardware.attributes import Attributes, DeviceLocation, amount, flag, text, whole
from moorage.hardware.machine import Machine, Sheet

DRIVER = "dra.cpu"
CAPACITY = "dra.cpu/cpu"
CPU_ID = "dra.cpu/cpuID"
ONE = Quantity.from_int(1)


class CpuGroup(NamedTuple):
    """CPUs that are allocated by number, not by name; None is unknown."""

    cpus: int
    has_threads: bool  # two CPUs and more on a core
    node: int | None = None
    socket: int | None = None

    @property
    def name(self) -> str:
        """The device name: by NUMA node, else by socket."""
        if self.node is not None:
            return f"cpudevnuma{self.node:03d}"
        return f"cpudevsocket{self.socket or 0:03d}"


class OneCpu(NamedTuple):
    """A CPU that is allocated alone; None is unknown."""

    id: int
    has_threads: bool
    node: int | None = None
    socket: int | None = None
    core: int | None = None
    cache: int | None = None  # the third level, which others may share
    siblings: str = ""  # the other CPUs of its core
    core_type: str = "standard"  # p-core and e-core, if there are two types

    @property
    def name(self) -> str:
        """The device name: by the CPU's number, so that it is stable."""
        return f"cpudev{self.id:03d}"


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Yield one device for every NUMA node with CPUs; pods share it."""
    has_threads = machine.board.cpu.threads_per_core > 1
    groups = (
        CpuGroup(len(node.cpu_ids), has_threads, node.id, node.socket)
        for node in machine.board.numa.nodes
        if node.cpu_ids
    )
    yield Sheet(tuple(group_device(machine.place, group) for group in groups))


def group_device(place: DeviceLocation, group: CpuGroup) -> Device:
    """Return CPUs of which each claim consumes a number."""
    mapping = NodeAllocatableMapping(capacity_key=CAPACITY, capacity_multiplier=ONE)
    return Device(
        name=group.name,
        attributes={
            **place.numa_attributes(group.node),
            **_numbers(
                {
                    "dra.cpu/numaNodeID": group.node,
                    "dra.net/numaNode": group.node,
                    "dra.cpu/numCPUs": group.cpus,
                    "dra.cpu/socketID": group.socket,
                }
            ),
            "dra.cpu/smtEnabled": flag(group.has_threads),
        },
        capacity={CAPACITY: amount(group.cpus)},
        allow_multiple_allocations=True,
        node_allocatable_resources={"cpu": NodeAllocatableResource(mapping=mapping)},
    )


def cpu_device(place: DeviceLocation, cpu: OneCpu) -> Device:
    """Return one CPU, for one claim."""
    mapping = NodeAllocatableMapping(device_multiplier=ONE)
    siblings = {"dra.cpu/siblings": text(cpu.siblings)} if cpu.siblings else {}
    return Device(
        name=cpu.name,
        attributes={
            **place.numa_attributes(cpu.node),
            **_numbers(
                {
                    "dra.cpu/numaNodeID": cpu.node,
                    "dra.net/numaNode": cpu.node,
                    "dra.cpu/socketID": cpu.socket,
                    "dra.cpu/cacheL3ID": cpu.cache,
                    "dra.cpu/coreID": cpu.core,
                    CPU_ID: cpu.id,
                }
            ),
            "dra.cpu/smtEnabled": flag(cpu.has_threads),
            "dra.cpu/coreType": text(cpu.core_type),
            **siblings,
        },
        node_allocatable_resources={"cpu": NodeAllocatableResource(mapping=mapping)},
    )


def _numbers(numbers: dict[str, int | None]) -> Attributes:
    return {name: whole(value) for name, value in numbers.items() if value is not None}
