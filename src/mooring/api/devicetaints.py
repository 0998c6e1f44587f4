"""MOVED."""

from mooring.api.tolerations import DeviceName as DeviceName  # noqa
from mooring.api.tolerations import NONE as NONE  # noqa
from mooring.api.core.placement import NO_EXECUTE as NO_EXECUTE  # noqa
from mooring.api.core.placement import NO_SCHEDULE as NO_SCHEDULE  # noqa
from mooring.api.tolerations import means_by_name as means_by_name  # noqa
from mooring.api.tolerations import tolerates as tolerates  # noqa

__all__ = ["DeviceName", "NONE", "NO_EXECUTE", "NO_SCHEDULE", "means_by_name", "tolerates"]  # noqa
