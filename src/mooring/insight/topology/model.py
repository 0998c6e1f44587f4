"""What the picture shows: machines, what is in them, and who has it.

    Topology ─┬─ Machine ─ Box (socket) ─ Box (NUMA node) ─ Box (PCIe root) ─ units
              └─ elsewhere: Box ─ units            # devices of no single node

    # unit: a device, or partitions that are made of the same thing

A level is there only where it is known: units stand in the innermost box that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from mooring.api.quantity import Quantity
from mooring.insight.devices import State
from mooring.insight.topology.owners import Hold, Owner
from mooring.insight.topology.places import Place


class Use(Struct, frozen=True):
    """How much of one capacity of a shared device is taken, and by whom."""

    name: str
    total: Quantity
    by_owner: tuple[tuple[Owner, Quantity], ...]

    @property
    def taken(self) -> Quantity:
        """The sum over all owners."""
        return sum((amount for _, amount in self.by_owner), Quantity.ZERO)

    @property
    def fraction(self) -> float:
        """The part that is taken, from 0 to 1."""
        return part_of(self.taken, self.total)


def part_of(amount: Quantity, total: Quantity) -> float:
    """Return an amount as a part of the total: 1 if it is more, where claims contradict slices."""
    # Amounts may be larger than any float; what is not larger than the total can be divided.
    inside = min(max(amount.nano, 0), total.nano)
    return inside / total.nano if total.nano > 0 else 0.0


class Item(Struct, frozen=True):
    """A device, and all that the picture says about it."""

    driver: str
    pool: str
    name: str
    state: State = State.FREE
    place: Place = Place()
    holds: tuple[Hold, ...] = ()
    admins: tuple[Owner, ...] = ()
    uses: tuple[Use, ...] = ()  # of shareable devices
    is_shareable: bool = False
    counter_sets: tuple[str, ...] = ()
    shortages: tuple[str, ...] = ()  # what a blocked device lacks
    blocked_by: tuple[Owner, ...] = ()  # who has that
    taints: tuple[str, ...] = ()
    problem: str = ""  # why nobody can get it
    conflict: str = ""  # how claims have more of it than there is

    @property
    def key(self) -> tuple[str, str, str]:
        """What names the device."""
        return (self.driver, self.pool, self.name)

    @property
    def owners(self) -> tuple[Owner, ...]:
        """The claims that have it, or some of it."""
        return tuple(hold.owner for hold in self.holds)

    @property
    def is_free(self) -> bool:
        """Whether nobody has anything of it, and it can be had."""
        return self.state is State.FREE


class Partitions(Struct, frozen=True):
    """Devices of one pool that take from the same counters, so not all can be had at once."""

    name: str
    items: tuple[Item, ...]


Unit = Item | Partitions


class Kind(Enum):
    """What a box stands for."""

    SOCKET = "socket"
    NUMA_NODE = "NUMA node"
    ROOT = "PCIe root"
    REACH = "reach"  # the nodes that can use what is in it


class Box(Struct, frozen=True):
    """A part of a machine, with the parts and devices in it."""

    kind: Kind
    label: str
    boxes: tuple[Box, ...] = ()
    units: tuple[Unit, ...] = ()

    def items(self) -> Iterator[Item]:
        """Give all devices in it."""
        for box in self.boxes:
            yield from box.items()
        yield from items_of(self.units)


class Machine(Struct, frozen=True):
    """A node with devices."""

    name: str
    boxes: tuple[Box, ...] = ()
    units: tuple[Unit, ...] = ()
    is_known: bool = True  # there is a Node object

    def items(self) -> Iterator[Item]:
        """Give all devices of the node."""
        for box in self.boxes:
            yield from box.items()
        yield from items_of(self.units)


class Topology(Struct, frozen=True):
    """All machines and devices of a snapshot."""

    machines: tuple[Machine, ...] = ()
    elsewhere: tuple[Box, ...] = ()
    owners: tuple[Owner, ...] = ()
    nodes_without_devices: int = 0

    def items(self) -> Iterator[Item]:
        """Give all devices."""
        for machine in self.machines:
            yield from machine.items()
        for box in self.elsewhere:
            yield from box.items()


def items_of(units: tuple[Unit, ...]) -> Iterator[Item]:
    """Give the devices of units."""
    for unit in units:
        match unit:
            case Item():
                yield unit
            case Partitions():
                yield from unit.items
