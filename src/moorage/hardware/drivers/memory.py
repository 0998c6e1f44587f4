"""dra.memory (ffromani/dra-driver-memory): the memory of every NUMA node, by size of its pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceCapacity,
    NodeAllocatableMapping,
    NodeAllocatableResource,
)
from moorage.hardware.attributes import DeviceLocation, flag, text, whole
from moorage.hardware.machine import Machine, Sheet

DRIVER = "dra.memory"
CAPACITY = "size"
PAGE = Quantity.parse("4Ki")
SMALLEST = Quantity.parse("1Mi")  # the default amount of a claim


class Pages(NamedTuple):
    """Memory in pages of one size; the node is None on a machine without NUMA."""

    size: Quantity
    page: Quantity = PAGE
    is_huge: bool = False
    node: int | None = None

    @property
    def resource(self) -> str:
        """What Kubernetes calls it on a node."""
        return f"hugepages-{self.page}" if self.is_huge else "memory"

    @property
    def name(self) -> str:
        """The device name."""
        # The driver ends its names with random letters; here a name is always the same.
        where = "" if self.node is None else f"-numa{self.node}"
        return f"{self.resource.lower()}{where}"


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Yield one device for every NUMA node; pods share it."""
    pages = (Pages(Quantity.parse(node.memory), node=node.id) for node in machine.board.numa.nodes)
    yield Sheet(tuple(memory_device(machine.place, each) for each in pages))


def memory_device(place: DeviceLocation, pages: Pages) -> Device:
    """Return memory of which each claim consumes an amount."""
    names = ("dra.memory/numaNode", "dra.cpu/numaNodeID", "dra.net/numaNode")
    own = {} if pages.node is None else dict.fromkeys(names, whole(pages.node))
    mapping = NodeAllocatableMapping(
        capacity_key=CAPACITY, capacity_multiplier=Quantity.from_int(1)
    )
    return Device(
        name=pages.name,
        attributes={
            **place.numa_attributes(pages.node),
            **own,
            "dra.memory/hugeTLB": flag(pages.is_huge),
            "dra.memory/pageSize": text(str(pages.page)),
        },
        capacity={CAPACITY: _size(pages)},
        allow_multiple_allocations=True,
        node_allocatable_resources={pages.resource: NodeAllocatableResource(mapping=mapping)},
    )


def _size(pages: Pages) -> DeviceCapacity:
    return DeviceCapacity(
        value=pages.size,
        request_policy=CapacityRequestPolicy(
            default=pages.page if pages.is_huge else SMALLEST,
            valid_range=CapacityRequestPolicyRange(min=pages.page, max=pages.size, step=pages.page),
        ),
    )
