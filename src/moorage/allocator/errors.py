"""Faults that end an allocation.

AllocationError      the pod cannot be scheduled now
├── NodeError        not on this node; other nodes may do
└── BudgetError      the search was given up: too many steps, or out of time
CapacityError        an amount that cannot be counted; becomes an AllocationError of a device

OutOfStepsError never leaves this package: a part of the search took all the steps it was given.
"""

from __future__ import annotations


class AllocationError(Exception):
    """An error that ends the attempt for all nodes, with Kubernetes' message."""

    steps = 0  # that the search took


class NodeError(AllocationError):
    """An error that ends the attempt for this node only."""


class BudgetError(AllocationError):
    """The search took more steps or time than it was given."""


class CapacityError(Exception):
    """An amount that cannot be counted."""


class OutOfStepsError(Exception):
    """A part of the search took as many steps as it was given."""
