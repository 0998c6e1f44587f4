"""MOVED."""

from mooring.validation.resource_slice import ResourceSliceStrategy as ResourceSliceStrategy

__all__ = ["ResourceSliceStrategy"]
