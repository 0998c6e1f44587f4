"""MOVED."""

from mooring.node.pods.pod_record import PodSnapshot as Known  # noqa
from mooring.node.pods.pod_record import FailedAttempt as Waiting  # noqa

__all__ = ["Known", "Waiting"]  # noqa
