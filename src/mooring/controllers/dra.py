"""MOVED."""

from mooring.controllers.metrics import DraMetrics as DraMetrics  # noqa
from mooring.controllers.controller_manager import dra_controllers as dra_controllers  # noqa

__all__ = ["DraMetrics", "dra_controllers"]  # noqa
