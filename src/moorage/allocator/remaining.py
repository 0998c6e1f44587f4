"""The demand that remains from a stage on, treating interchangeable parts as equal.

    # group: equal slots that are still empty, with all the devices that they may get
    # horizon: the stages up to the first one that may raise an error; later ones are not considered
    # witness: the last completion that was found; while the search follows it, one exists
    # component: devices that share counters, or one device with a capacity that can be shared
    # plain: all other devices
    # signature: everything about a device that rules depend on

Two components of one type, in the same state, are interchangeable: what matters is which states the
components are in, not which component is in which state. Of plain devices with the same signature
only the number that is left matters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from moorage.allocator.pools import bits, mask_of
from moorage.allocator.problem import Problem, Slot
from moorage.allocator.rules.base import States
from moorage.allocator.rules.constraints import AttributeTable, CompatibilityRule, Constraint
from moorage.allocator.rules.consumption import AccountField, ConsumptionRule


class SlotGroup(NamedTuple):
    """Like slots that are still to be filled."""

    slot: Slot  # one of them
    need: int  # devices that all of them want
    domain: int  # the devices that they may get
    repeats: bool  # whether they may share one device


GroupFork = tuple[SlotGroup, ...]  # alternatives, one of which must be filled


class Remaining(NamedTuple):
    """The demand up to the horizon, and the requests at the horizon.

    A request at the horizon that cannot be served in any case ends the search with an error only if
    one of the devices with an error is free. Then only completions matter that leave one free.
    """

    groups: tuple[SlotGroup, ...]
    forks: tuple[GroupFork, ...]
    faulty: int | None  # these devices; None: the request at the horizon may be served


class RemainingByStage:
    """The remaining demand by stage, computed once for each."""

    def __init__(self, problem: Problem, like: Mapping[Slot, int]) -> None:
        self._problem = problem
        self._like = like  # slots with the same number are alike
        self._shareable = problem.view.shareable
        self._rest: dict[tuple[int, Slot | None], Remaining] = {}

    def after(self, stage: int, chosen: Slot | None = None) -> Remaining:
        """Return the demand from a stage on; at that stage of the chosen slot only."""
        found = self._rest.get((stage, chosen))
        if found is None:
            found = self._rest[stage, chosen] = self._gather(stage, chosen)
        return found

    def _gather(self, stage: int, chosen: Slot | None) -> Remaining:
        alike: dict[object, SlotGroup] = {}
        forks: list[GroupFork] = []
        stages = self._problem.stages[stage:]
        if chosen is not None:
            stages = ((chosen,), *stages[1:])
        faulty: int | None = None
        for slots in stages:
            if any(slot.is_risky for slot in slots):
                if len(slots) == 1 and _cannot_be_served(slots[0]):
                    faulty = mask_of(slots[0].faults) & ~self._problem.allocated.whole
                break  # the horizon
            groups = [_whole_group(slot) for slot in slots]
            if len(groups) > 1:
                forks.append(tuple(groups))
            else:
                self._join(groups[0], alike)
        return Remaining(tuple(alike.values()), tuple(forks), faulty)

    def _join(self, group: SlotGroup, alike: dict[object, SlotGroup]) -> None:
        """Merge a group with those that are like it."""
        request = group.slot.request
        can_repeat = bool(group.domain & self._shareable)
        if request.is_admin or group.slot.listed is not None or (can_repeat and group.need > 1):
            alike[object()] = group
            return
        key = self._like[group.slot]
        before = alike.get(key)
        need = group.need + (before.need if before is not None else 0)
        alike[key] = group._replace(need=need, repeats=can_repeat)


def _cannot_be_served(slot: Slot) -> bool:
    """Return whether a slot has too few candidates from the start, and only static errors."""
    return (
        slot.listed is None
        and not slot.is_lazy
        and not slot.request.is_admin
        and slot.candidates.bit_count() < slot.count
        and not any(rule.is_constraint for rule in slot.unsure)
    )


def _whole_group(slot: Slot) -> SlotGroup:
    if slot.listed is not None:
        # Mode All needs every selected device; one that cannot be used leaves too few.
        need = max(slot.count, 1)
        return SlotGroup(slot, need, slot.candidates & mask_of(slot.listed), repeats=False)
    return SlotGroup(slot, slot.count, slot.candidates, repeats=False)


class Witness:
    """The picks of the last completion that was found, as far as it was decided.

    While the search takes picks of the witness, the rest still completes it. For a slot that takes
    several devices the search may need another order; there it leaves the witness.
    """

    def __init__(self) -> None:
        self._states: States | None = None  # that the completion starts from
        self._picks: Counter[tuple[int, int]] = Counter()

    def start(self, states: States) -> None:
        """Begin a completion from a state; its picks are added once it is found."""
        self._states = states
        self._picks = Counter()

    def add(self, pick: tuple[int, int]) -> None:
        """Add a pick."""
        self._picks[pick] += 1

    def forget(self) -> None:
        """Drop the completion."""
        self._states = None

    def follow(self, before: States, pick: tuple[int, int], count: int, after: States) -> None:
        """Advance by one pick, if the completion has it."""
        if self._states is before:
            if count == 1 and self._picks[pick] > 0:
                self._picks[pick] -= 1
                self._states = after
            else:
                self._states = None

    def is_at(self, states: States) -> bool:
        """Return whether the completion continues from a state."""
        return self._states is states


# --- interchangeable parts ------------------------------------------------------------------------


class Component(NamedTuple):
    """Devices whose amounts depend on each other."""

    type: Hashable
    first: int  # the lowest position
    devices: int
    fields: tuple[AccountField, ...]  # of counters
    capacity: tuple[int, ...]  # accounts


class Signature(NamedTuple):
    """Everything about a device that rules depend on."""

    slots: int  # of which it is a candidate
    values: tuple[object, ...]  # of the attributes that constraints compare
    is_shareable: bool
    is_paid: bool  # whether a share that others have pays for its counters
    takes: tuple[int | None, ...]  # of its own capacity, by slot
    groups: tuple[object, ...]  # that it is compatible with
    counters: tuple[int, int] | None  # the account, and how much it consumes of it


class Components:
    """The components of one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.like = _likenesses(problem)
        self._amounts = amounts = problem.consumption
        self._compatibility = compatibility = problem.compatibility
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

    def kind(self, position: int, groups: Sequence[SlotGroup], states: States) -> object:
        """Return the present kind of a device: of one kind, one device has to be tried."""
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

    def key(self, groups: Sequence[SlotGroup], states: States) -> object:
        """Return the key of a state: from states with equal keys the same slots can be filled."""
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
            tuple([g.domain for g in groups if g.slot.request.is_admin]),
            self._unlike(states),
        )

    def _state(
        self, component: Component, groups: Sequence[SlotGroup], states: States
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
        """Return the states of rules in which no two parts are interchangeable."""
        found: list[object] = []
        for rule in self._problem.rules:
            if isinstance(rule, CompatibilityRule):
                found.append(frozenset(states[rule.index].items()))
            elif isinstance(rule, Constraint):
                found.append(states[rule.index])
        return tuple(found)

    # --- signatures and components --------------------------------------------------------------

    def _sign(self) -> list[Signature]:
        slots = [slot for stage in self._problem.stages for slot in stage]
        rules = [rule for rule in self._problem.rules if isinstance(rule, Constraint)]
        tables = {id(table): table for rule in rules for table in rule.tables.values()}
        return [
            self._signature(position, slots, tables.values())
            for position in range(len(self._problem.view.devices))
        ]

    def _signature(
        self, position: int, slots: Sequence[Slot], tables: Iterable[AttributeTable]
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

    def _divide(self, amounts: ConsumptionRule) -> list[Component]:
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
        device = view.devices[position]
        return {(view.pool_of(position), c.counter_set) for c in device.consumes_counters}

    def _component(
        self, devices: int, sets: Iterable[tuple[int, str]], amounts: ConsumptionRule
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
        self, pool: int, counter_set: str, positions: Iterable[int], amounts: ConsumptionRule
    ) -> list[AccountField]:
        """Return the fields of a counter set."""
        counters = self._problem.view.pools[pool].counters
        if counters is None:
            return []
        account = next(amounts.counters[p][0] for p in positions if p in amounts.counters)
        width = counters.layout.width
        return [
            AccountField(account, place * width, (1 << width) - 1)
            for (name, _), place in counters.layout.fields.items()
            if name == counter_set
        ]

    def _local(
        self, position: int, first: int, fields: Iterable[AccountField], amounts: ConsumptionRule
    ) -> tuple[object, ...]:
        """Return a device relative to its component, the same for all components of a type."""
        account, take = amounts.counters.get(position, (None, 0))
        return (
            position - first,
            self._signatures[position][:-1],
            account,
            tuple([take >> field.shift & field.mask for field in fields]),
        )


def _likenesses(problem: Problem) -> dict[Slot, int]:
    """Return a number for each slot: the same for slots that always may get the same devices."""
    numbers: dict[object, int] = {}
    found: dict[Slot, int] = {}
    for stage in problem.stages:
        for slot in stage:
            request = slot.request
            is_claims_own = bool(request.constraints or request.is_admin)
            key = (
                slot.requirements_id,
                request.wants_all,
                request.is_admin,
                request.claim if is_claims_own else -1,
                request.constraints,
                tuple(sorted(request.derived.items())),
            )
            found[slot] = numbers.setdefault(key, len(numbers))
    return found
