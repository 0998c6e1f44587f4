"""MOVED."""

from mooring.insight.whatif.difference import FreeDevices as Freedom  # noqa

__all__ = ["Freedom"]  # noqa
