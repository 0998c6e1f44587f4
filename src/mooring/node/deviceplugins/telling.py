"""MOVED."""
from mooring.node.device_plugins.telling import allocatable_devices as allocatable_devices  # noqa
from mooring.node.device_plugins.telling import container_devices as container_devices  # noqa
from mooring.node.device_plugins.telling import resource_statuses as resource_statuses  # noqa
__all__ = ["allocatable_devices", "container_devices", "resource_statuses"]  # noqa
