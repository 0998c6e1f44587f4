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
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from mooring.allocator.errors import AllocationError
from mooring.allocator.rules.attributes import Element, Table

if TYPE_CHECKING:
    from mooring.allocator.asks import Ask
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
        if counters is not None and not (self.shared | picks[1]) >> position & 1:
            charges.append(counters)
        account = self.capacity.get(position)
        if account is not None:
            charges.append((account, slot.takes[position]))
        return charges

    def take(self, states: States, slot: Slot, position: int) -> Mapping[int, int] | None:
        """Return what is left then of the accounts that were charged; None if too little."""
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


class CountersFirst(Rule):
    """Looks ahead at counters alone, where constraints come between them and capacity."""

    def __init__(self, amounts: Amounts) -> None:
        self.index = amounts.index
        self.start = amounts.start
        self._amounts = amounts

    def take(self, states: States, slot: Slot, position: int) -> Mapping[int, int] | None:  # noqa: ARG002
        """Return the state as it is; None if too little is left of a counter."""
        amounts = self._amounts
        taken: Mapping[int, int] = states[self.index]
        counters = amounts.counters.get(position)
        if counters is None or (amounts.shared | states[0][1]) >> position & 1:
            return taken
        account, amount = counters
        left = taken.get(account, amounts.left[account])
        guards = amounts.guards[account]
        if left is None or ((left | guards) - amount) & guards != guards:
            return None
        return taken


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
        """Return the groups that all devices are in then; None if there would be none."""
        current: Mapping[SetKey, Groups] = states[self.index]
        joined = self.groups.get(position)
        if joined is None or (self.shared | states[0][1]) >> position & 1:
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


ANY: tuple[Element, ...] = (("any", ""),)  # not a value of any attribute


class Constraint(NarrowingRule):
    """A rule over an attribute of the devices of one claim."""

    is_constraint = True

    def __init__(self, index: int, attribute: str, tables: Mapping[Ask, Table]) -> None:
        self.index = index
        self.attribute = attribute
        self.tables = tables  # by ask: derived attributes are an ask's own

    def take(self, states: States, slot: Slot, position: int) -> State | None:
        """Return the state after the pick; raise the fault of an attribute without a value."""
        faults = self.tables[slot.ask].faults
        if position in faults:
            raise AllocationError(faults[position])
        return super().take(states, slot, position)


class MatchAttribute(Constraint):
    """All devices have a value in common. State: the elements that all have; ANY: no device."""

    start: tuple[Element, ...] = ANY

    def narrow(self, states: States, slot: Slot, candidates: int) -> int:
        """Return the candidates that have one of the common elements."""
        table = self.tables[slot.ask]
        common: tuple[Element, ...] = states[self.index]
        if common is ANY:
            return candidates & table.known
        fitting = 0
        for element in common:
            fitting |= table.holders.get(element, 0)
        return candidates & fitting

    def add(self, states: States, slot: Slot, position: int) -> tuple[Element, ...]:
        """Return the elements that the device has as well."""
        elements = self.tables[slot.ask].elements[position]
        common: tuple[Element, ...] = states[self.index]
        if common is ANY or common == elements:
            return elements
        return tuple([element for element in common if element in elements])


# How many devices, their elements, and the devices with one of these in the table they came from.
Used = tuple[int, frozenset[Element], int]


class DistinctAttribute(Constraint):
    """No two devices have a value in common."""

    start: Used = (0, frozenset(), 0)

    def __init__(self, index: int, attribute: str, tables: Mapping[Ask, Table]) -> None:
        super().__init__(index, attribute, tables)
        self._has_one_table = len({id(table) for table in tables.values()}) == 1

    def narrow(self, states: States, slot: Slot, candidates: int) -> int:
        """Return the candidates that have none of the elements."""
        table = self.tables[slot.ask]
        used: Used = states[self.index]
        count, elements, holders = used
        candidates &= table.known
        if not count:
            return candidates
        if not self._has_one_table:
            holders = 0
            for element in elements:
                holders |= table.holders.get(element, 0)
        return candidates & ~(holders | table.only_first)

    def add(self, states: States, slot: Slot, position: int) -> Used:
        """Return the elements with those of the device."""
        table = self.tables[slot.ask]
        count, used, holders = states[self.index]
        elements = table.elements[position]
        for element in elements:
            holders |= table.holders[element]
        return count + 1, used.union(elements), holders
