"""One problem: the requests of claims on one node. Everything the search needs, by position.

# slot: a subrequest on this node; see `slots`
# stage: the slots of one request; the search fills one of them
# open: a device that no static rule has refused yet, but that was not asked for all (see
#     `static_rules`); the search judges it when it reaches it
# lazy: a slot with open devices, or whose devices were not all asked for a derived attribute
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moorage.allocator.errors import AllocationError
from moorage.allocator.interchangeable import alike_devices
from moorage.allocator.node_view import AllocatedState, NodeView
from moorage.allocator.pools import PoolState, bits
from moorage.allocator.requests import RESULTS_MAX, RequestPlan, Requirements, SubRequest, too_many
from moorage.allocator.rules.base import InUseRule, Rule, States
from moorage.allocator.rules.constraints import (
    Constraint,
    DerivedTable,
    DistinctAttribute,
    MatchAttribute,
    compatibility_rule,
)
from moorage.allocator.rules.consumption import (
    CountersFirst,
    consumed_of_whole,
    consumption_rule,
    pack_takes,
    packed_takes,
)
from moorage.allocator.slots import Slot
from moorage.allocator.static_rules import StaticCandidates, StaticFault
from moorage.api.resource.v1 import DeviceConstraint

__all__ = ["Names", "Problem", "Slot", "place"]

Names = Sequence[str]  # of claims, as messages have them

NO_TAKES: Mapping[int, int] = {}


def place(subrequest: SubRequest, names: Names) -> str:
    """Return the name of a subrequest in messages."""
    return f"claim {names[subrequest.claim]}, request {subrequest.name}"


class Problem:
    """The requests of claims on one node."""

    def __init__(self, plan: RequestPlan, view: NodeView, *, like: Problem | None = None) -> None:
        self.plan = plan
        self.view = view
        self.allocated = view.allocated
        if like is not None:
            self._take_over(like)
            return
        self.consumption = consumption_rule(view)
        self.compatibility = compatibility_rule(view)
        self.in_use = InUseRule(self.allocated.whole, view.shareable)
        self.has_plain_rules = self.consumption is None and self.compatibility is None
        self.rules: list[Rule] = [self.in_use]
        self.rules += [rule for rule in (self.consumption, self.compatibility) if rule is not None]
        for index, rule in enumerate(self.rules):
            rule.index = index
        self._constraints = self._constraint_rules()
        self.slots: dict[SubRequest, Slot] = {}
        self._requirements_ids: dict[Requirements, int] = {}
        self._alike: dict[tuple[int, int, tuple[int, ...], bool], Slot] = {}  # the last of a kind
        self.claims = tuple([request.claim for request in plan.requests])  # by stage
        self.start: States = [rule.start for rule in self.rules]
        self.stages: tuple[tuple[Slot, ...], ...] = ()
        self.devices_wanted = 0
        self.is_near_limit = False
        self._is_built = False
        self._alike_devices: Mapping[int, int] | None = None
        if not plan.checks:
            self._build()

    def _take_over(self, like: Problem) -> None:
        """Have the same parts as another problem."""
        self.allocated = like.allocated
        self.consumption = like.consumption
        self.compatibility = like.compatibility
        self.in_use = like.in_use
        self.has_plain_rules = like.has_plain_rules
        self.rules = like.rules
        self._constraints = like._constraints
        self.slots = like.slots
        self._requirements_ids = like._requirements_ids
        self._alike = like._alike
        self.claims = like.claims
        self.start = like.start
        self.stages = like.stages
        self.devices_wanted = like.devices_wanted
        self.is_near_limit = like.is_near_limit
        self._is_built = like._is_built
        self._alike_devices = like._alike_devices

    def _build(self) -> None:
        """Make the slots; after the checks, which may end the attempt before a device is asked."""
        self._is_built = True
        self.stages = tuple(
            [
                tuple([self._slot(subrequest) for subrequest in request.subrequests])
                for request in self.plan.requests
            ]
        )
        # Whether some alternatives could bring a claim over the limit of devices.
        self.devices_wanted = sum([max([slot.count for slot in s]) for s in self.stages])
        self.is_near_limit = self.devices_wanted > RESULTS_MAX

    @property
    def is_lazy(self) -> bool:
        """Whether some devices were not asked for all that the search may want to know."""
        return any(slot.is_lazy or slot.is_reached for stage in self.stages for slot in stage)

    def settle(self, *, reached_only: bool = False) -> None:
        """Ask the devices for all that is not known yet; may raise Interrupted.

        With `reached_only`, only for slots that a search has reached, and only devices that it can
        have.
        """
        if not self._is_built:
            self._build()
        for stage in self.stages:
            for slot in stage:
                if reached_only and not slot.is_reached:
                    continue
                wanted = self._available(slot) if reached_only else self.view.all
                slot.judge(wanted)
                for table in slot.derived:
                    table.ask(slot.candidates & wanted)
                if slot.is_lazy or slot.is_reached:
                    self._arrange(slot, self._constraints_of(slot))
                    slot.is_reached = False

    def reach(self, slot: Slot) -> None:
        """Make use of what a search has learnt about the devices of a lazy slot.

        Once all were asked, rules narrow them at once. The slot stays one that may raise an error,
        since feasibility checks of this search began without these answers.
        """
        self._arrange(slot, self._constraints_of(slot))
        slot.is_reached = slot.is_risky = True

    def _available(self, slot: Slot) -> int:
        """Return the devices that a slot can have as things are allocated now."""
        return self.view.all if slot.request.is_admin else self.view.all & ~self.allocated.whole

    @property
    def alike(self) -> Mapping[int, int]:
        """The devices that are interchangeable, by position: see `interchangeable`."""
        if self._alike_devices is None:
            self._alike_devices = alike_devices(self)
        return self._alike_devices

    def renewed(self, allocated: AllocatedState) -> Problem | None:
        """Return the problem after other allocations; None if more than that depends on them.

        Without shares, counters, groups and constraints, slots are the same whatever is allocated:
        what is in use is in the state that a search starts from.
        """
        has_shares = self.allocated.shared or allocated.shared
        if self._depends_on_allocations or has_shares:
            return None
        renewed = Problem(self.plan, self.view, like=self)
        renewed.allocated = allocated
        renewed.in_use = InUseRule(allocated.whole, self.view.shareable)
        renewed.rules = [renewed.in_use]
        renewed.start = [renewed.in_use.start]
        return renewed

    @property
    def _depends_on_allocations(self) -> bool:
        """Whether slots or rules depend on allocations, or a search changes slots."""
        if len(self.rules) > 1 or self.plan.checks:
            return True
        return any(slot.is_lazy or slot.is_reached or slot.open for slot in self.slots.values())

    def cut(self, stages: int) -> Problem:
        """Return the problem with its first stages only."""
        shorter = Problem(self.plan, self.view, like=self)
        shorter.stages = self.stages[:stages]
        return shorter

    # --- checks before the search ---------------------------------------------------------------

    def check(self, names: Names) -> None:
        """Raise the first error of the claims, in Kubernetes' order."""
        for check in self.plan.checks:
            if check.fault is not None:
                raise AllocationError(check.fault)
            if check.for_all is not None:
                self._check_all(check.for_all, names)
            if check.limited is not None:
                self._check_limit(*check.limited, names)
        if not self._is_built:
            self._build()

    def _check_all(self, subrequest: SubRequest, names: Names) -> None:
        """Raise why a subrequest for all devices cannot list them: pool by pool."""
        view = self.view
        static = view.static(subrequest.requirements)
        usable = iter(zip(view.pools, view.offsets, strict=True))
        for pool in view.seen:
            if pool.state is not PoolState.USABLE:
                condition = "being updated" if pool.state is PoolState.INCOMPLETE else "invalid"
                raise AllocationError(
                    f"{place(subrequest, names)}: asks for all devices, but resource pool "
                    f"{pool.id} is currently {condition}"
                )
            facts, offset = next(usable)
            self._judge_until_fault(static, facts.all << offset)
            faults = [each for each in static.faults if offset <= each < offset + facts.size]
            if faults:
                first = min(faults)
                raise AllocationError(self.message(subrequest, first, static.faults[first], names))

    def _judge_until_fault(self, static: StaticCandidates, wanted: int) -> None:
        """Judge devices in order, up to the first with an error."""
        for position in bits(wanted & static.open):
            if any(each < position for each in static.faults):
                return
            static.judge(1 << position)

    def _check_limit(self, first: int, end: int, names: Names) -> None:
        requests = self.plan.requests[first:end]
        least = sum(
            min(self._slot(subrequest).count for subrequest in request.subrequests)
            for request in requests
        )
        if least > RESULTS_MAX:
            raise AllocationError(too_many(names[requests[0].claim], least))

    def message(
        self, subrequest: SubRequest, position: int, fault: StaticFault, names: Names
    ) -> str:
        """Return the message for a device whose check fails when the search reaches it."""
        device = self.view.device_id(position)
        if fault.stage == "node":
            return fault.text
        if fault.stage == "capacity":
            name = self.view.devices[position].name if subrequest.wants_all else device
            return f"{place(subrequest, names)}: checking capacity for device {name}: {fault.text}"
        whose = (
            f"class {subrequest.device_class.metadata.name}"
            if fault.stage == "class"
            else f"claim {names[subrequest.claim]}"
        )
        if fault.is_compile:
            return f"{whose}: selector #{fault.selector}: CEL compile error: {fault.text}"
        where = f"selector #{fault.selector} on device {device}"
        return f"{whose}: {where}: CEL runtime error: {fault.text}"

    # --- slots ----------------------------------------------------------------------------------

    def _slot(self, subrequest: SubRequest) -> Slot:
        slot = self.slots.get(subrequest)
        if slot is None:
            slot = self.slots[subrequest] = self._make_slot(subrequest)
        return slot

    def _make_slot(self, subrequest: SubRequest) -> Slot:
        requirements = subrequest.requirements
        kind = (id(requirements), subrequest.claim, subrequest.constraints, subrequest.is_admin)
        alike = self._alike.get(kind)
        if alike is not None and alike.is_model_for(subrequest):
            return alike.for_request(subrequest)
        static = self.view.static(requirements)
        if subrequest.wants_all:
            static.judge(self.view.all)
        takes = NO_TAKES
        if self.consumption is not None and self.consumption.capacity:
            takes = packed_takes(self.view, requirements)
        number = self._requirements_ids.setdefault(requirements, len(self._requirements_ids))
        slot = self._alike[kind] = Slot(subrequest, number, static, takes)
        if self.allocated.shared & ~self.view.shareable:
            whole = consumed_of_whole(self.view, requirements)
            slot.consumed = {**slot.consumed, **whole}
            slot.takes = {**slot.takes, **pack_takes(self.view, whole)}
        if not subrequest.constraints and not static.open and self.has_plain_rules:
            slot.rules = slot.sure = (self.in_use,)
            slot.is_risky = bool(slot.faults)
            return slot
        constraints = self._constraints_of(slot)
        rules = [rule for rule in (self.compatibility, self.consumption) if rule is not None]
        if slot.listed is None:
            slot.rules = (self.in_use, *rules, *constraints)
        else:
            # In mode All, a violated constraint is an error, unless something else than
            # capacity refuses the device already.
            ahead = [CountersFirst(self.consumption)] if self.consumption is not None else []
            before = [rule for rule in rules if rule is not self.consumption]
            after = [rule for rule in rules if rule is self.consumption]
            slot.rules = (self.in_use, *before, *ahead, *constraints, *after)
        self._arrange(slot, constraints)
        return slot

    def _constraints_of(self, slot: Slot) -> list[Constraint]:
        request = slot.request
        return [self._constraints[request.claim][number] for number in request.constraints]

    def _arrange(self, slot: Slot, constraints: Sequence[Constraint]) -> None:
        """Sort out the rules of a slot by what is known about its devices."""
        self._alike_devices = None
        available = self._available(slot)
        is_open = bool(slot.open & available)
        wanted = slot.candidates & available
        slot.is_lazy = is_open
        has_unsure = False
        for rule in constraints:
            table = rule.tables[slot.request]
            if not isinstance(table, DerivedTable):
                continue
            if not is_open and wanted & ~table.asked and table.is_cheap:
                table.ask(wanted)
            if is_open or wanted & ~table.asked:
                slot.is_lazy = has_unsure = True
            elif table.faults:
                has_unsure = True
        slot.sure = (self.in_use,) if has_unsure else (self.in_use, *constraints)
        slot.unsure = tuple([rule for rule in slot.rules if rule not in slot.sure])
        slot.is_risky = bool(
            slot.faults or has_unsure or is_open or self._may_violate(slot, constraints)
        )

    def _may_violate(self, slot: Slot, constraints: Sequence[Constraint]) -> bool:
        """Return whether a slot that wants all may reach a device that violates a constraint.

        It cannot if no earlier slot has the constraints, and its devices agree as far as the search
        can reach: up to one that is unavailable whatever was picked before.
        """
        if slot.listed is None or not constraints:
            return False
        if any(self._is_about_earlier(slot.request, number) for number in slot.request.constraints):
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

    def _is_about_earlier(self, subrequest: SubRequest, constraint: int) -> bool:
        """Return whether a constraint applies to a request of the claim before this one."""
        for request in self.plan.requests:
            if subrequest in request.subrequests:
                return False
            if request.claim == subrequest.claim and any(
                constraint in a.constraints for a in request.subrequests
            ):
                return True
        return False

    def _constraint_rules(self) -> list[list[Constraint]]:
        """Return a rule for each constraint of each claim."""
        rules: list[list[Constraint]] = []
        if not any(self.plan.constraints):
            return [[] for _ in self.plan.constraints]
        subrequests: dict[tuple[int, int], list[SubRequest]] = {}
        for request in self.plan.requests:
            for subrequest in request.subrequests:
                for number in subrequest.constraints:
                    subrequests.setdefault((subrequest.claim, number), []).append(subrequest)
        for claim_number, constraints in enumerate(self.plan.constraints):
            rules.append([])
            for number, constraint in enumerate(constraints):
                rule = self._constraint(constraint, subrequests.get((claim_number, number), ()))
                rules[-1].append(rule)
                self.rules.append(rule)
        return rules

    def _constraint(
        self, constraint: DeviceConstraint, subrequests: Sequence[SubRequest]
    ) -> Constraint:
        attribute = constraint.match_attribute
        kind: type[Constraint] = MatchAttribute
        if attribute is None:
            attribute, kind = constraint.distinct_attribute or "", DistinctAttribute
        tables = {
            subrequest: self.view.table(attribute, subrequest.derived.get(attribute))
            for subrequest in subrequests
        }
        return kind(len(self.rules), attribute, tables)
