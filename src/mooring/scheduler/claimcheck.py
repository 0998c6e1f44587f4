"""MOVED."""

from mooring.scheduler.plugins.dynamic_resources import CANNOT_ALLOCATE as CANNOT_ALLOCATE  # noqa
from mooring.scheduler.plugins.dynamic_resources import ClaimFilter as ClaimCheck  # noqa
from mooring.scheduler.plugins.dynamic_resources import NodeAllocation as Grant  # noqa
from mooring.scheduler.plugins.dynamic_resources import NOT_AVAILABLE as NOT_AVAILABLE  # noqa

__all__ = ["CANNOT_ALLOCATE", "ClaimCheck", "Grant", "NOT_AVAILABLE"]  # noqa
