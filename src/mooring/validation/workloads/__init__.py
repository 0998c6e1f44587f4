"""MOVED."""

from mooring.validation.job import with_selector as with_selector  # noqa

__all__ = ["with_selector"]  # noqa
