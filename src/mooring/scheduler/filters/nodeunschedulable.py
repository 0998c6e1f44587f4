"""MOVED."""

from mooring.scheduler.plugins.node_unschedulable import PLUGIN as PLUGIN  # noqa

__all__ = ["PLUGIN"]  # noqa
