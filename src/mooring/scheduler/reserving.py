"""MOVED."""

from mooring.scheduler.reservation import IdSource as Fresh  # noqa
from mooring.scheduler.reservation import Reservation as Reservation  # noqa
from mooring.scheduler.reservation import release as release  # noqa
from mooring.scheduler.reservation import reserve as reserve  # noqa

__all__ = ["Fresh", "Reservation", "release", "reserve"]  # noqa
