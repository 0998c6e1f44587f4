"""MOVED."""

from mooring.insight.explain.stoppages import written_of as written_of  # noqa

__all__ = ["written_of"]  # noqa
