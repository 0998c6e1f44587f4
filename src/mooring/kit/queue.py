"""MOVED."""

from mooring.kit.workqueue import QueueClosedError as QueueClosedError
from mooring.kit.workqueue import WorkQueue as WorkQueue

__all__ = ["QueueClosedError", "WorkQueue"]
