"""MOVED."""

from mooring.scheduler.pod_groups import Gang as Gang  # noqa
from mooring.scheduler.pod_groups import schedule_group as schedule_group  # noqa

__all__ = ["Gang", "schedule_group"]  # noqa
