"""Hardware: boards as data, the sysfs they show, and the nodes and slices they make.

The standard attributes, for drivers, are in mooring.hardware.attributes.
"""

from mooring.hardware.attributes import Form
from mooring.hardware.board import Board, Profile
from mooring.hardware.catalogue import Catalogue, Fleet, Wanted
from mooring.hardware.errors import HardwareError, NoAttributeError, ProfileError, TreeError

__all__ = [
    "Board",
    "Catalogue",
    "Fleet",
    "Form",
    "HardwareError",
    "NoAttributeError",
    "Profile",
    "ProfileError",
    "TreeError",
    "Wanted",
]
