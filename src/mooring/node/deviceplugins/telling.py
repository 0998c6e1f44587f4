"""MOVED."""

from mooring.node.device_plugins.allocation import allocatable_devices as allocatable_devices  # noqa
from mooring.node.device_plugins.allocation import container_devices as container_devices  # noqa
from mooring.node.device_plugins.allocation import resource_statuses as resource_statuses  # noqa

__all__ = ["allocatable_devices", "container_devices", "resource_statuses"]  # noqa
