"""MOVED."""
from mooring.insight.snapshot.overlay import overlay as overlay  # noqa
__all__ = ["overlay"]  # noqa
