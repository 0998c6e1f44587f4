"""MOVED."""

from mooring.insight.explain.summary import Briefly as Briefly  # noqa

__all__ = ["Briefly"]  # noqa
