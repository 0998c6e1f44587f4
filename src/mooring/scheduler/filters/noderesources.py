"""MOVED."""

from mooring.scheduler.plugins.node_resources import PLUGIN as PLUGIN  # noqa
from mooring.scheduler.plugins.node_resources import TOO_MANY_PODS as TOO_MANY_PODS  # noqa

__all__ = ["PLUGIN", "TOO_MANY_PODS"]  # noqa
