"""Reinvocation: policies and webhooks may run again after others have changed the object.

All mutating policies and webhooks run once, in order. One with the reinvocation policy IfNeeded
runs again in a second round if another has changed the object since. There is no third round.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class ReinvocationContext:
    """What the policies, or the webhooks, have done to one request."""

    def __init__(self) -> None:
        self.is_reinvoke = False
        self.should_reinvoke = False
        self._invoked: set[Hashable] = set()  # of those that may run again
        self._again: set[Hashable] = set()
        self._last: Any = None

    def begin(self, value: Any) -> None:
        """Begin a round; before the second one, others may have changed the object."""
        if self.is_reinvoke and self._last != value:
            self._require()

    def end(self, value: Any) -> None:
        """End a round with the resulting object."""
        self._last = value

    def may_run(self, key: Hashable) -> bool:
        """Return whether a hook may run in this round."""
        return not self.is_reinvoke or key in self._again

    def note(self, key: Hashable, *, is_changed: bool, if_needed: bool) -> None:
        """Record that a hook has run."""
        if is_changed:
            self._require()
            self.should_reinvoke = True
        if if_needed:
            self._invoked.add(key)

    def _require(self) -> None:
        self._again |= self._invoked
        self._invoked.clear()
