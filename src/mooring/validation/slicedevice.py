"""MOVED."""

from mooring.validation.slice_device import check_device as check_device  # noqa
from mooring.validation.slice_device import check_device_nodes as check_device_nodes  # noqa

__all__ = ["check_device", "check_device_nodes"]  # noqa
