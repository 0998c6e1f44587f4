"""A machine as its drivers see it: the board, the node's name, sysfs, and the form of lists."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import CounterSet, Device, DeviceAttribute, DeviceCapacity
from mooring.hardware.attributes import (
    Attribute,
    Form,
    numa_node,
    numa_node_of_pci,
    pci_bus_id,
    pcie_root,
)
from mooring.hardware.board import Board, PciDevice, Profile
from mooring.hardware.errors import NoAttributeError
from mooring.hardware.models import PciModel
from mooring.hardware.sysfs import sysfs_tree
from mooring.hardware.tree import Tree

M = TypeVar("M", bound=PciModel)

Attributes = dict[str, DeviceAttribute]
Capacities = dict[str, DeviceCapacity]


class Sheet(NamedTuple):
    """Devices, or the counters that devices share, which a driver publishes together."""

    devices: tuple[Device, ...] = ()
    counters: tuple[CounterSet, ...] = ()


class Machine(NamedTuple):
    """One machine with a profile's board."""

    profile: Profile
    node_name: str
    tree: Tree
    form: Form

    @property
    def board(self) -> Board:
        """The board in it."""
        return self.profile.board

    def devices(self, sort: type[M]) -> Iterator[tuple[PciDevice, M]]:
        """Give the devices of one sort with their models."""
        for device, model in self.profile.devices():
            if isinstance(model, sort):
                yield device, model

    def pci_attributes(self, address: str) -> Attributes:
        """Return the standard attributes that sysfs gives a PCI device."""
        return _published(
            lambda: pci_bus_id(address),
            lambda: pcie_root(self.tree, address),
            lambda: numa_node_of_pci(self.tree, address, self.form),
        )

    def numa_attributes(self, node: int) -> Attributes:
        """Return numaNode of what is in a NUMA node itself: always the scalar."""
        return _published(lambda: numa_node(self.tree, node))

    def scalar_numa_node(self, address: str) -> int | None:
        """Return the NUMA node of a PCI device for attributes that drivers had before."""
        try:
            return numa_node_of_pci(self.tree, address).value.int_value
        except NoAttributeError:
            return None

    def digest(self, text: str) -> str:
        """Return hexadecimal digits that are this machine's and the text's own."""
        return hashlib.sha256(f"{self.node_name}/{text}".encode()).hexdigest()

    def uuid(self, text: str) -> str:
        """Return a UUID that is this machine's and the text's own."""
        digits = self.digest(text)
        parts = (digits[:8], digits[8:12], f"5{digits[13:16]}", f"8{digits[17:20]}", digits[20:32])
        return "-".join(parts)


def machine_of(profile: Profile, node_name: str, form: Form | bool = Form.SCALAR) -> Machine:
    """Return a machine with the profile's board."""
    return Machine(profile, node_name, sysfs_tree(profile), Form(form))


def _published(*makers: Callable[[], Attribute]) -> Attributes:
    """Return the attributes that there are; what a device lacks is left out."""
    found: Attributes = {}
    for make in makers:
        try:
            name, value = make()
        except NoAttributeError:
            continue
        found[name] = value
    return found


def text(value: str) -> DeviceAttribute:
    """Return an attribute that is a string."""
    return DeviceAttribute(string_value=value)


def whole(value: int) -> DeviceAttribute:
    """Return an attribute that is an integer."""
    return DeviceAttribute(int_value=value)


def flag(value: bool) -> DeviceAttribute:
    """Return an attribute that is true or false."""
    return DeviceAttribute(bool_value=value)


def version(value: str) -> DeviceAttribute:
    """Return an attribute that is a semantic version."""
    return DeviceAttribute(version_value=value)


def amount(value: str | int) -> DeviceCapacity:
    """Return so much of a capacity."""
    return DeviceCapacity(value=Quantity.parse(str(value)))
