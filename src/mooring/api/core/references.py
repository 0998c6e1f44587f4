"""MOVED."""

from mooring.api.core.namespace import ObjectReference as ObjectReference  # noqa

__all__ = ["ObjectReference"]  # noqa
