"""The standard attributes that devices of all drivers share: pciBusID, pcieRoot, numaNode.

    tree = sysfs()                  # or Tree(MemoryStore({…})) in tests
    dict([pci_bus_id(bus_id), pcie_root(tree, bus_id)])

A driver leaves out an attribute that it cannot know (NoAttributeError).
"""

from __future__ import annotations

from pathlib import Path

from moorage.hardware.attributes import (
    NUMA_NODE,
    PCI_BUS_ID,
    PCIE_ROOT,
    NamedAttribute,
    NumaNodeForm,
    numa_node,
    numa_node_of_cpu,
    numa_node_of_pci,
    pci_bus_id,
    pcie_root,
    physical_numa_node,
)
from moorage.hardware.errors import NoAttributeError, TreeError
from moorage.hardware.sysfs_tree import FolderEntries, MemoryEntries, SysfsTree

__all__ = [
    "NUMA_NODE",
    "PCIE_ROOT",
    "PCI_BUS_ID",
    "MemoryEntries",
    "NamedAttribute",
    "NoAttributeError",
    "NumaNodeForm",
    "SysfsTree",
    "TreeError",
    "numa_node",
    "numa_node_of_cpu",
    "numa_node_of_pci",
    "pci_bus_id",
    "pcie_root",
    "physical_numa_node",
    "sysfs",
]


def sysfs(root: Path | str = "/sys") -> SysfsTree:
    """Return the sysfs of this machine, or one in another folder."""
    return SysfsTree(FolderEntries(Path(root)))
