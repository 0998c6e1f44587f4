"""MOVED."""

from mooring.allocator.rules.constraints import Element as Element  # noqa

__all__ = ["Element"]  # noqa
