"""A machine as its drivers see it: the board, the node's name, sysfs, and the form of lists."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from mooring.api.resource.v1 import CounterSet, Device
from mooring.hardware.attributes import Form
from mooring.hardware.board import Board, PciDevice, Profile
from mooring.hardware.models import PciModel
from mooring.hardware.place import Place
from mooring.hardware.sysfs import sysfs_tree
from mooring.hardware.tree import Tree
from mooring.hardware.values import Attributes

M = TypeVar("M", bound=PciModel)


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

    @property
    def place(self) -> Place:
        """Where its devices stand."""
        return Place(self.tree, self.form)

    def pci_attributes(self, address: str) -> Attributes:
        """Return the standard attributes that sysfs gives a PCI device."""
        return self.place.pci_attributes(address)

    def scalar_numa_node(self, address: str) -> int | None:
        """Return the NUMA node of a PCI device for attributes that drivers had before."""
        return self.place.scalar_numa_node(address)

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
