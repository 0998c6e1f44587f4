"""Bounds by counting: demand that cannot be met, whichever devices are picked.

Devices: every group needs enough of them, each device going to one group (Hall's condition). Of
values that must be distinct likewise.

Amounts: a group needs, for each of its devices, at least the smallest charge among its payers. The
picks that go to escapes are at best the most expensive ones. The rest must be left: in sum, and for
any amount in as many pieces as there are picks that need at least that much.

    # kind: an amount that adds up over devices: a counter of a pool over all its counter sets, or a
    #       capacity over all devices that can be shared
    # payers: the devices that a pick is charged for in that kind
    # escape: a device without a charge. One that has a single user takes in one pick, whichever;
    #         one that can be shared takes in all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moorage.allocator.pools import bits, mask_of
from moorage.allocator.problem import Problem, Slot
from moorage.allocator.remaining import SlotGroup
from moorage.allocator.rules.base import States
from moorage.allocator.rules.constraints import DistinctAttribute, Element
from moorage.allocator.rules.consumption import AccountField, ConsumptionRule, field_width


def devices_suffice(groups: Sequence[SlotGroup], shareable: int) -> bool:
    """Return whether there are enough devices for all groups."""
    demands = []
    for group in groups:
        if group.slot.request.is_admin:
            continue
        shared = group.domain & shareable
        need = group.need - shared.bit_count()
        if need > 0 and not (group.repeats and shared):
            demands.append((need, group.domain & ~shared))
    return has_flow(demands)


def values_suffice(rule: DistinctAttribute, groups: Sequence[SlotGroup]) -> bool:
    """Return whether there are enough distinct values for the groups of a constraint."""
    numbers: dict[Element, int] = {}
    demands = []
    for group in groups:
        if rule not in group.slot.rules:
            continue
        table = rule.tables[group.slot.request]
        if group.domain & table.only_first:
            return True
        values = 0
        for element, holders in table.holders.items():
            if holders & group.domain:
                values |= 1 << numbers.setdefault(element, len(numbers))
        demands.append((group.need, values))
    return has_flow(demands)


# --- flow -----------------------------------------------------------------------------------------


Demand = tuple[int, int]  # how many, and the set of items that will do


def has_flow(demands: Sequence[Demand]) -> bool:
    """Return whether all demands can be met at once.

    1. Give each demand free items, the narrowest demand first.
    2. For one that is short, look for a chain: it takes an item from another demand, which takes
       one from a third, … until one finds a free item.
    """
    order = sorted(demands, key=lambda demand: demand[1].bit_count())
    wants = [items for _, items in order]
    given: list[int] = []
    free = 0
    for items in wants:
        free |= items
    if free.bit_count() < sum(need for need, _ in order):
        return False
    short: list[tuple[int, int]] = []
    for number, (need, items) in enumerate(order):
        got, missing = _lowest(items & free, need)
        free ^= got
        given.append(got)
        if missing:
            short.append((number, missing))
    for number, missing in short:
        for _ in range(missing):
            item = _exchange(number, wants, given, free)
            if not item:
                return False
            free ^= item
    return True


def _lowest(items: int, need: int) -> tuple[int, int]:
    """Return the lowest items, as many as needed, and how many are missing."""
    if items.bit_count() <= need:
        return items, need - items.bit_count()
    got = 0
    for _ in range(need):
        low = items & -items
        got |= low
        items ^= low
    return got, 0


def _exchange(start: int, wants: Sequence[int], given: list[int], free: int) -> int:
    """Let a demand have one more item, through a chain of exchanges; return the free item used."""
    came_from: dict[int, tuple[int, int]] = {}  # demand: who takes which item from it
    queue = [start]
    for taker in queue:
        item = wants[taker] & free
        if item:
            found = item & -item
            item = found
            while taker != start:
                given[taker] |= item
                taker, item = came_from[taker][0], came_from[taker][1]
                # The item moves from the demand that got another one to the taker before it.
                for other, items in enumerate(given):
                    if items & item and other != taker:
                        given[other] = items ^ item
                        break
            given[start] |= item
            return found
        for other, items in enumerate(given):
            steal = items & wants[taker]
            if steal and other != start and other not in came_from:
                came_from[other] = (taker, steal & -steal)
                queue.append(other)
    return 0


# --- amounts --------------------------------------------------------------------------------------


class _CounterKind(NamedTuple):
    """A counter of a pool, in all its counter sets."""

    payers: int
    fields: tuple[AccountField, ...]  # by counter set
    is_split: bool  # whether one pick may be charged in several sets

    def left(self, amounts: ConsumptionRule, states: States, among: int) -> list[int]:  # noqa: ARG002
        return [_amount_left(field, amounts, states) for field in self.fields]

    def charge(self, amounts: ConsumptionRule, slot: Slot, position: int) -> int:  # noqa: ARG002
        _, taken = amounts.counters[position]
        return sum([(taken >> shift & mask) * unit for _, shift, mask, unit in self.fields])


class _CapacityKind(NamedTuple):
    """A capacity, of all devices that can be shared and have it."""

    payers: int
    fields: Mapping[int, AccountField]  # by position
    is_split: bool = False  # a pick is charged on one device

    def left(self, amounts: ConsumptionRule, states: States, among: int) -> list[int]:
        return [
            _amount_left(field, amounts, states)
            for position, field in self.fields.items()
            if among >> position & 1
        ]

    def charge(self, amounts: ConsumptionRule, slot: Slot, position: int) -> int:  # noqa: ARG002
        _, shift, mask, unit = self.fields[position]
        return (slot.takes[position] >> shift & mask) * unit


_AmountKind = _CounterKind | _CapacityKind


def _amount_left(field: AccountField, amounts: ConsumptionRule, states: States) -> int:
    account, shift, mask, unit = field
    left = states[amounts.index].get(account, amounts.left[account]) or 0
    return (left >> shift & mask) * unit


class AmountBounds:
    """The amounts of one problem."""

    def __init__(self, problem: Problem, amounts: ConsumptionRule) -> None:
        self._problem = problem
        self._amounts = amounts
        self._shareable = problem.view.shareable
        self._kinds: list[_AmountKind] = [
            *_counter_kinds(problem, amounts),
            *_capacity_kinds(problem, amounts),
        ]
        self._loads: dict[tuple[int, int], float] = {}
        start = problem.start
        self._totals = [sum(kind.left(amounts, start, kind.payers)) for kind in self._kinds]
        self._least: dict[tuple[int, int, int], int] = {}

    def suffice(self, groups: Sequence[SlotGroup], states: States) -> bool:
        """Return whether no amount is exceeded."""
        return all(
            self._suffices(number, kind, groups, states) for number, kind in enumerate(self._kinds)
        )

    def load(self, group: SlotGroup) -> float:
        """Return the least share of all that is left that one device of a group takes."""
        key = (group.slot.requirements_id, group.domain)
        load = self._loads.get(key)
        if load is None:
            load = self._loads[key] = self._load(group)
        return load

    def _load(self, group: SlotGroup) -> float:
        shares = [
            self._smallest(number, kind, group.slot, group.domain & kind.payers) / kind_total
            for number, (kind, kind_total) in enumerate(zip(self._kinds, self._totals, strict=True))
            if kind_total and group.domain & kind.payers
        ]
        return max(shares, default=0.0)

    def _suffices(
        self, number: int, kind: _AmountKind, groups: Sequence[SlotGroup], states: States
    ) -> bool:
        needs: list[tuple[int, int]] = []
        payers = escapes = 0
        for group in groups:
            if group.slot.request.is_admin:
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
        return kind.is_split or _fit_in_pieces(needs, left, spare)

    def _smallest(self, number: int, kind: _AmountKind, slot: Slot, paying: int) -> int:
        """Return the smallest charge of a pick among the payers."""
        key = (slot.requirements_id, number, paying)
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


def _fit_in_pieces(needs: list[tuple[int, int]], left: list[int], escapes: int) -> bool:
    """Return whether, for every amount, the picks that need at least as much fit."""
    picks = 0
    for least, count in needs:
        picks += count
        if picks > escapes + sum([amount // least for amount in left]):
            return False
    return True


def _counter_kinds(problem: Problem, amounts: ConsumptionRule) -> list[_CounterKind]:
    view = problem.view
    kinds: list[_CounterKind] = []
    for facts, offset in zip(view.pools, view.offsets, strict=True):
        if facts.counters is None:
            continue
        layout = facts.counters.layout
        mask = (1 << layout.width - 1) - 1
        account = amounts.counters[offset + min(facts.counters.takes)][0]
        names: dict[str, list[AccountField]] = {}
        for (_, name), place in layout.fields.items():
            field = AccountField(account, place * layout.width, mask, layout.units[place])
            names.setdefault(name, []).append(field)
        # A device that can be shared is charged once for all its picks: it is an escape.
        payers = facts.counters.consumers << offset & ~view.shareable
        is_split = any(len(device.consumes_counters) > 1 for device in facts.pool.devices)
        kinds += [_CounterKind(payers, tuple(fields), is_split) for fields in names.values()]
    return kinds


def _capacity_kinds(problem: Problem, amounts: ConsumptionRule) -> list[_CapacityKind]:
    view = problem.view
    names: dict[str, dict[int, AccountField]] = {}
    for position, account in amounts.capacity.items():
        if not view.shareable >> position & 1:
            continue
        width = field_width(problem.view, position)
        for place, name in enumerate(sorted(view.devices[position].capacity)):
            field = AccountField(account, place * width, (1 << width - 1) - 1)
            names.setdefault(name, {})[position] = field
    return [_CapacityKind(mask_of(fields), fields) for fields in names.values()]
