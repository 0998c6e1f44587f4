"""Where devices stand: the sysfs of a machine, and how its operator wants numaNode published."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mooring.hardware.attributes import (
    Attribute,
    Form,
    numa_node,
    numa_node_of_pci,
    pci_bus_id,
    pcie_root,
)
from mooring.hardware.errors import NoAttributeError
from mooring.hardware.tree import Tree
from mooring.hardware.values import Attributes


class Place(NamedTuple):
    """What the standard attributes of devices are worked out from."""

    tree: Tree
    form: Form = Form.SCALAR

    def pci_attributes(self, address: str) -> Attributes:
        """Return the standard attributes that sysfs gives a PCI device."""
        return _published(
            lambda: pci_bus_id(address),
            lambda: pcie_root(self.tree, address),
            lambda: numa_node_of_pci(self.tree, address, self.form),
        )

    def numa_attributes(self, node: int | None) -> Attributes:
        """Return numaNode of what is in a NUMA node itself: always the scalar."""
        return {} if node is None else _published(lambda: numa_node(self.tree, node))

    def scalar_numa_node(self, address: str) -> int | None:
        """Return the NUMA node of a PCI device for attributes that drivers had before."""
        try:
            return numa_node_of_pci(self.tree, address).value.int_value
        except NoAttributeError:
            return None


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
