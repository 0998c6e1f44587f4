"""MOVED."""

from mooring.api.scheduling.v1beta1 import HIGHEST_USER_PRIORITY as HIGHEST_USER_PRIORITY  # noqa
from mooring.api.scheduling.v1beta1 import PriorityClass as PriorityClass  # noqa
from mooring.api.scheduling.v1beta1 import SYSTEM_CRITICAL_PRIORITY as SYSTEM_CRITICAL_PRIORITY  # noqa

__all__ = ["HIGHEST_USER_PRIORITY", "PriorityClass", "SYSTEM_CRITICAL_PRIORITY"]  # noqa
