"""MOVED."""

from mooring.insight.explain.summary import PendingSummary as Briefly  # noqa

__all__ = ["Briefly"]  # noqa
