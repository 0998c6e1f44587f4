"""The CEL libraries of Kubernetes, and the cost of `==` between their values.

    authz      authorization checks, declared only
    cidr       networks
    ip         addresses
    lists      functions of lists
    quantity   quantities and semantic versions
    strings    regular expressions and named formats
    urls       URLs, and net/url's parser

The standard library charges equality by size, and the size of an opaque value is unknown.
Kubernetes charges one unit at run time, and estimates by type. `!=` has no such rule, and so its
estimate for these types is unbounded.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from moorage.api.quantity import Quantity
from moorage.api.semver import Version
from moorage.cel.lang import macros
from moorage.cel.lang import types as t
from moorage.cel.lang.costs import Argument, Arguments, CallEstimate, Range, exactly, traversal
from moorage.cel.lang.environment import Environment, Function, Library, Overload
from moorage.cel.lang.library import formatting, optionals, standard
from moorage.cel.lang.library import lists as language_lists
from moorage.cel.lang.library import strings as language_strings
from moorage.cel.lang.types import Type
from moorage.cel.library import authz, cidr, ip, lists, quantity, strings, urls
from moorage.cel.library.cidr import CIDR, CIDR_TYPE
from moorage.cel.library.ip import IP, IP_TYPE
from moorage.cel.library.lists import include_library
from moorage.cel.library.quantity import QUANTITY, SEMVER, CalculatedQuantity
from moorage.cel.library.strings import FORMAT_TYPE, NamedFormat
from moorage.cel.library.urls import URL, URL_TYPE

__all__ = [
    "base_environment",
    "environment_libraries",
    "include_library",
    "kubernetes_libraries",
    "with_equality_costs",
]

FORMAT_SIZE_MAX: Final = 64

_VALUES: Final = (Quantity, CalculatedQuantity, Version, IP, CIDR, URL, NamedFormat)
_UNIT_TYPES: Final = (IP_TYPE, CIDR_TYPE, QUANTITY, SEMVER, *authz.TYPES)


def kubernetes_libraries(*, with_includes: bool) -> tuple[Library, ...]:
    """Return all libraries, in the order in which Kubernetes declares them."""
    return (
        urls.library(),
        strings.regex_library(),
        lists.library(),
        authz.library(),
        quantity.library(),
        ip.library(),
        cidr.library(),
        strings.format_library(),
        authz.selectors_library(),
        quantity.semver_library(),
        *((lists.includes_library(),) if with_includes else ()),
    )


def _kubernetes_types() -> dict[type, Type]:
    libraries = kubernetes_libraries(with_includes=False)
    return {c: type_ for library in libraries for c, type_ in library.python_types.items()}


@lru_cache(maxsize=1)
def base_environment() -> Environment:
    """Return Kubernetes' libraries without a variable, for expressions about any objects."""
    names = {"duration": t.DURATION, "timestamp": t.TIMESTAMP}
    return Environment(
        environment_libraries(includes=False, bindings=False),
        variables={},
        structs={},
        type_names=names,
    )


def environment_libraries(*, includes: bool, bindings: bool = True) -> tuple[Library, ...]:
    """Return the libraries of the language and of Kubernetes, in the order of declaration.

    `bindings`: whether there is `cel.bind`, which Kubernetes has for devices only.
    """
    return (
        with_equality_costs(standard.library()),
        language_strings.library(),
        formatting.library(_kubernetes_types()),
        language_lists.sets_library(),
        language_lists.library(),
        optionals.library(),
        macros.two_variable_library(),
        *((macros.bindings_library(),) if bindings else ()),
        *kubernetes_libraries(with_includes=includes),
    )


def with_equality_costs(standard: Library) -> Library:
    """Return the standard library with Kubernetes' costs of `==` in front of its own."""
    functions = tuple(
        Function(function.name, tuple(map(_overload, function.overloads)))
        if function.name == "_==_"
        else function
        for function in standard.functions
    )
    return replace(standard, functions=functions)


def _overload(overload: Overload) -> Overload:
    default_cost, default_estimate = overload.runtime_cost, overload.estimate

    def cost(args: tuple[Any, ...], result: Any) -> int:
        if default_cost is None or isinstance(args[0], _VALUES):
            return 1
        return default_cost(args, result)

    def estimate(target: Argument | None, args: Arguments) -> CallEstimate | None:
        found = equality_estimate(*args)
        if found is None and default_estimate is not None:
            return default_estimate(target, args)
        return None if found is None else CallEstimate(found)

    return replace(overload, runtime_cost=cost, estimate=estimate)


def equality_estimate(left: Argument, right: Argument) -> Range | None:
    """Return the estimate of `left == right`, None if they are not of one type of Kubernetes'."""
    if left.type != right.type:
        return None
    if left.type in _UNIT_TYPES:
        return exactly(1)
    if left.type == FORMAT_TYPE:
        return traversal(Range(1, FORMAT_SIZE_MAX))
    if left.type == URL_TYPE:
        # Kubernetes means the larger of both sizes but looks at the right one twice.
        return traversal(Range(1, (right.known_size or exactly(1)).high))
    return None
