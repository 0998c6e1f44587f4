"""What cel-go charges for going through texts, lists and patterns.

# size: characters of a string, bytes, elements of a list, entries of a map, else 1
# traverse: to look at every part once, at a tenth of a unit each
"""

from __future__ import annotations

import math
from typing import Any, Final

from mooring.cel.lang.declarations import CallEstimate, EstimatedArgument, Range
from mooring.cel.lang.equality import size_of
from mooring.cel.lang.ranges import add, exactly, multiply, scale

TRAVERSAL_FACTOR: Final = 0.1
# A part of a pattern is taken to be four characters long.
PATTERN_FACTOR: Final = 0.25

Arguments = tuple[EstimatedArgument, ...]


# --- at run time ----------------------------------------------------------------------------------


def traversal_cost(value: Any) -> int:
    """Return what it costs to traverse a value."""
    return math.ceil(size_of(value) * TRAVERSAL_FACTOR)


def second_traversed(args: tuple[Any, ...], _result: Any) -> int:
    """Return the cost of a function that traverses its second argument."""
    return traversal_cost(args[1])


def shorter_traversed(args: tuple[Any, ...], _result: Any) -> int:
    """Return the cost of a comparison, which ends with the shorter side."""
    return math.ceil(min(size_of(args[0]), size_of(args[1])) * TRAVERSAL_FACTOR)


def both_traversed(args: tuple[Any, ...], _result: Any) -> int:
    """Return the cost of a concatenation, which copies both sides."""
    return math.ceil((size_of(args[0]) + size_of(args[1])) * TRAVERSAL_FACTOR)


def each_in_each(args: tuple[Any, ...], _result: Any) -> int:
    """Return the cost of looking for one text in another."""
    return traversal_cost(args[0]) * traversal_cost(args[1])


def each_looked_at(args: tuple[Any, ...], _result: Any) -> int:
    """Return the cost of looking for a value in a list."""
    return size_of(args[1])


def matched(args: tuple[Any, ...], _result: Any) -> int:
    """Return the cost of matching a text with a pattern; an empty text is not free."""
    text = math.ceil((1 + size_of(args[0])) * TRAVERSAL_FACTOR)
    return text * math.ceil(size_of(args[1]) * PATTERN_FACTOR)


# --- estimates ------------------------------------------------------------------------------------


def estimate_argument(_target: EstimatedArgument | None, args: Arguments) -> CallEstimate:
    """Return the estimate of a function that traverses its first argument."""
    return CallEstimate(scale(args[0].size, TRAVERSAL_FACTOR))


def estimate_shorter(_target: EstimatedArgument | None, args: Arguments) -> CallEstimate:
    """Return the estimate of a comparison."""
    high = min(args[0].size.high, args[1].size.high)
    return CallEstimate(scale(Range(min(high, 1), high), TRAVERSAL_FACTOR))


def estimate_concatenation(_target: EstimatedArgument | None, args: Arguments) -> CallEstimate:
    """Return the estimate of a concatenation of texts."""
    size = add(args[0].size, args[1].size)
    return CallEstimate(scale(size, TRAVERSAL_FACTOR), size)


def estimate_list_concatenation(_target: EstimatedArgument | None, args: Arguments) -> CallEstimate:
    """Return the estimate of a concatenation of lists, which copies nothing."""
    return CallEstimate(exactly(1), add(args[0].size, args[1].size))


def estimate_list_search(_target: EstimatedArgument | None, args: Arguments) -> CallEstimate:
    """Return the estimate of looking for a value in a list."""
    return CallEstimate(scale(args[1].size, 1))


def estimate_text_search(target: EstimatedArgument | None, args: Arguments) -> CallEstimate:
    """Return the estimate of looking for one text in another."""
    assert target is not None
    text, wanted = scale(target.size, TRAVERSAL_FACTOR), scale(args[0].size, TRAVERSAL_FACTOR)
    return CallEstimate(multiply(text, wanted))


def estimate_match(target: EstimatedArgument | None, args: Arguments) -> CallEstimate:
    """Return the estimate of matching a text, which may be the target, with a pattern."""
    text, pattern = args if target is None else (target, args[0])
    text_cost = scale(add(text.size, exactly(1)), TRAVERSAL_FACTOR)
    return CallEstimate(multiply(text_cost, scale(pattern.size, PATTERN_FACTOR)))
