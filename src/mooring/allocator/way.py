"""A way to the end that foresight has seen, so that it need not be asked at every step.

While the search takes picks that are on the way, the rest of it still leads to the end. Of a slot
that takes several devices the search may need them in another order than the way has them; there
the way is left.
"""

from __future__ import annotations

from collections import Counter

from mooring.allocator.rules.base import States


class Way:
    """Which devices like slots get on the last way that was seen, as far as that was decided."""

    def __init__(self) -> None:
        self._states: States | None = None  # from which the way leads on
        self._picks: Counter[tuple[int, int]] = Counter()

    def start(self, states: States) -> None:
        """Begin a way from a state; its picks are added when it turned out to be one."""
        self._states = states
        self._picks = Counter()

    def add(self, pick: tuple[int, int]) -> None:
        """Put a pick on the way."""
        self._picks[pick] += 1

    def forget(self) -> None:
        """Know of no way."""
        self._states = None

    def follow(self, before: States, pick: tuple[int, int], count: int, after: States) -> None:
        """Go one pick further, if it is on the way."""
        if self._states is before:
            if count == 1 and self._picks[pick] > 0:
                self._picks[pick] -= 1
                self._states = after
            else:
                self._states = None

    def leads_from(self, states: States) -> bool:
        """Return whether the way leads on from a state."""
        return self._states is states
