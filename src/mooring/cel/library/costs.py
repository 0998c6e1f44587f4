"""What Kubernetes charges for reading a text, in one go or twice."""

from __future__ import annotations

import math
from typing import Any

from mooring.cel.lang.declarations import (
    CallEstimate,
    CostEstimate,
    EstimatedArgument,
    RuntimeCost,
)
from mooring.cel.lang.equality import size_of
from mooring.cel.lang.library.costs import TRAVERSAL_FACTOR
from mooring.cel.lang.ranges import scale


def traverses_first(*, times: int = 1) -> RuntimeCost:
    """Return the cost of a function that traverses its first argument, that many times."""

    def cost(args: tuple[Any, ...], _result: Any) -> int:
        return math.ceil(size_of(args[0]) * times * TRAVERSAL_FACTOR)

    return cost


def estimates_first(*, times: int = 1, keeps_size: bool = False) -> CostEstimate:
    """Return the estimate for a function that traverses its first argument, which is no target.

    With keeps_size its result is as large as the argument.
    """

    def estimate(
        _target: EstimatedArgument | None, args: tuple[EstimatedArgument, ...]
    ) -> CallEstimate | None:
        size = args[0].size
        cost = scale(size, times * TRAVERSAL_FACTOR)
        return CallEstimate(cost, size if keeps_size else None)

    return estimate
