"""MOVED."""

from mooring.scheduler.resources import ResourceAmounts as Amounts  # noqa

__all__ = ["Amounts"]  # noqa
