"""MOVED."""

from mooring.claims.extended_resources import DeviceClassIndex as ClassIndex
from mooring.claims.extended_resources import is_device_resource as is_device_resource

__all__ = ["ClassIndex", "is_device_resource"]
