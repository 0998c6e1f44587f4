"""Rules whose answer depends on earlier picks, and the one that every problem has.

A rule keeps its state as an immutable value: `take` returns the state after a pick. To backtrack,
the search continues from an older state, so there is nothing to undo.

    # picks: the devices given to requests so far in this attempt
    # mine: those of the claim that is being served

The contract: `take` returns None, and nothing has happened, exactly if the device cannot be added;
`narrow` removes exactly the devices that `take` would refuse.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moorage.allocator.problem import Slot


State = Any
States = list[State]  # by index of the rule; never changed, only copied
# The devices that are not free: those with one user each, that were picked or allocated before;
# picks of devices that can be shared; the claim served last, and its picks with one user each.
Picks = tuple[int, int, int, int]


class Rule:
    """One rule of one problem; `index` is the place of its state among the states."""

    index: int
    is_constraint = False
    start: State  # before the first pick

    @abstractmethod
    def take(self, states: States, slot: Slot, position: int) -> State | None:
        """Return the state after the pick; None if the rule refuses it."""


class NarrowingRule(Rule):
    """A rule that can refuse many devices at once."""

    @abstractmethod
    def narrow(self, states: States, slot: Slot, candidates: int) -> int:
        """Return the candidates that the rule does not refuse."""

    @abstractmethod
    def add(self, states: States, slot: Slot, position: int) -> State:
        """Return the state after the pick of a device that it does not refuse."""

    def take(self, states: States, slot: Slot, position: int) -> State | None:
        """Return the state after the pick; None if the rule refuses it."""
        if not self.narrow(states, slot, 1 << position):
            return None
        return self.add(states, slot, position)


class InUseRule(NarrowingRule):
    """A device has one user, unless it can be shared; admin access may join other claims' users."""

    index = 0

    def __init__(self, whole: int, shareable: int) -> None:
        self.start = (whole, 0, -1, 0)
        self.shareable = shareable

    def narrow(self, states: States, slot: Slot, candidates: int) -> int:
        """Return the candidates that are free for the slot."""
        picks: Picks = states[0]
        request = slot.request
        if not request.is_admin:
            return candidates & ~picks[0]
        return candidates & ~picks[3] if picks[2] == request.claim else candidates

    def add(self, states: States, slot: Slot, position: int) -> Picks:
        """Return the picks with one more."""
        bit = 1 << position
        exclusive, shared, claim, mine = states[0]
        if bit & self.shareable:
            return (exclusive, shared | bit, claim, mine)
        if claim != slot.request.claim:
            return (exclusive | bit, shared, slot.request.claim, bit)
        return (exclusive | bit, shared, claim, mine | bit)
