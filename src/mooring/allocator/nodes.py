"""MOVED."""

from mooring.allocator.pools import matches_node as matches_node  # noqa

__all__ = ["matches_node"]  # noqa
