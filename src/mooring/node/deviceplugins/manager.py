"""MOVED."""

from mooring.node.device_plugins.manager import DevicePlugins as DevicePlugins  # noqa

__all__ = ["DevicePlugins"]  # noqa
