"""Parts of a node that can stand for each other, so that like states are looked at once.

    # component: devices that share counters, or one device with a capacity that can be shared
    # plain: all other devices

Two components of one type, in the same state, are exchangeable: a state of the problem is known by
which states its components are in, not by which component is in which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mooring.allocator.bits import bits
from mooring.allocator.problem import Problem
from mooring.allocator.rules.stateful import (
    Amounts,
    Compatibility,
    Constraint,
    DistinctAttribute,
    States,
)

if TYPE_CHECKING:
    from mooring.allocator.foresight import Group

Field = tuple[int, int]  # account, shift


class Component(NamedTuple):
    """Devices whose amounts depend on each other."""

    type: object
    first: int  # the lowest position
    mask: int
    fields: tuple[Field, ...]  # of counters
    width: int
    capacity: tuple[int, ...]  # accounts


class Components:
    """The components of one problem."""

    def __init__(
        self, problem: Problem, amounts: Amounts | None, compatibility: Compatibility | None
    ) -> None:
        self._problem = problem
        self._amounts = amounts
        self._compatibility = compatibility
        self._signatures = self._sign()
        self.grouped = _mask(compatibility.groups) if compatibility is not None else 0
        self.accounted = 0
        if amounts is not None:
            self.accounted = _mask(amounts.counters) | _mask(amounts.capacity)
        self.stateful = self.accounted | self.grouped
        # Devices whose amounts are not theirs alone.
        self.entangled = self.grouped | (_mask(amounts.counters) if amounts is not None else 0)
        self._plain = Counter[object]()
        self._components = self._divide() if amounts is not None else []
        classes: dict[object, int] = {}
        for position, signature in enumerate(self._signatures):
            if not self.stateful >> position & 1:
                classes[signature] = classes.get(signature, 0) | 1 << position
        self._classes = tuple(classes.values())

    def kind(self, position: int, states: States) -> object:
        """Return what a device is like now: devices of one kind need not be tried twice."""
        signature = self._signatures[position]
        if self._amounts is None:
            return signature
        account = self._amounts.capacity.get(position)
        if account is None:
            return signature
        taken: Mapping[int, int] = states[self._amounts.index]
        left = taken.get(account, self._amounts.left[account])
        return (signature, left, states[0][1] >> position & 1)

    def key(self, groups: Sequence[Group], states: States) -> object:
        """Return what a state is like: from like states the same can be filled."""
        amounts = self._amounts
        parts: list[object] = []
        taken: Mapping[int, int] = states[amounts.index] if amounts is not None else {}
        shared: int = states[0][1]
        for component in self._components:
            assert amounts is not None
            bits_of_field = (1 << component.width) - 1
            domains = tuple([(g.domain & component.mask) >> component.first for g in groups])
            parts.append(
                (
                    component.type,
                    domains,
                    tuple(
                        [
                            (taken.get(account, amounts.left[account]) or 0) >> shift
                            & bits_of_field
                            for account, shift in component.fields
                        ]
                    ),
                    tuple([taken.get(a, amounts.left[a]) for a in component.capacity]),
                    (shared & component.mask) >> component.first,
                )
            )
        like = Counter(parts)
        plain = tuple(
            tuple([(group.domain & members).bit_count() for group in groups])
            for members in self._classes
        )
        return (
            tuple([(g.slot.wish, g.slot.ask.claim, g.slot.ask.constraints, g.need) for g in groups]),
            frozenset(like.items()),
            plain,
            self._other_states(states),
        )

    def _other_states(self, states: States) -> object:
        """Return the states in which no two parts can be exchanged."""
        found: list[object] = []
        for rule in self._problem.rules:
            if isinstance(rule, Compatibility):
                found.append(frozenset(states[rule.index].items()))
            elif isinstance(rule, Constraint):
                found.append(states[rule.index])
        return tuple(found)

    # --- what is like what ----------------------------------------------------------------------

    def _sign(self) -> list[object]:
        """Return for each device all that rules can see of it."""
        problem = self._problem
        slots = [slot for stage in problem.stages for slot in stage]
        constraints = [rule for rule in problem.rules if isinstance(rule, Constraint)]
        tables = [
            table
            for rule in constraints
            for table in {id(table): table for table in rule.tables.values()}.values()
        ]
        shareable = problem.view.shareable
        signatures: list[object] = []
        for position in range(len(problem.view.spots)):
            signatures.append(
                (
                    sum(
                        1 << number
                        for number, slot in enumerate(slots)
                        if slot.candidates >> position & 1
                    ),
                    tuple(table.elements.get(position) for table in tables),
                    shareable >> position & 1,
                    self._amounts is not None and self._amounts.counters.get(position),
                    tuple([slot.takes.get(position) for slot in slots])
                    if self._amounts is not None and position in self._amounts.capacity
                    else None,
                    tuple(self._compatibility.groups.get(position, ()))
                    if self._compatibility is not None
                    else None,
                )
            )
        return signatures

    def _divide(self) -> list[Component]:
        """Return the components: devices joined by the fields of counters that they take of."""
        assert self._amounts is not None
        parent: dict[object, object] = {}

        def root(item: object) -> object:
            while parent.setdefault(item, item) != item:
                item = parent[item]
            return item

        fields_of = {p: self._fields(p) for p in bits(self.stateful)}
        for position, fields in fields_of.items():
            for account, _, set_name in fields:
                parent[root(("set", account, set_name))] = root(("device", position))
        members: dict[object, list[int]] = {}
        for position in fields_of:
            members.setdefault(root(("device", position)), []).append(position)
        return [self._component(positions, fields_of) for positions in members.values()]

    def _fields(self, position: int) -> list[tuple[int, int, str]]:
        """Return the account, shift and counter set of each field of the sets a device names."""
        assert self._amounts is not None
        counters = self._amounts.counters.get(position)
        if counters is None:
            return []
        view = self._problem.view
        number = max(n for n, offset in enumerate(view.offsets) if offset <= position)
        table = view.pools[number].counters
        assert table is not None
        named = {c.counter_set for c in view.spots[position].device.consumes_counters}
        return [
            (counters[0], place * table.layout.width, set_name)
            for (set_name, _), place in table.layout.fields.items()
            if set_name in named
        ]

    def _component(
        self, positions: list[int], fields_of: Mapping[int, list[tuple[int, int, str]]]
    ) -> Component:
        assert self._amounts is not None
        amounts = self._amounts
        fields = sorted({(a, shift) for p in positions for a, shift, _ in fields_of[p]})
        width = 0
        if fields:
            account = fields[0][0]
            number = next(
                n
                for n, offset in reversed(list(enumerate(self._problem.view.offsets)))
                if offset <= positions[0]
            )
            table = self._problem.view.pools[number].counters
            assert table is not None and account is not None
            width = table.layout.width
        first = positions[0]
        mask = _mask(positions)
        local = tuple(
            (
                position - first,
                self._signatures[position][:3],  # type: ignore[index]
                self._signatures[position][4:],  # type: ignore[index]
                tuple(
                    (amounts.counters[position][1] >> shift) & ((1 << width) - 1)
                    for _, shift in fields
                )
                if position in amounts.counters
                else None,
            )
            for position in positions
        )
        capacity = tuple(amounts.capacity[p] for p in positions if p in amounts.capacity)
        type_ = (local, width, tuple(account for account, _ in fields))
        return Component(type_, first, mask, tuple(fields), width, capacity)


def _mask(positions: object) -> int:
    mask = 0
    for position in positions:  # type: ignore[attr-defined]
        mask |= 1 << position
    return mask
