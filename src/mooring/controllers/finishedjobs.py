"""MOVED."""

from mooring.controllers.job_tracking import is_finished as is_finished  # noqa

__all__ = ["is_finished"]  # noqa
