"""Faults that end an allocation.

AllocationError      the pod cannot be scheduled as things are
├── NodeError        it cannot on this node, but other nodes may do
└── BudgetError      the search was given up: too many steps, or out of time
"""

from __future__ import annotations


class AllocationError(Exception):
    """A fault that ends the attempt for all nodes; the message is Kubernetes'."""


class NodeError(AllocationError):
    """A fault that ends the attempt for this node only."""


class BudgetError(AllocationError):
    """The search took more steps or time than it was given."""
