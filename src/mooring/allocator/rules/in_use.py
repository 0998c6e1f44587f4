"""One user for a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.allocator.rules.base import NarrowingRule, Picks, States

if TYPE_CHECKING:
    from mooring.allocator.problem import Slot


class InUse(NarrowingRule):
    """A device has one user, unless it can be shared; admin access may join other claims' users."""

    index = 0
    start: Picks = (0, 0, -1, 0)

    def __init__(self, whole: int, shareable: int) -> None:
        self.whole = whole
        self.shareable = shareable

    def narrow(self, states: States, slot: Slot, candidates: int) -> int:
        """Return the candidates that are free for the slot."""
        picks: Picks = states[0]
        exclusive, _, claim, mine = picks
        ask = slot.ask
        if not ask.is_admin:
            return candidates & ~(self.whole | exclusive)
        return candidates & ~mine if claim == ask.claim else candidates

    def add(self, states: States, slot: Slot, position: int) -> Picks:
        """Return the picks with one more."""
        bit = 1 << position
        exclusive, shared, claim, mine = states[0]
        if bit & self.shareable:
            return (exclusive, shared | bit, claim, mine)
        if claim != slot.ask.claim:
            return (exclusive | bit, shared, slot.ask.claim, bit)
        return (exclusive | bit, shared, claim, mine | bit)
