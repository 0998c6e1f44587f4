"""dra.memory (ffromani/dra-driver-memory): the memory of every NUMA node, by pages."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceCapacity,
    NodeAllocatableMapping,
    NodeAllocatableResource,
)
from mooring.hardware.board import NumaNode
from mooring.hardware.machine import Machine, Sheet, flag, text, whole

DRIVER = "dra.memory"
CAPACITY = "size"
PAGE = Quantity.parse("4Ki")
SMALLEST = Quantity.parse("1Mi")


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Give one device for every NUMA node; pods share it."""
    yield Sheet(tuple(_device(machine, node) for node in machine.board.numa.nodes))


def _device(machine: Machine, node: NumaNode) -> Device:
    # The driver ends its names with random letters; here a name is always the same.
    return Device(
        name=f"memory-numa{node.id}",
        attributes={
            **machine.numa_attributes(node.id),
            "dra.memory/numaNode": whole(node.id),
            "dra.cpu/numaNodeID": whole(node.id),
            "dra.net/numaNode": whole(node.id),
            "dra.memory/hugeTLB": flag(False),
            "dra.memory/pageSize": text(str(PAGE)),
        },
        capacity={CAPACITY: _size(Quantity.parse(node.memory))},
        allow_multiple_allocations=True,
        node_allocatable_resources={
            "memory": NodeAllocatableResource(
                mapping=NodeAllocatableMapping(
                    capacity_key=CAPACITY, capacity_multiplier=Quantity.from_int(1)
                )
            )
        },
    )


def _size(value: Quantity) -> DeviceCapacity:
    return DeviceCapacity(
        value=value,
        request_policy=CapacityRequestPolicy(
            default=SMALLEST,
            valid_range=CapacityRequestPolicyRange(min=PAGE, max=value, step=PAGE),
        ),
    )
