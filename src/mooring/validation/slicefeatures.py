"""MOVED."""

from mooring.validation.resource_slice import dropped as dropped

__all__ = ["dropped"]
