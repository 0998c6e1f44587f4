"""See that what is left of a problem cannot be solved, without trying it in order.

Whether a completion exists does not depend on the order in which devices are picked. So requests
that are alike are put together, the tightest is looked at first, devices that are alike are tried
once, and a state that failed is remembered up to exchange of like parts.

    # group: like slots that are still to be filled, with all the devices that they may still get
    # horizon: the stages up to the first one that may raise a fault

1. Only stages before the horizon count: what is left out there has no fault that could be missed.
2. Narrow each group's devices by what was picked; too few is the end.
3. A constraint that values match: keep the values for which every group has enough devices.
4. One user for a device: groups flow to devices (Hall's condition). Distinct values: to values.
5. If counting decides everything that is left, that was it. Else decide something: a value that
   must match, an alternative, a device of the tightest group; and go on from 2.

It says "hopeless" only if it is sure. The limit of devices is not looked at, groups with admin
access only have to find devices for themselves, and a question that takes too long is left open;
then the search goes on in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from mooring.allocator.bits import bits, mask_of
from mooring.allocator.bounds import Bounds
from mooring.allocator.components import Components
from mooring.allocator.errors import OutOfStepsError
from mooring.allocator.flow import has_flow
from mooring.allocator.packing import Packing
from mooring.allocator.problem import Problem, Slot
from mooring.allocator.remains import Fork, Group, Remains, Rest
from mooring.allocator.rules.amounts import Amounts
from mooring.allocator.rules.attributes import Element
from mooring.allocator.rules.base import States
from mooring.allocator.rules.compatibility import Compatibility
from mooring.allocator.rules.constraints import ANY, DistinctAttribute, MatchAttribute
from mooring.allocator.way import Way

QUESTION_STEPS_MIN = 50_000
LIGHT_STEPS_MAX = 5
INTERRUPT_EVERY_STEPS = 16
FAILURES_MAX = 100_000

R = TypeVar("R")


class Foresight:
    """Sees whether the slots of one problem that are left can be filled."""

    def __init__(self, problem: Problem, *, interrupt: Callable[[], None]) -> None:
        self._problem = problem
        self._interrupt = interrupt  # called now and then; may raise
        self._shareable = problem.view.shareable
        # What is too little now may be enough after another pick.
        self._is_blind = any(f.counters and f.counters.can_grow for f in problem.view.pools)
        self._amounts = _only(problem.rules, Amounts)
        self._compatibility = _only(problem.rules, Compatibility)
        self._components = Components(problem, self._amounts, self._compatibility)
        self._bounds = Bounds(problem, self._amounts) if self._amounts is not None else None
        self._remains = Remains(problem, self._components.like)
        self._failures: set[object] = set()
        self._unpackable: set[object] = set()
        self._fitting: dict[object, int] = {}
        self._way = Way()
        self._steps_left = 0
        self.steps = 0

    def picked(self, before: States, slot: Slot, position: int, after: States) -> None:
        """Follow the search along the way that was seen last, as long as it takes that one."""
        self._way.follow(before, (self._components.like[slot], position), slot.count, after)

    def is_hopeless(self, states: States, stage: int, slot: Slot, filled: int, above: int) -> bool:
        """Return whether no way leads on, and no fault lies on one."""
        if slot.is_risky or self._is_blind or self._way.leads_from(states):
            return False
        rest = self._remains.after(stage + 1) if filled else self._remains.after(stage, slot)
        if filled:
            domain = slot.candidates >> above << above
            if slot.listed is not None:
                domain &= mask_of(slot.listed[filled:])
            current = Group(slot, slot.count - filled, domain, repeats=False)
            rest = rest._replace(groups=(current, *rest.groups))
        # The harder the problem has been so far, the more a question may take.
        self._steps_left = max(QUESTION_STEPS_MIN, self.steps)
        self._way.start(states)
        try:
            if self._matters(rest, states):
                return False
            self._way.forget()
            return True
        except OutOfStepsError:
            self._way.forget()
            return False
        except RecursionError:
            self._way.forget()
            self._is_blind = True  # So many picks are left that later questions are as deep.
            return False

    # --- is there a way? ------------------------------------------------------------------------

    def _matters(self, rest: Rest, states: States) -> bool:
        """Return whether a way leads to the horizon, and to something there."""
        if rest.unjudged is None or rest.unjudged & self._shareable:
            return self._is_possible(rest.groups, rest.forks, states)
        free: int = rest.unjudged & ~states[0][0]
        return any(
            self._is_possible(
                [_without(position, group) for group in rest.groups],
                [Fork(tuple([_without(position, g) for g in fork.groups])) for fork in rest.forks],
                states,
            )
            for position in bits(free)
        )

    def _is_possible(self, groups: Sequence[Group], forks: Sequence[Fork], states: States) -> bool:
        """Return whether the groups can be filled; True also if bounds do not tell."""
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
            return any(
                self._is_possible((*narrowed, group), others, states) for group in first.groups
            )
        return self._decide(narrowed, states)

    def _decide(self, groups: list[Group], states: States) -> bool:
        """Return whether the groups can be filled, all values and alternatives being decided."""
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

    def _narrow(self, groups: Sequence[Group], states: States) -> list[Group] | None:
        """Return the groups with the devices that they may get now; None if too few."""
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

    def _is_enough(self, group: Group, domain: int) -> bool:
        if group.repeats and domain & self._shareable:
            return True
        return domain.bit_count() >= group.need

    def _affordable(self, slot: Slot, domain: int, states: States) -> int:
        """Return the devices whose counters, capacity and groups admit one more pick."""
        amounts, compatibility = self._amounts, self._compatibility
        if amounts is not None:
            checked = domain & self._components.accounted
            key = (slot.wish, checked, _frozen(states[amounts.index]), states[0][1])
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
        self, groups: list[Group], states: States
    ) -> tuple[list[Group], States, tuple[MatchAttribute, list[Element]] | None] | None:
        """Keep the devices with a value that all groups of a constraint can have.

        Return the groups, the states with the values that are decided, and a constraint whose
        value is not, with its values; None if some constraint has no value left.
        """
        undecided: tuple[MatchAttribute, list[Element]] | None = None
        for rule in _rules(groups, MatchAttribute):
            members = [g for g in groups if rule in g.slot.rules]
            if any(g.domain & rule.tables[g.slot.ask].only_first for g in members):
                continue  # Such a device would be the only one of the constraint; left open.
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
        self, rule: MatchAttribute, members: Sequence[Group], common: tuple[Element, ...]
    ) -> list[Element]:
        """Return the values for which every group has enough devices."""
        elements: Iterable[Element] = common
        if common is ANY:
            elements = rule.tables[members[0].slot.ask].holders
        found = []
        for element in elements:
            for group in members:
                held = group.domain & rule.tables[group.slot.ask].holders.get(element, 0)
                if not self._is_enough(group, held):
                    break
            else:
                found.append(element)
        return found

    # --- counting -------------------------------------------------------------------------------

    def _counts_suffice(self, groups: Sequence[Group], states: States) -> bool:
        """Return whether there are enough devices, and enough distinct values, for all groups."""
        demands = []
        for group in groups:
            if group.slot.ask.is_admin:
                continue
            shared = group.domain & self._shareable
            need = group.need - shared.bit_count()
            if need > 0 and not (group.repeats and shared):
                demands.append((need, group.domain & ~shared))
        if not has_flow(demands):
            return False
        if self._bounds is not None and not self._bounds.suffice(groups, states):
            return False
        return all(self._values_suffice(rule, groups) for rule in _rules(groups, DistinctAttribute))

    def _values_suffice(self, rule: DistinctAttribute, groups: Sequence[Group]) -> bool:
        members = [group for group in groups if rule in group.slot.rules]
        numbers: dict[Element, int] = {}
        demands = []
        for group in members:
            table = rule.tables[group.slot.ask]
            if group.domain & table.only_first:
                return True
            values = 0
            for element, holders in table.holders.items():
                if holders & group.domain:
                    values |= 1 << numbers.setdefault(element, len(numbers))
            demands.append((group.need, values))
        return has_flow(demands)

    # --- deciding on devices --------------------------------------------------------------------

    def _can_fill(self, groups: list[Group], states: States) -> bool:
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
            if self._goes_on([*groups[:place], rest, *groups[place + 1 :]], after):
                self._way.add((self._components.like[tightest.slot], position))
                return True
        if len(self._failures) < FAILURES_MAX:
            self._failures.add(key)
        return False

    def _goes_on(self, groups: Sequence[Group], states: States) -> bool:
        """Return whether the groups can be filled after one more pick."""
        self._spend()
        narrowed = self._narrow(groups, states)
        if narrowed is None or not self._counts_suffice(narrowed, states):
            return False
        return self._can_fill(narrowed, states)

    def _is_packing(self, groups: Iterable[Group]) -> bool:
        """Return whether only capacities of devices that can be shared are left to decide on."""
        return not any(
            group.domain & self._components.entangled
            or any(isinstance(rule, DistinctAttribute) for rule in group.slot.rules)
            for group in groups
        )

    def _can_pack(self, groups: Iterable[Group], states: States) -> bool:
        assert self._amounts is not None
        assert self._bounds is not None
        wanting = [group for group in groups if not group.slot.ask.is_admin]
        wanting.sort(key=self._bounds.load, reverse=True)
        packing = Packing(
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
                self._way.add((self._components.like[slot], position))
            return is_possible
        finally:
            self.steps += packing.steps
            self._steps_left -= packing.steps

    def _is_hard(self, group: Group) -> bool:
        """Return whether more than counting decides about the devices of a group."""
        if group.slot.ask.is_admin:
            return False  # When it comes to it in order, it may use what others have.
        return bool(group.domain & self._components.stateful) or any(
            isinstance(rule, DistinctAttribute) for rule in group.slot.rules
        )

    def _tightness(self, group: Group) -> tuple[int, float]:
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


def _without(position: int, group: Group) -> Group:
    return group._replace(domain=group.domain & ~(1 << position))


def _holders(rule: MatchAttribute, slot: Slot, elements: Iterable[Element]) -> int:
    table = rule.tables[slot.ask]
    held = 0
    for element in elements:
        held |= table.holders.get(element, 0)
    return held


def _rules(groups: Iterable[Group], kind: type[R]) -> list[R]:
    """Return the rules of a kind that the groups have, each once."""
    return list(
        dict.fromkeys(rule for g in groups for rule in g.slot.rules if isinstance(rule, kind))
    )


def _only(rules: Iterable[object], kind: type[R]) -> R | None:
    return next((rule for rule in rules if isinstance(rule, kind)), None)


def _with(states: States, index: int, state: object) -> States:
    after = states.copy()
    after[index] = state
    return after


def _frozen(taken: object) -> object:
    assert isinstance(taken, dict)
    return frozenset(taken.items())
