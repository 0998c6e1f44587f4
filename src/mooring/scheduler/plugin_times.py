"""MOVED."""

from mooring.scheduler.framework import NODES_MEASURED_MAX as NODES_MEASURED_MAX  # noqa

__all__ = ["NODES_MEASURED_MAX"]  # noqa
