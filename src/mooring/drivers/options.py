"""MOVED."""

from mooring.drivers.catalogue import BY_NODE as BY_NODE  # noqa
from mooring.drivers.catalogue import BY_SOCKET as BY_SOCKET
from mooring.drivers.catalogue import DYNAMIC as DYNAMIC
from mooring.drivers.catalogue import GROUPED as GROUPED
from mooring.drivers.catalogue import INDIVIDUAL as INDIVIDUAL
from mooring.drivers.catalogue import OptionError as OptionError
from mooring.drivers.catalogue import DriverOptions as Options
from mooring.drivers.catalogue import STATIC as STATIC

__all__ = [
    "BY_NODE",
    "BY_SOCKET",
    "DYNAMIC",
    "GROUPED",
    "INDIVIDUAL",
    "STATIC",
    "OptionError",
    "Options",
]
