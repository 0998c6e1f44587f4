"""MOVED."""

from mooring.allocator.allocation import Allocated as Allocated  # noqa

__all__ = ["Allocated"]  # noqa
