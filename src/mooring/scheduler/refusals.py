"""MOVED."""

from mooring.scheduler.framework import Unschedulable as Refusal  # noqa

__all__ = ["Refusal"]  # noqa
