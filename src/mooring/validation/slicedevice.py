"""MOVED."""

from mooring.validation.slice_device import validate_device as check_device
from mooring.validation.slice_device import validate_device_nodes as check_device_nodes

__all__ = ["check_device", "check_device_nodes"]
