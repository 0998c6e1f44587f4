"""The standard attributes of devices, read from sysfs: pciBusID, pcieRoot and numaNode.

Drivers publish these beside their own. A driver leaves out an attribute that it cannot determine
(NoAttributeError): absence means unknown, and an invented value would match other devices.

numaNode has two forms. The scalar is the device's own NUMA node. The list begins with it, followed
by the nearest nodes on the same socket:

1. read the row of distances (ACPI SLIT) of the device's node, which has a column for each online
   node, in the order of `online`: with nodes 0,2-3 the second column belongs to node 2;
2. find the smallest distance to any other node, of any socket;
3. keep the nodes at that distance whose socket is the same, or unknown.

If it is not known how far which node is, the list has only the device's own node.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from moorage.api.gates import Gate, Gates
from moorage.api.quantity import Format, Quantity
from moorage.api.resource.v1 import DeviceAttribute, DeviceCapacity
from moorage.hardware.errors import NoAttributeError, TreeError
from moorage.hardware.numbers import PciAddress, parse_cpu_list, parse_integer
from moorage.hardware.sysfs_tree import SysfsTree

PREFIX = "resource.kubernetes.io/"
PCI_BUS_ID = f"{PREFIX}pciBusID"
PCIE_ROOT = f"{PREFIX}pcieRoot"
NUMA_NODE = f"{PREFIX}numaNode"

NUMA_NODES_MAX = 1024  # Linux has no more, on any architecture

_PCI_DEVICES = "bus/pci/devices"
_NODES = "devices/system/node"
_CPUS = "devices/system/cpu"
_NODE_NAME = re.compile(r"node[0-9].*")
_NODE_FOLDER = re.compile(r"node([0-9]{1,4})")

Attributes = dict[str, DeviceAttribute]
Capacities = dict[str, DeviceCapacity]

TEXT_BYTES_MAX = 64  # of a string attribute


class NumaNodeForm(IntEnum):
    """How numaNode is published: the operator decides, and lists need the gate
    DRAListTypeAttributes. False and True mean scalar and list."""

    SCALAR = 0
    LIST = 1


def numa_form_problem(form: NumaNodeForm, gates: Gates) -> str | None:
    """Return why an API server would reject slices with this form of numaNode, if it would."""
    gate = Gate.DRA_LIST_TYPE_ATTRIBUTES
    if form is not NumaNodeForm.LIST or gates.enabled(gate):
        return None
    return f"feature gate {gate} is off, and without it an attribute cannot have a list"


class NamedAttribute(NamedTuple):
    """The name and value of an attribute."""

    name: str
    value: DeviceAttribute


def pci_bus_id(bus_id: str) -> NamedAttribute:
    """Return the attribute with the address of a PCI device."""
    _check_bus_id(bus_id)
    return NamedAttribute(PCI_BUS_ID, DeviceAttribute(string_value=bus_id))


def pcie_root(tree: SysfsTree, bus_id: str) -> NamedAttribute:
    """Return the PCIe root of a device: `pci0000:00`."""
    _check_bus_id(bus_id)
    try:
        root = _root_of(tree, bus_id)
    except (NoAttributeError, TreeError) as error:
        raise NoAttributeError(
            f"failed to resolve PCIe Root Complex for PCI Bus ID {bus_id}: {error}"
        ) from None
    return NamedAttribute(PCIE_ROOT, DeviceAttribute(string_value=root))


def numa_node_of_pci(
    tree: SysfsTree, bus_id: str, form: NumaNodeForm | bool = NumaNodeForm.SCALAR
) -> NamedAttribute:
    """Return the NUMA node of a PCI device, or its node and the nearest ones."""
    _check_bus_id(bus_id)
    try:
        node = _integer(tree, f"{_PCI_DEVICES}/{bus_id}/numa_node")
    except TreeError as error:
        raise NoAttributeError(
            f"failed to read NUMA node for PCI Bus ID {bus_id}: {error}"
        ) from None
    if node < 0:
        raise NoAttributeError(
            f"PCI device {bus_id} has no NUMA affinity (numa_node={node}); "
            "do not publish the numaNode attribute for it"
        )
    return _numa_attribute(tree, node, form)


def numa_node(
    tree: SysfsTree, node: int, form: NumaNodeForm | bool = NumaNodeForm.SCALAR
) -> NamedAttribute:
    """Return the NUMA attribute of a device whose node is known, such as a CPU."""
    if node < 0:
        raise NoAttributeError(
            f"invalid NUMA node {node}: do not publish the numaNode attribute "
            "for a device with no NUMA affinity"
        )
    if node >= NUMA_NODES_MAX:
        raise NoAttributeError(
            f"invalid NUMA node {node}: exceeds maximum supported ({NUMA_NODES_MAX - 1})"
        )
    return _numa_attribute(tree, node, form)


def numa_node_of_cpu(tree: SysfsTree, cpu: int) -> int:
    """Return the NUMA node of a CPU."""
    try:
        names = tree.names(f"{_CPUS}/cpu{cpu}")
    except TreeError:
        names = []
    name = next(filter(_NODE_NAME.fullmatch, names), None)
    if name is None:
        raise NoAttributeError(f"CPU {cpu} not found in any NUMA node")
    try:
        return parse_integer(name.removeprefix("node"))
    except ValueError as error:
        raise NoAttributeError(f"failed to parse NUMA node number from {name}: {error}") from None


def online_nodes(tree: SysfsTree) -> tuple[int, ...]:
    """Return the online NUMA nodes, in order; none on a machine without NUMA."""
    try:
        found = set(parse_cpu_list(tree.read(f"{_NODES}/online")))
    except (TreeError, ValueError):
        found = _nodes_with_folders(tree)  # the kernel has one for each online node
    return tuple(sorted(node for node in found if node < NUMA_NODES_MAX))


def physical_numa_node(attribute: DeviceAttribute | None) -> int | None:
    """Return the NUMA node of a device from either form; None is unknown, never node 0."""
    if attribute is None:
        return None
    if attribute.int_value is not None:
        return attribute.int_value
    return attribute.int_values[0] if attribute.int_values else None


# --- PCI ----------------------------------------------------------------------------------


def _check_bus_id(bus_id: str) -> None:
    if not bus_id:
        raise NoAttributeError("PCI Bus ID cannot be empty")
    try:
        PciAddress.parse(bus_id)
    except ValueError:
        raise NoAttributeError(f"invalid PCI Bus ID format: {bus_id[:64]}") from None


def _root_of(tree: SysfsTree, bus_id: str) -> str:
    """Return the first folder below `devices` in the path of a device."""
    target = tree.link(f"{_PCI_DEVICES}/{bus_id}")
    if not target.startswith("/"):
        target = posixpath.normpath(posixpath.join(_PCI_DEVICES, target))
    fact = f"symlink target for PCI Bus ID {bus_id} is invalid: it must"
    if not target.startswith("devices/pci"):
        raise NoAttributeError(f"{fact} start with devices/pci: {target}")
    if posixpath.basename(target) != bus_id:
        raise NoAttributeError(f"{fact} end with {bus_id}: {target}")
    return target.split("/")[1]


# --- NUMA ---------------------------------------------------------------------------------


def _numa_attribute(tree: SysfsTree, node: int, form: NumaNodeForm | bool) -> NamedAttribute:
    if not form:
        return NamedAttribute(NUMA_NODE, DeviceAttribute(int_value=node))
    return NamedAttribute(NUMA_NODE, DeviceAttribute(int_values=(node, *_as_near(tree, node))))


def _as_near(tree: SysfsTree, node: int) -> list[int]:
    """Return the other nodes at the smallest distance that are not on another socket."""
    others = _distances(tree, node)
    if others.pop(node, None) is None or not others:
        return []
    nearest = [other for other, each in others.items() if each == min(others.values())]
    socket = _socket(tree, node)
    if socket is None:
        return nearest
    return [other for other in nearest if _socket(tree, other) in (socket, None)]


def _distances(tree: SysfsTree, node: int) -> dict[int, int]:
    """Return how far each online node is from a node (a row of the SLIT); empty if unknown."""
    try:
        row = [parse_integer(part) for part in tree.read(f"{_NODES}/node{node}/distance").split()]
    except (TreeError, ValueError):
        return {}
    online = online_nodes(tree)
    # The lengths differ if a node came or went between the two reads.
    return dict(zip(online, row, strict=True)) if len(online) == len(row) else {}


def _nodes_with_folders(tree: SysfsTree) -> set[int]:
    try:
        matches = map(_NODE_FOLDER.fullmatch, tree.names(_NODES))
    except TreeError:
        return set()
    return {int(each[1]) for each in matches if each is not None}


def _socket(tree: SysfsTree, node: int) -> int | None:
    """Return the socket of a node's first CPU; None if it is unknown."""
    try:
        cpus = parse_cpu_list(tree.read(f"{_NODES}/node{node}/cpulist"))
        return _integer(tree, f"{_CPUS}/cpu{cpus[0]}/topology/physical_package_id")
    except (TreeError, ValueError, IndexError):
        return None


def _integer(tree: SysfsTree, path: str) -> int:
    try:
        return parse_integer(tree.read(path))
    except TreeError:
        raise
    except ValueError as error:
        raise TreeError(path, str(error)) from None


# --- the attributes of a device -------------------------------------------------------------------


class DeviceLocation(NamedTuple):
    """The sysfs of a machine and the form of numaNode, which determine standard attributes."""

    tree: SysfsTree
    form: NumaNodeForm = NumaNodeForm.SCALAR

    def pci_attributes(self, address: str) -> Attributes:
        """Return the standard attributes of a PCI device."""
        return _published(
            lambda: pci_bus_id(address),
            lambda: pcie_root(self.tree, address),
            lambda: numa_node_of_pci(self.tree, address, self.form),
        )

    def numa_attributes(self, node: int | None) -> Attributes:
        """Return numaNode for CPUs and memory, which are in one node: always the scalar."""
        return {} if node is None else _published(lambda: numa_node(self.tree, node))

    def scalar_numa_node(self, address: str) -> int | None:
        """Return the NUMA node of a PCI device, for the drivers' older attributes."""
        try:
            return numa_node_of_pci(self.tree, address).value.int_value
        except NoAttributeError:
            return None


def _published(*makers: Callable[[], NamedAttribute]) -> Attributes:
    """Return the attributes that can be determined."""
    found: Attributes = {}
    for make in makers:
        try:
            name, value = make()
        except NoAttributeError:
            continue
        found[name] = value
    return found


# --- values ---------------------------------------------------------------------------------------


def text(value: str) -> DeviceAttribute:
    """Return a string attribute."""
    return DeviceAttribute(string_value=value)


def whole(value: int) -> DeviceAttribute:
    """Return an integer attribute."""
    return DeviceAttribute(int_value=value)


def flag(value: bool) -> DeviceAttribute:
    """Return a boolean attribute."""
    return DeviceAttribute(bool_value=value)


def version(value: str) -> DeviceAttribute:
    """Return a semantic version attribute."""
    return DeviceAttribute(version_value=value)


def amount(value: str | int) -> DeviceCapacity:
    """Return a capacity."""
    return DeviceCapacity(value=Quantity.parse(str(value)))


def bytes_of(count: int) -> Quantity:
    """Return bytes as a quantity in powers of two."""
    return Quantity.from_int(count, Format.BINARY_SI)


def tame(value: str) -> str:
    """Return a text from the machine as an attribute allows it: printable, and bounded."""
    shown = "".join(letter for letter in value.strip() if letter.isprintable())
    return shown.encode()[:TEXT_BYTES_MAX].decode(errors="ignore").strip()
