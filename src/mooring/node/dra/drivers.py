"""MOVED."""

from mooring.node.errors import NotRegisteredError as NotRegisteredError  # noqa

__all__ = ["NotRegisteredError"]  # noqa
