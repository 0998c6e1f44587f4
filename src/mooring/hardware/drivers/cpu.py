"""dra.cpu (kubernetes-sigs/dra-driver-cpu), with its CPUs grouped by NUMA node."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import Device, NodeAllocatableMapping, NodeAllocatableResource
from mooring.hardware.board import NumaNode
from mooring.hardware.machine import Machine, Sheet, amount, flag, whole

DRIVER = "dra.cpu"
CAPACITY = "dra.cpu/cpu"


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Give one device for every NUMA node with CPUs; pods share it."""
    nodes = (node for node in machine.board.numa.nodes if node.cpu_ids)
    yield Sheet(tuple(_device(machine, node) for node in nodes))


def _device(machine: Machine, node: NumaNode) -> Device:
    cpus = len(node.cpu_ids)
    return Device(
        name=f"cpudevnuma{node.id:03d}",
        attributes={
            **machine.numa_attributes(node.id),
            "dra.cpu/numaNodeID": whole(node.id),
            "dra.net/numaNode": whole(node.id),
            "dra.cpu/numCPUs": whole(cpus),
            "dra.cpu/smtEnabled": flag(machine.board.cpu.threads_per_core > 1),
            "dra.cpu/socketID": whole(node.socket),
        },
        capacity={CAPACITY: amount(cpus)},
        allow_multiple_allocations=True,
        node_allocatable_resources={
            "cpu": NodeAllocatableResource(
                mapping=NodeAllocatableMapping(
                    capacity_key=CAPACITY, capacity_multiplier=Quantity.from_int(1)
                )
            )
        },
    )
