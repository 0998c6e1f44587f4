"""MOVED."""

from mooring.node.errors import CallError as CallError  # noqa

__all__ = ["CallError"]  # noqa
