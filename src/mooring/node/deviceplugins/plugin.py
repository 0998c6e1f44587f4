"""MOVED."""
from mooring.node.device_plugins.plugin import PluginError as PluginError  # noqa
__all__ = ["PluginError"]  # noqa
