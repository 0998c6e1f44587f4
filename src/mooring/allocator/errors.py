"""Faults that end an allocation.

AllocationError      the pod cannot be scheduled as things are
├── NodeError        it cannot on this node, but other nodes may do
└── BudgetError      the search was given up: too many steps, or out of time

OutOfStepsError never leaves this room: a part of the search took the steps that it was given.
"""

from __future__ import annotations


class AllocationError(Exception):
    """A fault that ends the attempt for all nodes; the message is Kubernetes'."""

    steps = 0  # of the search that it ended


class NodeError(AllocationError):
    """A fault that ends the attempt for this node only."""


class BudgetError(AllocationError):
    """The search took more steps or time than it was given."""


class OutOfStepsError(Exception):
    """A part of the search took as many steps as it was given."""
