"""MOVED."""

from mooring.insight.snapshot.workloads import PODS_MAX as PODS_MAX  # noqa
from mooring.insight.errors import TooManyPodsError as TooManyPodsError  # noqa

__all__ = ["PODS_MAX", "TooManyPodsError"]  # noqa
