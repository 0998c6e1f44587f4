"""JSON that comes again: thousands of pods have the tolerations and volumes of one template.

What was once made of a tree is there for all equal ones, which then share it: values are never
changed. Where names make nearly every tree another one, most are not even looked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec

M = TypeVar("M")

REMEMBERED_MAX: Final = 256
BYTES_MAX: Final = 2048  # of the text of a tree
MISSES_MAX: Final = 64  # more than hits, before some trees are passed over
PASSED_OVER: Final = 1024
_encode = msgspec.json.Encoder().encode


class RepeatedTrees(Generic[M]):
    """What was made of trees, by their text. Several threads may use it."""

    __slots__ = ("_known", "_misses_left")

    def __init__(self) -> None:
        self._known: dict[bytes, M] = {}
        self._misses_left = MISSES_MAX

    def find(self, tree: Any) -> tuple[M | None, bytes]:
        """Return what was made of an equal tree, if that is known, and the text to remember by.

        Without a text, nothing is to be remembered.
        """
        if self._misses_left <= 0:
            self._misses_left -= 1
            if self._misses_left > -PASSED_OVER:
                return None, b""
            self._misses_left = MISSES_MAX
        if type(tree) is not dict and type(tree) is not list:
            return None, b""
        try:
            text = _encode(tree)
        except (TypeError, ValueError, RecursionError):
            return None, b""  # It has a number that keeps its text, or half a character.
        known = self._known.get(text)
        if known is not None:
            if self._misses_left < MISSES_MAX:
                self._misses_left += 1
            return known, text
        self._misses_left -= 1
        return None, text if len(text) <= BYTES_MAX else b""

    def remember(self, text: bytes, made: M) -> None:
        """Remember what was made of a tree."""
        if len(self._known) >= REMEMBERED_MAX:
            self._known.clear()
        self._known[text] = made


def made_once(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that makes the same of equal trees; it is never None."""
    trees: RepeatedTrees[Any] = RepeatedTrees()

    def made(tree: Any) -> Any:
        known, text = trees.find(tree)
        if known is not None:
            return known
        found = make(tree)
        if text:
            trees.remember(text, found)
        return found

    return made
