"""MOVED."""

from mooring.validation.job import with_selector as with_selector

__all__ = ["with_selector"]
