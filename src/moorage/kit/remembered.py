"""Results for texts that come again: of a bounded number of texts, and of short ones only.

A cache that counts its texts, and not their length, is filled by whoever sends long ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T", str, bytes)
R = TypeVar("R")


def remembered(texts_max: int, length_max: int) -> Callable[[Callable[[T], R]], Callable[[T], R]]:
    """Return a decorator for functions of a text, which caches the results for short texts."""

    def decorate(function: Callable[[T], R]) -> Callable[[T], R]:
        cached = lru_cache(maxsize=texts_max)(function)

        @wraps(function)
        def result(text: T) -> R:
            return cached(text) if len(text) <= length_max else function(text)

        return result

    return decorate
