"""MOVED."""

from mooring.scheduler.pod_signature import PodSignature as PodShape  # noqa
from mooring.scheduler.pod_signature import SchedulerProfile as Settings  # noqa
from mooring.scheduler.pod_signature import sign as prepare  # noqa

__all__ = ["PodShape", "Settings", "prepare"]  # noqa
