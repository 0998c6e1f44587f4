"""The content of the picture: nodes, their parts and devices, and the claims that own them.

    Topology ─┬─ NodeBox ─ Box (socket) ─ Box (NUMA node) ─ Box (PCIe root) ─ units
              └─ elsewhere: Box ─ units            # devices of no single node

    # unit: a device, or partitions that are made of the same thing

A level exists only if it is known: units are in the innermost known box.

Attributes give the location of a device. Their names are the standard ones, then those that drivers
used before (KEP-6072, "Current Driver Attribute Names"). `*` means the driver of the device, to
which names without a domain belong. The first name with a plausible value counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Device, DeviceAttribute
from moorage.hardware.attributes import NUMA_NODE, NUMA_NODES_MAX, PCI_BUS_ID, PCIE_ROOT, PREFIX
from moorage.insight.devices import ClaimUsage, DeviceState, DeviceUsage
from moorage.insight.devices.model import ClaimId, Holder

NUMA_NAMES = (
    NUMA_NODE,
    "*/numaNode",
    "*/numaNodeID",
    "*/numa",
    "dra.net/numaNode",
    "dra.cpu/numaNodeID",
)
SOCKET_NAMES = (
    f"{PREFIX}cpuSocketID",
    "*/socketID",
    "*/cpuSocketID",
    "*/socket",
    "dra.cpu/socketID",
)
ROOT_NAMES = (PCIE_ROOT, "*/pcieRoot")
BUS_NAMES = (PCI_BUS_ID, "*/pciBusID", "*/pciAddress", "*/pciAddr", "*/pcieBusID")
SOCKETS_MAX = 1024


class Topology(Struct, frozen=True):
    """All nodes and devices of a snapshot."""

    machines: tuple[NodeBox, ...] = ()
    elsewhere: tuple[Box, ...] = ()
    owners: tuple[Owner, ...] = ()
    nodes_without_devices: int = 0

    def items(self) -> Iterator[Item]:
        """Yield all devices."""
        for machine in self.machines:
            yield from machine.items()
        yield from _items_in(self.elsewhere, ())


class NodeBox(Struct, frozen=True):
    """A node with devices."""

    name: str
    boxes: tuple[Box, ...] = ()
    units: tuple[Unit, ...] = ()
    is_known: bool = True  # there is a Node object

    def items(self) -> Iterator[Item]:
        """Yield all devices of the node."""
        return _items_in(self.boxes, self.units)


class Box(Struct, frozen=True):
    """A part of a machine, with its parts and devices."""

    kind: BoxKind
    label: str
    boxes: tuple[Box, ...] = ()
    units: tuple[Unit, ...] = ()

    def items(self) -> Iterator[Item]:
        """Yield all devices in it."""
        return _items_in(self.boxes, self.units)


class BoxKind(Enum):
    """The kind of a box."""

    SOCKET = "socket"
    NUMA_NODE = "NUMA node"
    ROOT = "PCIe root"
    REACH = "reach"  # the nodes that can use its devices


class Partitions(Struct, frozen=True):
    """Devices of one pool that consume the same counters, so not all can be allocated at once."""

    name: str
    items: tuple[Item, ...]


# --- devices ----------------------------------------------------------------------------


class MachineLocation(Struct, frozen=True):
    """The location of a device in its machine; NUMA nodes begin with its own."""

    socket: int | None = None
    numa_nodes: tuple[int, ...] = ()
    root: str = ""
    bus_id: str = ""
    is_inferred: bool = False  # the NUMA node is taken from others on the same PCIe root
    is_whole_socket: bool = False  # of a socket rather than of one NUMA node in it

    @property
    def numa_node(self) -> int | None:
        """The NUMA node under which the device is drawn."""
        return self.numa_nodes[0] if self.numa_nodes else None


class Use(Struct, frozen=True):
    """How much of one capacity of a shared device is taken, and by whom."""

    name: str
    total: Quantity
    by_owner: tuple[tuple[Owner, Quantity], ...]

    @property
    def taken(self) -> Quantity:
        """The sum of all owners."""
        return sum((amount for _, amount in self.by_owner), Quantity.ZERO)

    @property
    def fraction(self) -> float:
        """The part that is taken, from 0 to 1."""
        return part_of(self.taken, self.total)


def part_of(amount: Quantity, total: Quantity) -> float:
    """Return an amount as a part of the total, at most 1."""
    # Amounts may be larger than any float; what is not larger than the total can be divided.
    inside = min(max(amount.nano, 0), total.nano)
    return inside / total.nano if total.nano > 0 else 0.0


class Owner(Struct, frozen=True, order=True):
    """A claim with devices."""

    namespace: str
    name: str
    users: tuple[str, ...] = ()  # whom it is reserved for

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Hold(NamedTuple):
    """An owner's hold on a device: all of it, or a share with some capacity."""

    owner: Owner
    requests: tuple[str, ...]
    is_share: bool
    consumed: Mapping[str, Quantity]


class Item(Struct, frozen=True):
    """A device, and everything that the picture says about it."""

    driver: str
    pool: str
    name: str
    state: DeviceState = DeviceState.FREE
    place: MachineLocation = MachineLocation()
    holds: tuple[Hold, ...] = ()
    admins: tuple[Owner, ...] = ()
    uses: tuple[Use, ...] = ()  # of shareable devices
    is_shareable: bool = False
    counter_sets: tuple[str, ...] = ()
    shortages: tuple[str, ...] = ()  # the missing counters of a blocked device
    blocked_by: tuple[Owner, ...] = ()  # who has that
    taints: tuple[str, ...] = ()
    problem: str = ""  # why nobody can get it
    conflict: str = ""  # how claims have more of it than there is

    @property
    def key(self) -> tuple[str, str, str]:
        """The driver, pool and name of the device."""
        return (self.driver, self.pool, self.name)

    @property
    def owners(self) -> tuple[Owner, ...]:
        """The claims that have the device, or shares of it."""
        return tuple(hold.owner for hold in self.holds)

    @property
    def is_free(self) -> bool:
        """Whether the device can be allocated as a whole."""
        return self.state is DeviceState.FREE


Unit = Item | Partitions


def items_of(units: tuple[Unit, ...]) -> Iterator[Item]:
    """Yield the devices of units."""
    for unit in units:
        match unit:
            case Item():
                yield unit
            case Partitions():
                yield from unit.items


def _items_in(boxes: Iterable[Box], units: tuple[Unit, ...]) -> Iterator[Item]:
    for box in boxes:
        yield from box.items()
    yield from items_of(units)


# --- owners -----------------------------------------------------------------------------


class Owners:
    """The claims of a cluster as owners."""

    def __init__(self, claims: Iterable[ClaimUsage]) -> None:
        self._owners = {claim.id: _owner(claim) for claim in claims}

    def of(self, claims: Iterable[ClaimId]) -> tuple[Owner, ...]:
        """Return claims as owners, each once, by name."""
        return tuple(sorted({self._owners[claim] for claim in claims}))

    def holds(self, holding: DeviceUsage) -> tuple[Hold, ...]:
        """Return the holds on a device, by owner."""
        found: dict[ClaimId, list[Holder]] = {}
        for holder in holding.holders:
            found.setdefault(holder.claim, []).append(holder)
        return tuple(
            sorted(
                (_hold(self._owners[claim], holders) for claim, holders in found.items()),
                key=lambda hold: hold.owner,
            )
        )


def _hold(owner: Owner, holders: Iterable[Holder]) -> Hold:
    """Return an owner's hold on a device, which may be several shares."""
    consumed: dict[str, Quantity] = {}
    for holder in holders:
        for name, amount in holder.consumed:
            consumed[name] = consumed.get(name, Quantity.ZERO) + amount
    requests = {holder.request for holder in holders}
    is_share = all(holder.share_id for holder in holders)
    return Hold(owner, tuple(sorted(requests)), is_share, consumed)


def _owner(claim: ClaimUsage) -> Owner:
    users = sorted(f"{consumer.kind} {consumer.name}" for consumer in claim.consumers)
    return Owner(claim.id.namespace, claim.id.name, tuple(users))


# --- locations --------------------------------------------------------------------------


def location_of(device: Device, driver: str) -> MachineLocation:
    """Return the location of a device, from its attributes."""
    names, attributes = _location_names(driver), device.attributes
    sockets = _integers(attributes, names.socket, SOCKETS_MAX)
    nodes = _integers(attributes, names.numa, NUMA_NODES_MAX)
    roots = _texts(attributes, names.root)
    buses = _texts(attributes, names.bus)
    return MachineLocation(
        socket=sockets[0] if len(sockets) == 1 else None,
        numa_nodes=nodes,
        root=roots[0] if len(roots) == 1 else "",  # CPUs may have several
        bus_id=buses[0] if len(buses) == 1 else "",
        is_whole_socket=len(sockets) == 1 and len(nodes) != 1,
    )


Attributes = Mapping[str, DeviceAttribute]


def _integers(attributes: Attributes, names: Sequence[str], limit: int) -> tuple[int, ...]:
    """Return the plausible numbers of the first attribute that has any."""
    for name in names:
        if (attribute := attributes.get(name)) is None:
            continue
        single = () if attribute.int_value is None else (attribute.int_value,)
        values = [value for value in attribute.int_values or single if 0 <= value < limit]
        if values:
            return tuple(dict.fromkeys(values))
    return ()


def _texts(attributes: Attributes, names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if (attribute := attributes.get(name)) is None:
            continue
        single = () if attribute.string_value is None else (attribute.string_value,)
        values = [value for value in attribute.string_values or single if value]
        if values:
            return tuple(dict.fromkeys(values))
    return ()


class _LocationNames(NamedTuple):
    """The attributes of a driver's devices that tell where they are, the best first."""

    socket: tuple[str, ...]
    numa: tuple[str, ...]
    root: tuple[str, ...]
    bus: tuple[str, ...]


@lru_cache(maxsize=1000)
def _location_names(driver: str) -> _LocationNames:
    def written(names: Sequence[str]) -> Iterator[str]:
        for name in names:
            domain, _, last = name.partition("/")
            if domain == "*":
                yield from (f"{driver}/{last}", last)
            elif domain == driver:
                yield from (name, last)  # A driver may leave out its own domain.
            else:
                yield name

    groups = (SOCKET_NAMES, NUMA_NAMES, ROOT_NAMES, BUS_NAMES)
    return _LocationNames(*(tuple(dict.fromkeys(written(each))) for each in groups))
