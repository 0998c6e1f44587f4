"""MOVED."""

from mooring.controllers.job_tracking import is_indexed as is_indexed  # noqa

__all__ = ["is_indexed"]  # noqa
