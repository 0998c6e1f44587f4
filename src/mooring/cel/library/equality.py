"""What `==` costs between Kubernetes' own values.

The standard library charges equality by size, and nothing is known of the size of an opaque value.
Kubernetes knows better: one unit at run time, and an estimate by type. `!=` has no such rule, and
so its estimate for these types is without bound.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from mooring.api.quantity import Quantity
from mooring.api.semver import Version
from mooring.cel.lang.declarations import (
    CallEstimate,
    EstimatedArgument,
    Function,
    Library,
    Overload,
    Range,
)
from mooring.cel.lang.estimate import Argument
from mooring.cel.lang.library.costs import TRAVERSAL_FACTOR
from mooring.cel.lang.ranges import exactly, scale
from mooring.cel.library import authz
from mooring.cel.library.cidr import CIDR, CIDR_TYPE
from mooring.cel.library.formats import FORMAT_TYPE, NamedFormat
from mooring.cel.library.ip import IP, IP_TYPE
from mooring.cel.library.neturl import URL
from mooring.cel.library.quantity import QUANTITY, CalculatedQuantity
from mooring.cel.library.semver import SEMVER
from mooring.cel.library.urls import URL_TYPE

FORMAT_SIZE_MAX: Final = 64

_VALUES: Final = (Quantity, CalculatedQuantity, Version, IP, CIDR, URL, NamedFormat)
_UNIT_TYPES: Final = (IP_TYPE, CIDR_TYPE, QUANTITY, SEMVER, *authz.TYPES)


def with_equality_costs(standard: Library) -> Library:
    """Return the standard library with Kubernetes' costs of `==` in front of its own."""
    functions = tuple(
        _function(function) if function.name == "_==_" else function
        for function in standard.functions
    )
    return replace(standard, functions=functions)


def _function(function: Function) -> Function:
    return Function(function.name, tuple(map(_overload, function.overloads)))


def _overload(overload: Overload) -> Overload:
    default_cost, default_estimate = overload.runtime_cost, overload.estimate

    def cost(args: tuple[Any, ...], result: Any) -> int:
        if default_cost is None or isinstance(args[0], _VALUES):
            return 1
        return default_cost(args, result)

    def estimate(
        target: EstimatedArgument | None, args: tuple[EstimatedArgument, ...]
    ) -> CallEstimate | None:
        found = equality_estimate(*args)
        if found is None and default_estimate is not None:
            return default_estimate(target, args)
        return None if found is None else CallEstimate(found)

    return replace(overload, runtime_cost=cost, estimate=estimate)


def equality_estimate(left: EstimatedArgument, right: EstimatedArgument) -> Range | None:
    """Return what `left == right` may cost, None if they are not of one type of Kubernetes'."""
    if left.type != right.type:
        return None
    if left.type in _UNIT_TYPES:
        return exactly(1)
    if left.type == FORMAT_TYPE:
        return scale(Range(1, FORMAT_SIZE_MAX), TRAVERSAL_FACTOR)
    if left.type == URL_TYPE:
        # Kubernetes means the larger of both sizes but looks at the right one twice.
        return scale(Range(1, _known_size(right).high), TRAVERSAL_FACTOR)
    return None


def _known_size(argument: EstimatedArgument) -> Range:
    if isinstance(argument, Argument) and argument.known_size is None:
        return exactly(1)
    return argument.size
