"""Rules whose answer depends on what was picked before.

A rule keeps its state as a value that is never changed: `take` returns the state after a pick.
So going back in the search is nothing but going on with an older state; there is no undoing that
could be forgotten or done twice.

    # picks: the devices given to asks so far in this attempt
    # mine: those of the claim that is being served

The law of `take`: it answers None, and nothing has happened, exactly if the device cannot be added;
`narrow` may leave out only devices that `take` would refuse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

from mooring.allocator.errors import AllocationError
from mooring.allocator.rules.attributes import Element, Table

if TYPE_CHECKING:
    from mooring.allocator.problem import Slot

State = Any
States = tuple[State, ...]


class Rule(ABC):
    """One rule of one problem; `index` is the place of its state among the states."""

    index: int
    is_constraint = False

    @property
    @abstractmethod
    def start(self) -> State:
        """The state before the first pick."""

    def narrow(self, states: States, slot: Slot, candidates: int) -> int:  # noqa: ARG002
        """Return the candidates without some of those that `take` would refuse."""
        return candidates

    @abstractmethod
    def take(self, states: States, slot: Slot, position: int) -> State | None:
        """Return the state after the pick; None if the rule refuses it."""


class Picks(NamedTuple):
    """Which devices were picked in this attempt."""

    exclusive: int = 0
    shared: int = 0
    claim: int = -1
    mine: int = 0  # exclusive ones of that claim


class InUse(Rule):
    """A device has one user, unless it can be shared; admin access may join other claims' users."""

    index = 0
    start = Picks()

    def __init__(self, whole: int, shareable: int) -> None:
        self.whole = whole
        self.shareable = shareable

    def narrow(self, states: States, slot: Slot, candidates: int) -> int:
        picks: Picks = states[0]
        if not slot.ask.is_admin:
            return candidates & ~(self.whole | picks.exclusive)
        return candidates & ~picks.mine if picks.claim == slot.ask.claim else candidates

    def take(self, states: States, slot: Slot, position: int) -> Picks | None:
        bit = 1 << position
        if not self.narrow(states, slot, bit):
            return None
        exclusive, shared, claim, mine = states[0]
        if bit & self.shareable:
            return Picks(exclusive, shared | bit, claim, mine)
        if claim != slot.ask.claim:
            mine = 0
        return Picks(exclusive | bit, shared, slot.ask.claim, mine | bit)


class Amounts(Rule):
    """Counters of a pool and capacities of a device: no more is taken than there is.

    Each is an account: a packed number with a guard bit above each of its fields.
    """

    start: Mapping[int, int] = {}

    def __init__(
        self,
        index: int,
        *,
        left: Sequence[int | None],
        guards: Sequence[int],
        counters: Mapping[int, tuple[int, int]],
        capacity: Mapping[int, int],
        fixed: Set[int],
        shared: int,
    ) -> None:
        self.index = index
        self.fixed = fixed  # accounts that are looked at but not charged
        self.left = left  # by account; None: more is taken than there is
        self.guards = guards
        self.counters = counters  # by position: account and what the device takes of it
        self.capacity = capacity  # by position: account
        self.shared = shared  # devices with shares, whose counters are paid for

    def charges(self, picks: Picks, slot: Slot, position: int) -> list[tuple[int, int]]:
        """Return what a pick takes of which accounts."""
        charges = []
        counters = self.counters.get(position)
        if counters is not None and not (self.shared | picks.shared) >> position & 1:
            charges.append(counters)
        account = self.capacity.get(position)
        if account is not None:
            charges.append((account, slot.takes[position]))
        return charges

    def take(self, states: States, slot: Slot, position: int) -> Mapping[int, int] | None:
        taken: Mapping[int, int] = states[self.index]
        changed: dict[int, int] | None = None
        for account, amount in self.charges(states[0], slot, position):
            left = taken.get(account)
            if left is None:
                left = self.left[account]
                if left is None:
                    return None
            guards = self.guards[account]
            rest = (left | guards) - amount
            if rest & guards != guards:
                return None
            if account in self.fixed:
                continue
            if changed is None:
                changed = dict(taken)
            changed[account] = rest ^ guards
        return taken if changed is None else changed


SetKey = tuple[int, str]  # pool, counter set
Groups = frozenset[str]
NO_GROUPS: Groups = frozenset([""])  # as if such devices were a group of their own


class Compatibility(Rule):
    """Devices on one counter set need a group that all of them are in."""

    start: Mapping[SetKey, Groups] = {}

    def __init__(
        self,
        index: int,
        *,
        baseline: Mapping[SetKey, Groups],
        groups: Mapping[int, Sequence[tuple[SetKey, Groups]]],
        shared: int,
    ) -> None:
        self.index = index
        self.baseline = baseline
        self.groups = groups  # by position
        self.shared = shared

    def take(self, states: States, slot: Slot, position: int) -> Mapping[SetKey, Groups] | None:  # noqa: ARG002
        current: Mapping[SetKey, Groups] = states[self.index]
        joined = self.groups.get(position)
        if joined is None or (self.shared | states[0].shared) >> position & 1:
            return current
        changed = dict(current)
        for key, groups in joined:
            before = changed.get(key) or self.baseline.get(key)
            if before is not None:
                groups = before & groups
                if not groups:
                    return None
            changed[key] = groups
        return changed


class Constraint(Rule):
    """A rule over an attribute of the devices of one claim."""

    is_constraint = True

    def __init__(self, index: int, tables: Mapping[object, Table]) -> None:
        self.index = index
        self.tables = tables  # by ask: derived attributes are an ask's own

    def _elements(self, slot: Slot, position: int) -> tuple[Element, ...] | None:
        """Return the elements of a device; None if it has none that count."""
        table = self.tables[slot.ask]
        if position in table.faults:
            raise AllocationError(table.faults[position])
        return table.elements.get(position)


class MatchAttribute(Constraint):
    """All devices have a value in common. State: the elements that all have; None: no device."""

    @property
    def start(self) -> State:
        return ANY

    def narrow(self, states: States, slot: Slot, candidates: int) -> int:
        table = self.tables[slot.ask]
        common: tuple[Element, ...] | None = states[self.index]
        if common is ANY:
            return candidates & table.known
        fitting = 0
        for element in common:
            fitting |= table.holders.get(element, 0)
        return candidates & fitting

    def take(self, states: States, slot: Slot, position: int) -> tuple[Element, ...] | None:
        elements = self._elements(slot, position)
        common: tuple[Element, ...] = states[self.index]
        if common is ANY or elements is None:
            return elements
        if common == elements and elements:
            return common
        both = tuple(element for element in common if element in elements)
        return both or None


class DistinctAttribute(Constraint):
    """No two devices have a value in common. State: how many devices, and their elements."""

    start = (0, frozenset())

    def narrow(self, states: States, slot: Slot, candidates: int) -> int:
        table = self.tables[slot.ask]
        count, elements = states[self.index]
        candidates &= table.known
        if not count:
            return candidates
        used = table.only_first
        for element in elements:
            used |= table.holders.get(element, 0)
        return candidates & ~used

    def take(
        self, states: States, slot: Slot, position: int
    ) -> tuple[int, frozenset[Element]] | None:
        elements = self._elements(slot, position)
        if elements is None:
            return None
        count, used = states[self.index]
        if count and (not elements or not used.isdisjoint(elements)):
            return None
        return count + 1, used.union(elements)


ANY: tuple[Element, ...] = (("any", ""),)  # not a value of any attribute
