"""MOVED."""

from mooring.api.documents.document import Position as Position

__all__ = ["Position"]
