"""Errors of the scheduler.

Exception
├── CycleError                  a plugin failed on a node: the scheduling cycle ends
└── BindError                   a pod cannot be bound as decided: the binding cycle is undone
    ├── DoubleAllocationError   another claim got the devices first
    ├── OtherSchedulerError     another scheduler allocated a claim for the same pod
    └── PodGoneError            the pod is deleted: it does not go back to the queue
"""

from __future__ import annotations

# What users read of an error that nobody foresaw; the log says more.
INTERNAL_ERROR = "internal error: the scheduler could not handle the pod; its log says more"


class CycleError(Exception):
    """A plugin failed; the message is Kubernetes'."""


class BindError(Exception):
    """The pod cannot be bound as decided; the text says why."""


class DoubleAllocationError(BindError):
    """Another claim got the devices first."""


class OtherSchedulerError(BindError):
    """Another scheduler has allocated other devices to a claim, for the very same pod."""


class PodGoneError(BindError):
    """The pod is being deleted, or no longer exists."""
