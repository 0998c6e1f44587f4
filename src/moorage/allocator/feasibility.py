"""Decide that the rest of a problem has no solution, without trying it in order.

Whether a completion exists does not depend on the order of picks. So requests that are alike are
grouped, the tightest group goes first, devices that are alike are tried once, and a failed state is
remembered treating interchangeable parts as equal.

    # group, horizon, witness: see `moorage.allocator.remaining`

1. Only stages before the horizon count, so pruning cannot hide an error.
2. Narrow each group's devices by what was picked; too few ends it.
3. A constraint whose values must match: keep the values for which every group has enough devices.
4. One user for a device: groups flow to devices (Hall's condition). Distinct values: to values.
5. If counting decides everything that is left, that was it. Otherwise decide something: a value
   that must match, an alternative, a device of the tightest group; and continue with 2.

It reports infeasibility only if it is certain. It ignores the limit of devices, groups with admin
access only have to find devices for themselves, and a check that takes too long stays undecided;
then the search continues in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from moorage.allocator.bin_packing import BinPacking
from moorage.allocator.bounds import AmountBounds, devices_suffice, values_suffice
from moorage.allocator.errors import OutOfStepsError
from moorage.allocator.pools import bits, mask_of
from moorage.allocator.problem import Problem, Slot
from moorage.allocator.remaining import (
    Components,
    GroupFork,
    Remaining,
    RemainingByStage,
    SlotGroup,
    Witness,
)
from moorage.allocator.rules.base import States
from moorage.allocator.rules.constraints import (
    ANY,
    DistinctAttribute,
    Element,
    MatchAttribute,
)

CHECK_STEPS_MIN = 50_000
LIGHT_STEPS_MAX = 5
INTERRUPT_EVERY_STEPS = 16
FAILURES_MAX = 100_000

R = TypeVar("R")


class Feasibility:
    """Checks whether the remaining slots of one problem can be filled."""

    def __init__(self, problem: Problem, *, interrupt: Callable[[], None]) -> None:
        self._problem = problem
        self._interrupt = interrupt  # called now and then; may raise
        self._shareable = problem.view.shareable
        # Where a pick can add to a counter, too little now may be enough later.
        self._is_blind = any(f.counters and f.counters.can_grow for f in problem.view.pools)
        self._amounts = problem.consumption
        self._compatibility = problem.compatibility
        self._components = Components(problem)
        self._bounds = AmountBounds(problem, self._amounts) if self._amounts is not None else None
        self._remaining = RemainingByStage(problem, self._components.like)
        self._failures: set[object] = set()
        self._unpackable: set[object] = set()
        self._fitting: dict[object, int] = {}
        self._witness = Witness()
        self._steps_left = 0
        self.steps = 0

    def picked(self, before: States, slot: Slot, position: int, after: States) -> None:
        """Follow the search along the witness, as long as it picks the same devices."""
        self._witness.follow(before, (self._components.like[slot], position), slot.count, after)

    def is_infeasible(
        self, states: States, stage: int, slot: Slot, filled: int, above: int
    ) -> bool:
        """Return whether there is no completion, and no error on the way to one."""
        if slot.is_risky or self._is_blind or self._witness.is_at(states):
            return False
        rest = self._remaining.after(stage + 1) if filled else self._remaining.after(stage, slot)
        if filled:
            domain = slot.candidates >> above << above
            if slot.listed is not None:
                domain &= mask_of(slot.listed[filled:])
            current = SlotGroup(slot, slot.count - filled, domain, repeats=False)
            rest = rest._replace(groups=(current, *rest.groups))
        # The harder the problem has been so far, the more steps a check may take.
        self._steps_left = max(CHECK_STEPS_MIN, self.steps)
        self._witness.start(states)
        try:
            if self._matters(rest, states):
                return False
            self._witness.forget()
            return True
        except OutOfStepsError:
            self._witness.forget()
            return False
        except RecursionError:
            self._witness.forget()
            self._is_blind = True  # Enough picks are left that later checks are as deep.
            return False

    # --- is there a completion? -----------------------------------------------------------------

    def _matters(self, rest: Remaining, states: States) -> bool:
        """Return whether there is a completion up to the horizon, and something at it."""
        if rest.faulty is None or rest.faulty & self._shareable:
            return self._is_possible(rest.groups, rest.forks, states)
        free: int = rest.faulty & ~states[0][0]
        return any(
            self._is_possible(
                [_without(position, group) for group in rest.groups],
                [tuple([_without(position, g) for g in fork]) for fork in rest.forks],
                states,
            )
            for position in bits(free)
        )

    def _is_possible(
        self, groups: Sequence[SlotGroup], forks: Sequence[GroupFork], states: States
    ) -> bool:
        """Return whether the groups can be filled; True also if bounds cannot decide."""
        self._spend()
        narrowed = self._narrow(groups, states)
        if narrowed is None:
            return False
        matched = self._match(narrowed, states)
        if matched is None:
            return False
        narrowed, states, undecided = matched
        if not self._counts_suffice(narrowed, states):
            return False
        if undecided is not None:
            rule, elements = undecided
            return any(
                self._is_possible(narrowed, forks, _with(states, rule.index, (element,)))
                for element in elements
            )
        if forks:
            first, *others = forks
            return any(self._is_possible((*narrowed, group), others, states) for group in first)
        return self._decide(narrowed, states)

    def _decide(self, groups: list[SlotGroup], states: States) -> bool:
        """Return whether the groups can be filled, with all values and alternatives decided."""
        if not self._is_packing(groups):
            return self._can_fill(groups, states)
        budget = self._steps_left
        light = self._steps_left = min(budget, LIGHT_STEPS_MAX)
        try:
            return self._can_fill(groups, states)
        except OutOfStepsError:
            pass
        finally:
            self._steps_left += budget - light
        return self._can_pack(groups, states)

    def _spend(self) -> None:
        self.steps += 1
        self._steps_left -= 1
        if self._steps_left < 0:
            raise OutOfStepsError
        if not self.steps % INTERRUPT_EVERY_STEPS:
            self._interrupt()

    def _narrow(self, groups: Sequence[SlotGroup], states: States) -> list[SlotGroup] | None:
        """Return the groups with the devices that they may still get; None if too few."""
        found = []
        for group in groups:
            if group.need <= 0:
                continue
            slot, domain = group.slot, group.domain
            for rule in slot.sure:
                domain = rule.narrow(states, slot, domain)
            domain = self._affordable(slot, domain, states)
            if not self._is_enough(group, domain):
                return None
            found.append(group._replace(domain=domain))
        return found

    def _is_enough(self, group: SlotGroup, domain: int) -> bool:
        if group.repeats and domain & self._shareable:
            return True
        return domain.bit_count() >= group.need

    def _affordable(self, slot: Slot, domain: int, states: States) -> int:
        """Return the devices whose counters, capacity and groups admit one more pick."""
        amounts, compatibility = self._amounts, self._compatibility
        if amounts is not None:
            checked = domain & self._components.accounted
            key = (
                slot.requirements_id,
                checked,
                frozenset(states[amounts.index].items()),
                states[0][1],
            )
            fitting = self._fitting.get(key)
            if fitting is None:
                fitting = 0
                for position in bits(checked):
                    if amounts.take(states, slot, position) is not None:
                        fitting |= 1 << position
                if len(self._fitting) > FAILURES_MAX:
                    self._fitting.clear()
                self._fitting[key] = fitting
            domain ^= checked ^ fitting
        if compatibility is not None:
            for position in bits(domain & self._components.grouped):
                if compatibility.take(states, slot, position) is None:
                    domain ^= 1 << position
        return domain

    # --- values that must match -----------------------------------------------------------------

    def _match(
        self, groups: list[SlotGroup], states: States
    ) -> tuple[list[SlotGroup], States, tuple[MatchAttribute, list[Element]] | None] | None:
        """Keep the devices with a value that all groups of a constraint can have.

        Return the groups, the states with the values that are decided, and a constraint whose
        value is not, with its values; None if some constraint has no value left.
        """
        undecided: tuple[MatchAttribute, list[Element]] | None = None
        for rule in _rules(groups, MatchAttribute):
            members = [g for g in groups if rule in g.slot.rules]
            if any(g.domain & rule.tables[g.slot.request].only_first for g in members):
                continue  # Such a device would be the only one of the constraint: undecided.
            elements = self._common(rule, members, states[rule.index])
            if not elements:
                return None
            groups = [
                g._replace(domain=g.domain & _holders(rule, g.slot, elements))
                if rule in g.slot.rules
                else g
                for g in groups
            ]
            if len(elements) == 1:
                states = _with(states, rule.index, (elements[0],))
            elif undecided is None or len(elements) < len(undecided[1]):
                undecided = (rule, elements)
        return groups, states, undecided

    def _common(
        self, rule: MatchAttribute, members: Sequence[SlotGroup], common: tuple[Element, ...]
    ) -> list[Element]:
        """Return the values for which every group has enough devices."""
        elements: Iterable[Element] = common
        if common is ANY:
            elements = rule.tables[members[0].slot.request].holders
        found = []
        for element in elements:
            for group in members:
                held = group.domain & rule.tables[group.slot.request].holders.get(element, 0)
                if not self._is_enough(group, held):
                    break
            else:
                found.append(element)
        return found

    # --- counting -------------------------------------------------------------------------------

    def _counts_suffice(self, groups: Sequence[SlotGroup], states: States) -> bool:
        """Return whether there are enough devices, and enough distinct values, for all groups."""
        if not devices_suffice(groups, self._shareable):
            return False
        if self._bounds is not None and not self._bounds.suffice(groups, states):
            return False
        return all(values_suffice(rule, groups) for rule in _rules(groups, DistinctAttribute))

    # --- deciding on devices --------------------------------------------------------------------

    def _can_fill(self, groups: list[SlotGroup], states: States) -> bool:
        """Return whether the groups can be filled, trying devices one by one."""
        hard = [group for group in groups if self._is_hard(group)]
        if not hard:
            return True  # Counting was enough.
        key = self._components.key(groups, states)
        if key in self._failures:
            return False
        tightest = min(hard, key=self._tightness)
        place = groups.index(tightest)
        tried: set[object] = set()
        for position in bits(tightest.domain):
            kind = self._components.kind(position, groups, states)
            if kind in tried:
                continue
            tried.add(kind)
            after = self._take(tightest.slot, states, position)
            if after is None:
                continue
            above = position if tightest.repeats else position + 1
            rest = tightest._replace(
                need=tightest.need - 1, domain=tightest.domain >> above << above
            )
            if self._can_go_on([*groups[:place], rest, *groups[place + 1 :]], after):
                self._witness.add((self._components.like[tightest.slot], position))
                return True
        if len(self._failures) < FAILURES_MAX:
            self._failures.add(key)
        return False

    def _can_go_on(self, groups: Sequence[SlotGroup], states: States) -> bool:
        """Return whether the groups can be filled after one more pick."""
        self._spend()
        narrowed = self._narrow(groups, states)
        if narrowed is None or not self._counts_suffice(narrowed, states):
            return False
        return self._can_fill(narrowed, states)

    def _is_packing(self, groups: Iterable[SlotGroup]) -> bool:
        """Return whether only capacities of devices that can be shared are left to decide on."""
        return not any(
            group.domain & self._components.entangled
            or any(isinstance(rule, DistinctAttribute) for rule in group.slot.rules)
            for group in groups
        )

    def _can_pack(self, groups: Iterable[SlotGroup], states: States) -> bool:
        assert self._amounts is not None
        assert self._bounds is not None
        wanting = [group for group in groups if not group.slot.request.is_admin]
        wanting.sort(key=self._bounds.load, reverse=True)
        packing = BinPacking(
            self._problem,
            self._amounts,
            wanting,
            states,
            like=self._components.like,
            failed=self._unpackable,
            interrupt=self._interrupt,
        )
        try:
            is_possible = packing.is_possible(steps_max=self._steps_left)
            for slot, position in packing.picks:
                self._witness.add((self._components.like[slot], position))
            return is_possible
        finally:
            self.steps += packing.steps
            self._steps_left -= packing.steps

    def _is_hard(self, group: SlotGroup) -> bool:
        """Return whether more than counting decides about the devices of a group."""
        if group.slot.request.is_admin:
            return False  # In order, it may use devices that others have.
        return bool(group.domain & self._components.stateful) or any(
            isinstance(rule, DistinctAttribute) for rule in group.slot.rules
        )

    def _tightness(self, group: SlotGroup) -> tuple[int, float]:
        load = self._bounds.load(group) if self._bounds is not None else 0.0
        return (group.domain.bit_count(), -load)

    def _take(self, slot: Slot, states: States, position: int) -> States | None:
        after = states.copy()
        for rule in slot.rules:
            state = rule.take(states, slot, position)
            if state is None:
                return None
            after[rule.index] = state
        return after


def _without(position: int, group: SlotGroup) -> SlotGroup:
    return group._replace(domain=group.domain & ~(1 << position))


def _holders(rule: MatchAttribute, slot: Slot, elements: Iterable[Element]) -> int:
    table = rule.tables[slot.request]
    held = 0
    for element in elements:
        held |= table.holders.get(element, 0)
    return held


def _rules(groups: Iterable[SlotGroup], kind: type[R]) -> list[R]:
    """Return the rules of a kind that the groups have, each once."""
    return list(
        dict.fromkeys(rule for g in groups for rule in g.slot.rules if isinstance(rule, kind))
    )


def _with(states: States, index: int, state: object) -> States:
    after = states.copy()
    after[index] = state
    return after
