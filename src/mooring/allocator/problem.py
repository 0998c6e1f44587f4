"""One problem: what is wanted, on what one node sees. Everything the search needs, by position.

# slot: an ask on this node; the search fills it with `count` devices
# stage: the slots of one request; one of them is to be filled
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

from mooring.allocator.asks import RESULTS_MAX, Ask, Plan, Wish, too_many
from mooring.allocator.bits import bits
from mooring.allocator.errors import AllocationError
from mooring.allocator.pools import PoolState
from mooring.allocator.rules.amounts import CountersFirst, amounts_rule, field_width, packed_takes
from mooring.allocator.rules.base import NarrowingRule, Rule, States
from mooring.allocator.rules.compatibility import compatibility_rule
from mooring.allocator.rules.constraints import Constraint, DistinctAttribute, MatchAttribute
from mooring.allocator.rules.in_use import InUse
from mooring.allocator.view import Static, StaticFault, View
from mooring.api.resource.v1 import DeviceConstraint

Names = Sequence[str]  # of claims, as messages have them

NO_TAKES: Mapping[int, int] = {}


class Slot:
    """An ask on one node."""

    __slots__ = (
        "ask",
        "candidates",
        "consumed",
        "count",
        "faults",
        "is_risky",
        "listed",
        "rules",
        "sure",
        "takes",
        "unsure",
        "wish",
    )

    def __init__(self, ask: Ask, wish: int, static: Static, takes: Mapping[int, int]) -> None:
        self.ask = ask
        self.wish = wish  # a number for the ask's wish: the same for the same wish
        self.candidates = static.usable
        self.consumed = static.consumed
        self.faults = static.faults
        self.takes = takes  # what a pick takes of the device's capacity, packed
        self.listed: tuple[int, ...] | None = None  # all devices that are meant, if all are
        self.count = ask.count
        self.rules: tuple[Rule, ...] = ()  # all, in the order in which they are asked
        self.sure: tuple[NarrowingRule, ...] = ()  # those that refuse none that they left
        self.unsure: tuple[Rule, ...] = ()  # the others
        self.is_risky = False  # whether searching it may raise a fault
        if ask.wants_all:
            self.listed = tuple(bits(static.selectable))
            self.count = len(self.listed)


def place(ask: Ask, names: Names) -> str:
    """Return how messages name an ask."""
    return f"claim {names[ask.claim]}, request {ask.name}"


class Problem:
    """What is wanted, on one node."""

    def __init__(self, plan: Plan, view: View) -> None:
        self.plan = plan
        self.view = view
        self.taken = view.taken
        self._amounts = amounts_rule(view)
        self._groups = compatibility_rule(view)
        self.in_use = InUse(self.taken.whole, view.shareable)
        self.rules: list[Rule] = [self.in_use]
        self.rules += [rule for rule in (self._amounts, self._groups) if rule is not None]
        for index, rule in enumerate(self.rules):
            rule.index = index
        self._constraints = self._constraint_rules()
        self.slots: dict[Ask, Slot] = {}
        self._wishes: dict[Wish, int] = {}
        self.stages: tuple[tuple[Slot, ...], ...] = tuple(
            tuple([self._slot(ask) for ask in choice.asks]) for choice in plan.choices
        )
        self.claims = tuple([choice.claim for choice in plan.choices])  # by stage
        # Whether some choice of alternatives could bring a claim over the limit of devices.
        self.devices_wanted = sum([max([slot.count for slot in s]) for s in self.stages])
        self.is_near_limit = self.devices_wanted > RESULTS_MAX
        self.start: States = [rule.start for rule in self.rules]

    def capacity_width(self, position: int) -> int:
        """Return the bits of a field of a device's capacity account, with the guard."""
        return field_width(self.view, position)

    def cut(self, stages: int) -> Problem:
        """Return the problem with its first stages only."""
        shorter = copy(self)
        shorter.stages = self.stages[:stages]
        return shorter

    # --- checks before the search ---------------------------------------------------------------

    def check(self, names: Names) -> None:
        """Raise the first fault that the claims have, in Kubernetes' order."""
        for check in self.plan.checks:
            if check.fault is not None:
                raise AllocationError(check.fault)
            if check.ask is not None:
                self._check_all(check.ask, names)
            if check.limited is not None:
                self._check_limit(*check.limited, names)

    def _check_all(self, ask: Ask, names: Names) -> None:
        """Raise why the devices for an ask that wants all cannot be listed: pool by pool."""
        faults = self.view.static(ask.wish).faults
        first = min(faults, default=None)
        pool_of_fault = None if first is None else self.view.pools[self.view.pool_of(first)].pool
        for pool in self.view.seen:
            if pool.state is not PoolState.USABLE:
                condition = "being updated" if pool.state is PoolState.INCOMPLETE else "invalid"
                raise AllocationError(
                    f"{place(ask, names)}: asks for all devices, but resource pool {pool.id} is "
                    f"currently {condition}"
                )
            if first is not None and pool is pool_of_fault:
                raise AllocationError(self.message(ask, first, faults[first], names))

    def _check_limit(self, first: int, end: int, names: Names) -> None:
        choices = self.plan.choices[first:end]
        least = sum(min(self._slot(ask).count for ask in choice.asks) for choice in choices)
        if least > RESULTS_MAX:
            raise AllocationError(too_many(names[choices[0].claim], least))

    def message(self, ask: Ask, position: int, fault: StaticFault, names: Names) -> str:
        """Return what to say when the search comes by a device that cannot be judged."""
        device = self.view.device_id(position)
        if fault.stage == "node":
            return fault.text
        if fault.stage == "capacity":
            name = self.view.spots[position].device.name if ask.wants_all else device
            return f"{place(ask, names)}: checking capacity for device {name}: {fault.text}"
        whose = (
            f"class {ask.device_class.metadata.name}"
            if fault.stage == "class"
            else f"claim {names[ask.claim]}"
        )
        if fault.is_compile:
            return f"{whose}: selector #{fault.selector}: CEL compile error: {fault.text}"
        where = f"selector #{fault.selector} on device {device}"
        return f"{whose}: {where}: CEL runtime error: {fault.text}"

    # --- slots ----------------------------------------------------------------------------------

    def _slot(self, ask: Ask) -> Slot:
        slot = self.slots.get(ask)
        if slot is None:
            slot = self.slots[ask] = self._make_slot(ask)
        return slot

    def _make_slot(self, ask: Ask) -> Slot:
        static = self.view.static(ask.wish)
        takes = NO_TAKES
        if self._amounts is not None and self._amounts.capacity:
            takes = packed_takes(self.view, ask.wish)
        wish = self._wishes.setdefault(ask.wish, len(self._wishes))
        slot = Slot(ask, wish, static, takes)
        constraints = [self._constraints[ask.claim][number] for number in ask.constraints]
        rules = [rule for rule in (self._groups, self._amounts) if rule is not None]
        if slot.listed is None:
            slot.rules = (self.in_use, *rules, *constraints)
        else:
            # If all are wanted, a violated constraint is a fault, unless something else than
            # capacity refuses the device already.
            ahead = [CountersFirst(self._amounts)] if self._amounts is not None else []
            before = [rule for rule in rules if rule is not self._amounts]
            after = [rule for rule in rules if rule is self._amounts]
            slot.rules = (self.in_use, *before, *ahead, *constraints, *after)
        derived = [c for c in constraints if c.tables[ask].faults]
        slot.sure = (self.in_use, *(() if derived else constraints))
        slot.unsure = tuple([rule for rule in slot.rules if rule not in slot.sure])
        slot.is_risky = bool(slot.faults or derived or self._may_violate(slot, constraints))
        return slot

    def _may_violate(self, slot: Slot, constraints: Sequence[Constraint]) -> bool:
        """Return whether a slot that wants all may come to a device that violates a constraint.

        It is certain not to if it is the first that the constraints are about, and its devices
        agree as far as it can come: up to one that cannot be had whatever was picked before.
        """
        if slot.listed is None or not constraints:
            return False
        if any(self._is_about_earlier(slot.ask, number) for number in slot.ask.constraints):
            return True
        states: States = [rule.start for rule in self.rules]
        for position in slot.listed:
            if not self.in_use.narrow(states, slot, slot.candidates & 1 << position):
                return False
            for rule in constraints:
                state = rule.take(states, slot, position)
                if state is None:
                    return True
                states[rule.index] = state
        return False

    def _is_about_earlier(self, ask: Ask, constraint: int) -> bool:
        """Return whether a constraint applies to a request of the claim before this one."""
        for choice in self.plan.choices:
            if ask in choice.asks:
                return False
            if choice.claim == ask.claim and any(constraint in a.constraints for a in choice.asks):
                return True
        return False

    def _constraint_rules(self) -> list[list[Constraint]]:
        """Return a rule for each constraint of each claim."""
        rules: list[list[Constraint]] = []
        asks: dict[tuple[int, int], list[Ask]] = {}
        for choice in self.plan.choices:
            for ask in choice.asks:
                for number in ask.constraints:
                    asks.setdefault((ask.claim, number), []).append(ask)
        for claim_number, constraints in enumerate(self.plan.constraints):
            rules.append([])
            for number, constraint in enumerate(constraints):
                rule = self._constraint(constraint, asks.get((claim_number, number), ()))
                rules[-1].append(rule)
                self.rules.append(rule)
        return rules

    def _constraint(self, constraint: DeviceConstraint, asks: Sequence[Ask]) -> Constraint:
        attribute = constraint.match_attribute
        kind: type[Constraint] = MatchAttribute
        if attribute is None:
            attribute, kind = constraint.distinct_attribute or "", DistinctAttribute
        tables = {ask: self.view.table(attribute, ask.derived.get(attribute)) for ask in asks}
        return kind(len(self.rules), attribute, tables)
