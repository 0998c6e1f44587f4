"""MOVED."""

from mooring.insight.messages import nearest as nearest  # noqa

__all__ = ["nearest"]  # noqa
