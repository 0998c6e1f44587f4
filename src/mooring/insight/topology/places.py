"""Where in its machine a device says it is: socket, NUMA nodes, PCIe root, address on PCI.

Names of attributes are the standard ones, then those that drivers had before (KEP-6072, "Current
Driver Attribute Names"). `*` is the driver of the device, to which names without a domain belong.
The first name with a value that can be meant counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from mooring.api.resource.v1 import Device, DeviceAttribute
from mooring.hardware.attributes import NUMA_NODE, NUMA_NODES_MAX, PCI_BUS_ID, PCIE_ROOT, PREFIX

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


class Place(Struct, frozen=True):
    """What is known of the place of a device; NUMA nodes begin with its own."""

    socket: int | None = None
    numa_nodes: tuple[int, ...] = ()
    root: str = ""
    bus_id: str = ""
    is_inferred: bool = False  # the NUMA node is that of others on the same PCIe root
    is_whole_socket: bool = False  # of a socket rather than of one NUMA node in it

    @property
    def numa_node(self) -> int | None:
        """The NUMA node under which the device stands."""
        return self.numa_nodes[0] if self.numa_nodes else None


def place_of(device: Device, driver: str) -> Place:
    """Return what the attributes of a device say about its place."""
    sockets = _integers(device, driver, SOCKET_NAMES, SOCKETS_MAX)
    nodes = _integers(device, driver, NUMA_NAMES, NUMA_NODES_MAX)
    roots = _texts(device, driver, ROOT_NAMES)
    buses = _texts(device, driver, BUS_NAMES)
    return Place(
        socket=sockets[0] if len(sockets) == 1 else None,
        numa_nodes=nodes,
        root=roots[0] if len(roots) == 1 else "",  # CPUs may have several
        bus_id=buses[0] if len(buses) == 1 else "",
        is_whole_socket=len(sockets) == 1 and len(nodes) != 1,
    )


def _integers(device: Device, driver: str, names: Sequence[str], limit: int) -> tuple[int, ...]:
    """Return the numbers of the first attribute that has some which can be meant."""
    for attribute in _attributes(device, driver, names):
        single = () if attribute.int_value is None else (attribute.int_value,)
        values = [value for value in attribute.int_values or single if 0 <= value < limit]
        if values:
            return tuple(dict.fromkeys(values))
    return ()


def _texts(device: Device, driver: str, names: Sequence[str]) -> tuple[str, ...]:
    for attribute in _attributes(device, driver, names):
        single = () if attribute.string_value is None else (attribute.string_value,)
        values = [value for value in attribute.string_values or single if value]
        if values:
            return tuple(dict.fromkeys(values))
    return ()


def _attributes(device: Device, driver: str, names: Sequence[str]) -> Iterator[DeviceAttribute]:
    for name in names:
        domain, _, last = name.partition("/")
        written = (f"{driver}/{last}", last) if domain == "*" else (name,)
        # A driver may leave out its own domain.
        for each in (*written, last) if domain == driver else written:
            if each in device.attributes:
                yield device.attributes[each]
