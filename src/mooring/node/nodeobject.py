"""MOVED."""

from mooring.node.node_status import NodeDescription as Description  # noqa
from mooring.node.node_status import PODS_MAX as PODS_MAX  # noqa
from mooring.node.node_status import PluginResource as PluginResource  # noqa
from mooring.node.node_status import kept_free as kept_free  # noqa

__all__ = ["Description", "PODS_MAX", "PluginResource", "kept_free"]  # noqa
