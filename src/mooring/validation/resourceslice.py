"""MOVED."""

from mooring.validation.resource_slice import ResourceSliceStrategy as ResourceSliceStrategy  # noqa

__all__ = ["ResourceSliceStrategy"]  # noqa
