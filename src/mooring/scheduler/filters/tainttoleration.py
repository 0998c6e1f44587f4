"""MOVED."""

from mooring.scheduler.plugins.taint_toleration import PLUGIN as PLUGIN  # noqa

__all__ = ["PLUGIN"]  # noqa
