"""MOVED."""

from mooring.scheduler.live.metrics import resource_families as resource_families  # noqa

__all__ = ["resource_families"]  # noqa
