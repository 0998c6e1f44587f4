"""MOVED."""

from mooring.api.documents.scalars import Schema as Schema

__all__ = ["Schema"]
