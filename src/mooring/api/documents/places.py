"""MOVED."""

from mooring.api.documents.positions import Position as Position

__all__ = ["Position"]
