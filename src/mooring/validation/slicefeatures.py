"""MOVED."""

from mooring.validation.resource_slice import dropped as dropped  # noqa

__all__ = ["dropped"]  # noqa
