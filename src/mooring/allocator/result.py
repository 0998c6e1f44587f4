"""MOVED."""

from mooring.allocator.allocation import node_selector as node_selector  # noqa

__all__ = ["node_selector"]  # noqa
