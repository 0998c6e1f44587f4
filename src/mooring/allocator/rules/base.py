"""Rules whose answer depends on what was picked before.

A rule keeps its state as a value that is never changed: `take` returns the state after a pick.
So going back in the search is nothing but going on with an older state; there is no undoing that
could be forgotten or done twice.

    # picks: the devices given to asks so far in this attempt
    # mine: those of the claim that is being served

The law of `take`: it answers None, and nothing has happened, exactly if the device cannot be added;
`narrow` leaves out exactly the devices that `take` would refuse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mooring.allocator.problem import Slot

State = Any
States = list[State]  # by index of the rule; never changed, only copied


class Rule(ABC):
    """One rule of one problem; `index` is the place of its state among the states."""

    index: int
    is_constraint = False
    start: State  # before the first pick

    @abstractmethod
    def take(self, states: States, slot: Slot, position: int) -> State | None:
        """Return the state after the pick; None if the rule refuses it."""


class NarrowingRule(Rule):
    """A rule that can tell all devices that it refuses at once."""

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


# The picks so far: exclusive devices, shared ones, the claim served last, and its exclusive ones.
Picks = tuple[int, int, int, int]
