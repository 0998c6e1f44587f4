"""Parts of a node that can stand for each other, so that like states are looked at once.

    # component: devices that share counters, or one device with a capacity that can be shared
    # plain: all other devices
    # signature: all that rules can see of a device

Two components of one type, in the same state, are exchangeable: a state of the problem is known by
which states its components are in, not by which component is in which. Of plain devices with the
same signature it is enough to know how many are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mooring.allocator.bits import bits, mask_of
from mooring.allocator.problem import Problem, Slot
from mooring.allocator.remains import Group
from mooring.allocator.rules.amounts import Amounts, Field
from mooring.allocator.rules.attributes import Table
from mooring.allocator.rules.base import States
from mooring.allocator.rules.compatibility import Compatibility
from mooring.allocator.rules.constraints import Constraint


class Component(NamedTuple):
    """Devices whose amounts depend on each other."""

    type: object
    first: int  # the lowest position
    devices: int
    fields: tuple[Field, ...]  # of counters
    capacity: tuple[int, ...]  # accounts


class Signature(NamedTuple):
    """All that rules can see of a device."""

    slots: int  # of which it is a candidate
    values: tuple[object, ...]  # of the attributes that constraints compare
    is_shareable: bool
    is_paid: bool  # whether a share that others have pays for its counters
    takes: tuple[int | None, ...]  # of its own capacity, by slot
    groups: tuple[object, ...]  # that it is compatible with
    counters: tuple[int, int] | None  # the account and what it takes of it


class Components:
    """The components of one problem."""

    def __init__(
        self, problem: Problem, amounts: Amounts | None, compatibility: Compatibility | None
    ) -> None:
        self._problem = problem
        self.like = _likenesses(problem)
        self._amounts = amounts
        self._compatibility = compatibility
        self.grouped = 0 if compatibility is None else mask_of(compatibility.groups)
        counted = 0 if amounts is None else mask_of(amounts.counters)
        self.accounted = counted if amounts is None else counted | mask_of(amounts.capacity)
        self.entangled = self.grouped | counted  # whose amounts are not theirs alone
        self.stateful = self.accounted | self.grouped
        self._signatures = self._sign()
        self._components = [] if amounts is None else self._divide(amounts)
        plain: dict[Signature, int] = {}
        for position, signature in enumerate(self._signatures):
            if not self.stateful >> position & 1:
                plain[signature] = plain.get(signature, 0) | 1 << position
        self._plain = tuple(plain.values())

    def kind(self, position: int, groups: Sequence[Group], states: States) -> object:
        """Return what a device is like now: devices of one kind need not be tried twice."""
        signature = self._signatures[position]
        amounts = self._amounts
        if amounts is None:
            return signature
        account = amounts.capacity.get(position)
        left = None
        if account is not None:
            left = states[amounts.index].get(account, amounts.left[account])
        if not signature.is_shareable:
            return (signature, left)
        # Several groups may use it, and those that are partly filled only look at devices above
        # some position. (Of other devices, the lower one is in every domain that matters.)
        users = mask_of(n for n, group in enumerate(groups) if group.domain >> position & 1)
        is_paid = (amounts.shared | states[0][1]) >> position & 1
        return (signature, left, is_paid, users)

    def key(self, groups: Sequence[Group], states: States) -> object:
        """Return what a state is like: from like states the same can be filled."""
        parts = Counter([self._state(component, groups, states) for component in self._components])
        return (
            tuple([(self.like[g.slot], g.need, g.repeats) for g in groups]),
            frozenset(parts.items()),
            tuple(
                [
                    tuple([(group.domain & devices).bit_count() for group in groups])
                    for devices in self._plain
                ]
            ),
            # With admin access it matters which devices others have, not only how many.
            tuple([g.domain for g in groups if g.slot.ask.is_admin]),
            self._unlike(states),
        )

    def _state(
        self, component: Component, groups: Sequence[Group], states: States
    ) -> tuple[object, ...]:
        """Return the state of a component, in terms that are the same for all of its type."""
        amounts = self._amounts
        assert amounts is not None
        left, taken = amounts.left, states[amounts.index]
        return (
            component.type,
            tuple([(g.domain & component.devices) >> component.first for g in groups]),
            tuple(
                [
                    (taken.get(account, left[account]) or 0) >> shift & mask
                    for account, shift, mask, _ in component.fields
                ]
            ),
            tuple([taken.get(account, left[account]) for account in component.capacity]),
            # Shares of a device after the first pay no counters.
            ((amounts.shared | states[0][1]) & component.devices) >> component.first,
        )

    def _unlike(self, states: States) -> tuple[object, ...]:
        """Return the states of rules in which no two parts can be exchanged."""
        found: list[object] = []
        for rule in self._problem.rules:
            if isinstance(rule, Compatibility):
                found.append(frozenset(states[rule.index].items()))
            elif isinstance(rule, Constraint):
                found.append(states[rule.index])
        return tuple(found)

    # --- what is like what ----------------------------------------------------------------------

    def _sign(self) -> list[Signature]:
        slots = [slot for stage in self._problem.stages for slot in stage]
        rules = [rule for rule in self._problem.rules if isinstance(rule, Constraint)]
        tables = {id(table): table for rule in rules for table in rule.tables.values()}
        return [
            self._signature(position, slots, tables.values())
            for position in range(len(self._problem.view.spots))
        ]

    def _signature(
        self, position: int, slots: Sequence[Slot], tables: Iterable[Table]
    ) -> Signature:
        amounts, compatibility = self._amounts, self._compatibility
        has_account = amounts is not None and position in amounts.capacity
        return Signature(
            slots=mask_of(n for n, slot in enumerate(slots) if slot.candidates >> position & 1),
            values=tuple([table.elements.get(position) for table in tables]),
            is_shareable=bool(self._problem.view.shareable >> position & 1),
            is_paid=bool(amounts is not None and amounts.shared >> position & 1),
            takes=tuple([slot.takes.get(position) for slot in slots]) if has_account else (),
            groups=() if compatibility is None else tuple(compatibility.groups.get(position, ())),
            counters=None if amounts is None else amounts.counters.get(position),
        )

    def _divide(self, amounts: Amounts) -> list[Component]:
        """Return the components: devices are joined by the counter sets that they name."""
        parts: list[tuple[int, set[tuple[int, str]]]] = []  # devices, and their counter sets
        for position in bits(self.stateful):
            devices, sets = 1 << position, self._sets(position)
            apart = []
            for other_devices, other_sets in parts:
                if sets.isdisjoint(other_sets):
                    apart.append((other_devices, other_sets))
                else:
                    devices |= other_devices
                    sets |= other_sets
            parts = [*apart, (devices, sets)]
        return [self._component(devices, sets, amounts) for devices, sets in parts]

    def _sets(self, position: int) -> set[tuple[int, str]]:
        """Return the counter sets that a device names, each with its pool."""
        view = self._problem.view
        device = view.spots[position].device
        return {(view.pool_of(position), c.counter_set) for c in device.consumes_counters}

    def _component(
        self, devices: int, sets: Iterable[tuple[int, str]], amounts: Amounts
    ) -> Component:
        positions = bits(devices)
        fields = tuple(
            [field for key in sorted(sets) for field in self._fields(*key, positions, amounts)]
        )
        local = tuple(
            [self._local(position, positions[0], fields, amounts) for position in positions]
        )
        capacity = tuple([amounts.capacity[p] for p in positions if p in amounts.capacity])
        return Component(local, positions[0], devices, fields, capacity)

    def _fields(
        self, pool: int, counter_set: str, positions: Iterable[int], amounts: Amounts
    ) -> list[Field]:
        """Return the fields of a counter set."""
        counters = self._problem.view.pools[pool].counters
        if counters is None:
            return []
        account = next(amounts.counters[p][0] for p in positions if p in amounts.counters)
        width = counters.layout.width
        return [
            Field(account, place * width, (1 << width) - 1)
            for (name, _), place in counters.layout.fields.items()
            if name == counter_set
        ]

    def _local(
        self, position: int, first: int, fields: Iterable[Field], amounts: Amounts
    ) -> tuple[object, ...]:
        """Return what a device is within its component, whichever of its type that is."""
        account, take = amounts.counters.get(position, (None, 0))
        return (
            position - first,
            self._signatures[position][:-1],
            account,
            tuple([take >> field.shift & field.mask for field in fields]),
        )


def _likenesses(problem: Problem) -> dict[Slot, int]:
    """Return a number for each slot: the same for slots that may get the same devices, always."""
    numbers: dict[object, int] = {}
    found: dict[Slot, int] = {}
    for stage in problem.stages:
        for slot in stage:
            ask = slot.ask
            is_claims_own = bool(ask.constraints or ask.is_admin)
            key = (
                slot.wish,
                ask.wants_all,
                ask.is_admin,
                ask.claim if is_claims_own else -1,
                ask.constraints,
                tuple(sorted(ask.derived.items())),
            )
            found[slot] = numbers.setdefault(key, len(numbers))
    return found
