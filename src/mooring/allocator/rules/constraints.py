"""Constraints of a claim: devices whose values match, or are distinct."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mooring.allocator.errors import AllocationError
from mooring.allocator.rules.attributes import Element, Table
from mooring.allocator.rules.base import NarrowingRule, State, States

if TYPE_CHECKING:
    from mooring.allocator.asks import Ask
    from mooring.allocator.problem import Slot

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
