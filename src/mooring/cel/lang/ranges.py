"""Arithmetic of estimates: from at least to at most, never beyond UNBOUNDED."""

from __future__ import annotations

import math

from mooring.cel.lang.declarations import UNBOUNDED, Range

NOTHING = Range(0, 0)
UNKNOWN = Range(0, UNBOUNDED)
# The neutral element of `union`: an estimate that no case has contributed to yet.
IMPOSSIBLE = Range(UNBOUNDED, 0)


def exactly(amount: int) -> Range:
    """Return the estimate of a known amount."""
    return Range(amount, amount)


def add(*ranges: Range) -> Range:
    """Return the sum."""
    low = sum(each.low for each in ranges)
    high = sum(each.high for each in ranges)
    return Range(min(low, UNBOUNDED), min(high, UNBOUNDED))


def multiply(first: Range, second: Range) -> Range:
    """Return the product."""
    return Range(min(first.low * second.low, UNBOUNDED), min(first.high * second.high, UNBOUNDED))


def scale(range_: Range, factor: float) -> Range:
    """Return the estimate multiplied by a factor, rounded up."""
    return Range(_scale(range_.low, factor), _scale(range_.high, factor))


def union(first: Range, second: Range) -> Range:
    """Return the estimate that covers both."""
    return Range(min(first.low, second.low), max(first.high, second.high))


def _scale(amount: int, factor: float) -> int:
    # In floating point, as Kubernetes does it: the last digits of huge estimates come from there.
    return min(math.ceil(float(amount) * factor), UNBOUNDED)
