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

from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.catalogue import Catalogue, Fleet
from moorage.hardware.errors import ProfileError

__all__ = [
    "Catalogue",
    "Fleet",
    "NumaNodeForm",
    "ProfileError",
]
