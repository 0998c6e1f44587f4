"""MOVED."""

from mooring.allocator.pools import bits as bits  # noqa

__all__ = ["bits"]  # noqa
