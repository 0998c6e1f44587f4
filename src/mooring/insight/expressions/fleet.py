"""MOVED."""

from mooring.insight.expressions.published_devices import PublishedDevices as Fleet  # noqa
from mooring.insight.expressions.published_devices import PublishedDevice as FleetDevice  # noqa

__all__ = ["Fleet", "FleetDevice"]  # noqa
