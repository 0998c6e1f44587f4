"""MOVED."""

from mooring.scheduler.plugins.node_affinity import PLUGIN as PLUGIN  # noqa

__all__ = ["PLUGIN"]  # noqa
