"""MOVED."""

from mooring.insight.messages import natural_order as natural  # noqa

__all__ = ["natural"]  # noqa
