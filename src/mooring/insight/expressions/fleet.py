"""MOVED."""

from mooring.insight.expressions.published_devices import Fleet as Fleet  # noqa
from mooring.insight.expressions.published_devices import FleetDevice as FleetDevice  # noqa

__all__ = ["Fleet", "FleetDevice"]  # noqa
