"""MOVED."""

from mooring.node.pods.pod_context import SET_UP_BACKOFF as SET_UP_BACKOFF  # noqa
from mooring.node.pods.pod_context import StartMetrics as StartCounts  # noqa

__all__ = ["SET_UP_BACKOFF", "StartCounts"]  # noqa
