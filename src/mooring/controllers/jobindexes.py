"""MOVED."""

from mooring.controllers.job_tracking import index_of as index_of  # noqa

__all__ = ["index_of"]  # noqa
