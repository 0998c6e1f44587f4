"""MOVED."""

from mooring.insight.snapshot.snapshot import overlay as overlay  # noqa

__all__ = ["overlay"]  # noqa
