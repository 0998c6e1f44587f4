"""MOVED."""

from mooring.controllers.metrics import WorkQueuesMetrics as QueuesMetrics  # noqa

__all__ = ["QueuesMetrics"]  # noqa
