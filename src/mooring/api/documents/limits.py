"""MOVED."""

from mooring.api.documents.stream import DEFAULT_LIMITS as DEFAULT_LIMITS
from mooring.api.documents.stream import Limits as Limits

__all__ = ["DEFAULT_LIMITS", "Limits"]
