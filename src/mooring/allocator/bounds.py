"""Sums that cannot be exceeded: of all that is left of an amount, the groups need at least so much.

    # kind: an amount that adds up over devices: a counter of a pool over all its counter sets, or a
    #       capacity over all devices that can be shared
    # payers: the devices that a pick is charged for in that kind
    # escape: a device without a charge. One that has a single user takes in one pick, whichever;
    #         one that can be shared takes in all.

A group needs, for each of its devices, at least the smallest charge among its payers. The picks
that go to escapes are at best the most expensive ones. What remains must be there: in sum, and for
any amount in as many pieces of it as there are picks that need so much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mooring.allocator.bits import bits, mask_of
from mooring.allocator.problem import Problem, Slot
from mooring.allocator.remains import Group
from mooring.allocator.rules.amounts import Amounts, Field
from mooring.allocator.rules.base import States


class CounterKind(NamedTuple):
    """A counter of a pool, in all its counter sets."""

    payers: int
    fields: tuple[Field, ...]  # by counter set
    is_split: bool  # whether one pick may be charged in several sets

    def left(self, amounts: Amounts, states: States, among: int) -> list[int]:  # noqa: ARG002
        """Return what is left in each counter set."""
        return [_left(field, amounts, states) for field in self.fields]

    def charge(self, amounts: Amounts, slot: Slot, position: int) -> int:  # noqa: ARG002
        """Return what a pick takes of all sets."""
        _, taken = amounts.counters[position]
        return sum([(taken >> shift & mask) * unit for _, shift, mask, unit in self.fields])


class CapacityKind(NamedTuple):
    """A capacity, of all devices that can be shared and have it."""

    payers: int
    fields: Mapping[int, Field]  # by position
    is_split: bool = False  # a pick is charged on one device

    def left(self, amounts: Amounts, states: States, among: int) -> list[int]:
        """Return what is left of each of some devices."""
        return [
            _left(field, amounts, states)
            for position, field in self.fields.items()
            if among >> position & 1
        ]

    def charge(self, amounts: Amounts, slot: Slot, position: int) -> int:  # noqa: ARG002
        """Return what a pick takes of a device."""
        _, shift, mask, unit = self.fields[position]
        return (slot.takes[position] >> shift & mask) * unit


Kind = CounterKind | CapacityKind


def _left(field: Field, amounts: Amounts, states: States) -> int:
    account, shift, mask, unit = field
    left = states[amounts.index].get(account, amounts.left[account]) or 0
    return (left >> shift & mask) * unit


class Bounds:
    """The sums of one problem."""

    def __init__(self, problem: Problem, amounts: Amounts) -> None:
        self._problem = problem
        self._amounts = amounts
        self._shareable = problem.view.shareable
        self._kinds: list[Kind] = [
            *_counter_kinds(problem, amounts),
            *_capacity_kinds(problem, amounts),
        ]
        self._loads: dict[tuple[int, int], float] = {}
        start = problem.start
        self._totals = [sum(kind.left(amounts, start, kind.payers)) for kind in self._kinds]
        self._least: dict[tuple[int, int, int], int] = {}

    def suffice(self, groups: Sequence[Group], states: States) -> bool:
        """Return whether no sum is exceeded."""
        return all(
            self._suffices(number, kind, groups, states) for number, kind in enumerate(self._kinds)
        )

    def load(self, group: Group) -> float:
        """Return which part of all there is one device of a group takes at least."""
        key = (group.slot.wish, group.domain)
        load = self._loads.get(key)
        if load is None:
            load = self._loads[key] = self._load(group)
        return load

    def _load(self, group: Group) -> float:
        shares = [
            self._smallest(number, kind, group.slot, group.domain & kind.payers) / kind_total
            for number, (kind, kind_total) in enumerate(zip(self._kinds, self._totals, strict=True))
            if kind_total and group.domain & kind.payers
        ]
        return max(shares, default=0.0)

    def _suffices(self, number: int, kind: Kind, groups: Sequence[Group], states: States) -> bool:
        needs: list[tuple[int, int]] = []
        payers = escapes = 0
        for group in groups:
            if group.slot.ask.is_admin:
                continue
            paying = group.domain & kind.payers
            free = group.domain & ~paying
            if free & self._shareable or not paying:
                continue
            least = self._smallest(number, kind, group.slot, paying)
            if least:
                needs.append((least, group.need))
                payers |= paying
                escapes |= free
        if not needs:
            return True
        left = kind.left(self._amounts, states, payers)
        spare = escapes.bit_count()
        needs.sort(reverse=True)
        if _without_most_expensive(needs, spare) > sum(left):
            return False
        return kind.is_split or _have_room(needs, left, spare)

    def _smallest(self, number: int, kind: Kind, slot: Slot, paying: int) -> int:
        """Return the smallest charge of a pick among the payers."""
        key = (slot.wish, number, paying)
        least = self._least.get(key)
        if least is None:
            least = min(kind.charge(self._amounts, slot, position) for position in bits(paying))
            self._least[key] = least
        return least


def _without_most_expensive(needs: list[tuple[int, int]], escapes: int) -> int:
    """Return the sum of all needs but the largest, as many as there are escapes."""
    total = 0
    for least, count in needs:
        spared = min(escapes, count)
        escapes -= spared
        total += least * (count - spared)
    return total


def _have_room(needs: list[tuple[int, int]], left: list[int], escapes: int) -> bool:
    """Return whether the picks that need at least so much find a place, for every so much."""
    picks = 0
    for least, count in needs:
        picks += count
        if picks > escapes + sum([amount // least for amount in left]):
            return False
    return True


def _counter_kinds(problem: Problem, amounts: Amounts) -> list[CounterKind]:
    view = problem.view
    kinds: list[CounterKind] = []
    for facts, offset in zip(view.pools, view.offsets, strict=True):
        if facts.counters is None:
            continue
        layout = facts.counters.layout
        mask = (1 << layout.width - 1) - 1
        account = amounts.counters[offset + min(facts.counters.takes)][0]
        names: dict[str, list[Field]] = {}
        for (_, name), place in layout.fields.items():
            field = Field(account, place * layout.width, mask, layout.units[place])
            names.setdefault(name, []).append(field)
        # A device that can be shared is charged once for all its picks: it is an escape.
        payers = facts.counters.consumers << offset & ~view.shareable
        is_split = any(len(spot.device.consumes_counters) > 1 for spot in facts.pool.spots)
        kinds += [CounterKind(payers, tuple(fields), is_split) for fields in names.values()]
    return kinds


def _capacity_kinds(problem: Problem, amounts: Amounts) -> list[CapacityKind]:
    view = problem.view
    names: dict[str, dict[int, Field]] = {}
    for position, account in amounts.capacity.items():
        if not view.shareable >> position & 1:
            continue
        width = problem.capacity_width(position)
        for place, name in enumerate(sorted(view.spots[position].device.capacity)):
            field = Field(account, place * width, (1 << width - 1) - 1)
            names.setdefault(name, {})[position] = field
    return [CapacityKind(mask_of(fields), fields) for fields in names.values()]
