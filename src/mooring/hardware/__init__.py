"""Hardware: boards as data, the sysfs they show, and the nodes and slices they make.

The standard attributes, for drivers, are in mooring.hardware.attributes.
"""

from mooring.hardware.attributes import NumaNodeForm
from mooring.hardware.board import Board, Profile
from mooring.hardware.catalogue import Catalogue, Fleet, ProfileCount
from mooring.hardware.errors import HardwareError, NoAttributeError, ProfileError, TreeError

__all__ = [
    "Board",
    "Catalogue",
    "Fleet",
    "HardwareError",
    "NoAttributeError",
    "NumaNodeForm",
    "Profile",
    "ProfileCount",
    "ProfileError",
    "TreeError",
]


# MOVED
Form = NumaNodeForm  # MOVED
