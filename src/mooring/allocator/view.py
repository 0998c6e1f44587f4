"""MOVED."""

from mooring.allocator.node_view import NODE_OPERATIONS as NODE_OPERATIONS  # noqa
from mooring.allocator.node_view import NodeView as View  # noqa

__all__ = ["NODE_OPERATIONS", "View"]  # noqa
