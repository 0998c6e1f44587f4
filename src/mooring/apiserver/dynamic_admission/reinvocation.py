"""Reinvocation: who changed an object early may look again at what others made of it.

All mutating policies and webhooks run once, in order. If one of them changed the object after
another with the policy IfNeeded had run, that one runs again, in a second round; there is no third.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class ReinvocationContext:
    """What policies, or webhooks, have done with one request."""

    def __init__(self) -> None:
        self.is_reinvoke = False
        self.should_reinvoke = False
        self._invoked: set[Hashable] = set()  # so far, of those that may run again
        self._again: set[Hashable] = set()
        self._last: Any = None

    def begin(self, value: Any) -> None:
        """Begin a round; in the second one, something else may have changed the object."""
        if self.is_reinvoke and self._last != value:
            self._require()

    def end(self, value: Any) -> None:
        """End a round with an object."""
        self._last = value

    def may_run(self, key: Hashable) -> bool:
        """Return whether it is its turn."""
        return not self.is_reinvoke or key in self._again

    def note(self, key: Hashable, *, is_changed: bool, if_needed: bool) -> None:
        """Note that one of them has run."""
        if is_changed:
            self._require()
            self.should_reinvoke = True
        if if_needed:
            self._invoked.add(key)

    def _require(self) -> None:
        self._again |= self._invoked
        self._invoked.clear()
