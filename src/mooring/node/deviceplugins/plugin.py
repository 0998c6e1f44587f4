"""MOVED."""

from mooring.node.errors import PluginError as PluginError  # noqa

__all__ = ["PluginError"]  # noqa
