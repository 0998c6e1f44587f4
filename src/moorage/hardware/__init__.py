"""Hardware: boards as data, their sysfs, and the Nodes and ResourceSlices of machines with them.

catalogue      profiles by name, and fleets of machines
board          a board with its devices and their models
profile_files  profiles as TOML files, with checks
machine        a machine as its drivers see it: slices, Node and DeviceClasses
drivers        what each driver publishes
sysfs          the sysfs of a board
sysfs_tree     sysfs trees in memory and in folders, read with bounds
attributes     the standard attributes of devices, for drivers
numbers        integers, lists of CPUs and PCI addresses as the kernel writes them
errors         the tree of errors
"""

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
from moorage.hardware.catalogue import Catalogue, Fleet
from moorage.hardware.errors import NoAttributeError, ProfileError, TreeError
from moorage.hardware.sysfs_tree import SysfsTree, folder_tree

__all__ = [
    "NUMA_NODE",
    "PCIE_ROOT",
    "PCI_BUS_ID",
    "Catalogue",
    "Fleet",
    "NamedAttribute",
    "NoAttributeError",
    "NumaNodeForm",
    "ProfileError",
    "SysfsTree",
    "TreeError",
    "folder_tree",
    "numa_node",
    "numa_node_of_cpu",
    "numa_node_of_pci",
    "pci_bus_id",
    "pcie_root",
    "physical_numa_node",
]
