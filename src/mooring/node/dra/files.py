"""MOVED."""

from mooring.node.errors import SaveError as SaveError  # noqa

__all__ = ["SaveError"]  # noqa
