"""MOVED."""

from mooring.scheduler.scheduling_cycle import Attempt as Attempt  # noqa
from mooring.scheduler.scheduling_cycle import Pending as Pending  # noqa
from mooring.scheduler.scheduling_cycle import Placed as Placed  # noqa
from mooring.scheduler.scheduling_cycle import attempt as attempt  # noqa
from mooring.scheduler.scheduling_cycle import schedule as schedule  # noqa

__all__ = ["Attempt", "Pending", "Placed", "attempt", "schedule"]  # noqa
