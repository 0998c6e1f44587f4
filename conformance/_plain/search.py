"""The search: depth first, the first full list of takings wins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance._allocation import Answer, Problem
from conformance._plain.capacity import consumption, fits
from conformance._plain.model import (
    Allocated,
    Amounts,
    Candidate,
    Choice,
    DeviceId,
    Failure,
    Taking,
)
from conformance._plain.pools import gather_pools
from conformance._plain.requests import DEVICES_PER_CLAIM_MAX, Checker, claim_name
from conformance._plain.results import build_result
from conformance._plain.rules import (
    has_common_groups,
    has_counters,
    is_repelled,
    may_differ,
    may_match,
)
from conformance._plain.selectors import Selectors
from moorage.api.resource.v1 import AllocationResult, DeviceConstraint

STEPS_MAX = 1_000_000


class TooManyStepsError(Exception):
    """The search did not end within the steps that it was given."""


class _TooManyDevicesError(Exception):
    """A claim would get more devices than it can hold; another alternative may want fewer."""


# A device, and the choice that takes it, by their names.
Given = tuple[str, DeviceId]


def allocate(
    problem: Problem, *, steps_max: int = STEPS_MAX, only: Sequence[Given] | None = None
) -> Answer:
    """Return the answer to a problem, or raise TooManyStepsError.

    With `only`, no device is tried but the one that is next in the list: so a known allocation
    can be checked where looking for it would take too long.
    """
    search = Search(problem, steps_max, only)
    try:
        return search.run()
    except Failure as failure:
        return Answer("error", error=str(failure), node_only=failure.node_only, steps=search.steps)


class Search:
    """One attempt to allocate."""

    def __init__(self, problem: Problem, steps_max: int, only: Sequence[Given] | None) -> None:
        self.problem = problem
        self.features = problem.features
        self.fractional = "FractionalCapacityRange" in problem.features
        self.shares_devices = "ConsumableCapacity" in problem.features
        self.allocated = _read_allocated(problem)
        self.selectors = Selectors(problem.node, problem.features)
        self.steps, self.steps_max = 0, steps_max
        self.only = only
        self.taken: list[Taking] = []
        self.chosen: dict[tuple[int, int], Choice] = {}  # by claim and request

    def run(self) -> Answer:
        """Return the answer, or raise Failure."""
        pools = gather_pools(self.problem)
        checker = Checker(self.problem, pools, self.selectors)
        self.choices = [checker.check_claim(claim) for claim in self.problem.claims]
        self.candidates = [c for pool in pools for c in pool.candidates(pool.here)]
        try:
            is_found = self._search_request(0, 0)
        except _TooManyDevicesError:
            raise Failure("allocation max size exceeded") from None
        if is_found:
            return Answer("allocated", tuple(self._results()), steps=self.steps)
        if any(pool.is_invalid for pool in pools):
            raise Failure("invalid resource pools were encountered", node_only=True)
        return Answer("none", steps=self.steps)

    def _results(self) -> Iterator[AllocationResult]:
        for number, claim in enumerate(self.problem.claims):
            chosen = [self.chosen[number, request] for request in range(len(self.choices[number]))]
            taken = [taking for taking in self.taken if taking.claim == number]
            yield build_result(claim, chosen, taken, self.problem)

    # --- the walk -------------------------------------------------------------------------

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self.steps_max:
            raise TooManyStepsError

    def _search_request(self, claim: int, request: int) -> bool:
        """Return whether this request and all that follows can be served."""
        self._step()
        if claim == len(self.choices):
            return True
        if request == len(self.choices[claim]):
            try:
                return self._search_request(claim + 1, 0)
            except _TooManyDevicesError:
                return False  # The next claim may want fewer if this one leaves other devices.
        alternatives = self.choices[claim][request]
        if alternatives[0].parent is None:
            self.chosen[claim, request] = alternatives[0]
            return self._search_device(claim, request, alternatives[0], 0, 0)
        all_too_many = True
        for choice in alternatives:
            self._step()
            try:
                if self._search_device(claim, request, choice, 0, 0):
                    self.chosen[claim, request] = choice
                    return True
                all_too_many = False
            except _TooManyDevicesError:
                continue
        if all_too_many:
            raise _TooManyDevicesError
        return False

    def _search_device(
        self, claim: int, request: int, choice: Choice, number: int, start: int
    ) -> bool:
        """Return whether device `number` of a choice and all that follows can be served."""
        if choice.everything == []:
            return False
        if number >= choice.count:
            return self._search_request(claim, request + 1)
        self._refuse_too_many(claim, choice.count - number)
        if choice.everything is not None:
            candidate = choice.everything[number]
            taking = self._take(claim, choice, candidate, must=True)
            return taking is not None and self._go_on(claim, request, taking, number, 0)
        for position in range(start, len(self.candidates)):
            candidate = self.candidates[position]
            if not self._is_tried(choice, candidate) or not self._is_suitable(
                claim, choice, candidate
            ):
                continue
            taking = self._take(claim, choice, candidate, must=False)
            if taking is not None and self._go_on(claim, request, taking, number, position + 1):
                return True
        return False

    def _refuse_too_many(self, claim: int, more: int) -> None:
        held = sum(taking.claim == claim for taking in self.taken)
        if held + more > DEVICES_PER_CLAIM_MAX:
            raise _TooManyDevicesError

    def _go_on(self, claim: int, request: int, taking: Taking, number: int, start: int) -> bool:
        """Return whether all that follows can be served with one more device taken."""
        self.taken.append(taking)
        self._step()
        is_found = False
        try:
            is_found = self._search_device(claim, request, taking.choice, number + 1, start)
        finally:
            if not is_found:
                self.taken.pop()
        return is_found

    # --- one candidate --------------------------------------------------------------------

    def _is_tried(self, choice: Choice, candidate: Candidate) -> bool:
        if self.only is None:
            return True
        number = len(self.taken)
        given = (choice.full_name, candidate.id)
        return number < len(self.only) and self.only[number] == given

    def _is_suitable(self, claim: int, choice: Choice, candidate: Candidate) -> bool:
        """Return whether the device is free, selected and large enough, or raise Failure."""
        if self._is_in_use(claim, choice, candidate.id):
            return False
        name = claim_name(self.problem.claims[claim])
        if not self.selectors.selects(choice, candidate, name):
            return False
        try:
            return self._has_capacity(choice, candidate)
        except Failure as failure:
            place = f"claim {name}, request {choice.name}"
            text = f"{place}: checking capacity for device {candidate.id}: {failure}"
            raise Failure(text) from None

    def _take(
        self, claim: int, choice: Choice, candidate: Candidate, *, must: bool
    ) -> Taking | None:
        """Return the taking if every rule admits it; a device that must be taken is an error."""
        is_share = self.shares_devices and bool(candidate.device.allow_multiple_allocations)
        is_further_share = is_share and self._is_shared(candidate.id)
        if self._is_in_use(claim, choice, candidate.id) or not self._can_be_operated(candidate):
            return None
        has_consumption = bool(candidate.device.consumes_counters)
        if has_consumption and "PartitionableDevices" not in self.features:
            return None
        is_charged = has_consumption and not is_further_share
        if is_charged and not self._has_counters(candidate):
            return None
        if "DeviceTaints" in self.features and is_repelled(
            candidate.device, choice.ask.tolerations
        ):
            return None
        for constraint in self.problem.claims[claim].spec.devices.constraints:
            if not self._meets(constraint, claim, choice, candidate):
                if not must:
                    return None
                place = f"claim {claim_name(self.problem.claims[claim])}, request {choice.name}"
                text = "because a claim constraint would not be satisfied"
                raise Failure(f"{place}: cannot add device {candidate.id} {text}")
        if not self._has_capacity(choice, candidate):
            return None
        consumed = self._consumption(choice, candidate) if is_share else None
        return Taking(claim, choice, candidate, consumed, is_charged)

    def _is_in_use(self, claim: int, choice: Choice, device: DeviceId) -> bool:
        whole = {t.claim for t in self.taken if t.candidate.id == device and t.consumed is None}
        if choice.is_admin:
            return claim in whole
        return bool(whole) or device in self.allocated.whole

    def _is_shared(self, device: DeviceId) -> bool:
        """Return whether somebody has a share of the device."""
        return device in self.allocated.shares or any(
            t.candidate.id == device and t.consumed is not None for t in self.taken
        )

    def _can_be_operated(self, candidate: Candidate) -> bool:
        if candidate.slice.spec.skip_node_operations:
            declared = self.problem.node.status.declared_features
            return (
                "OptionalNodeOperations" in self.features
                and "DRAOptionalNodeOperations" in declared
            )
        return True

    def _has_counters(self, candidate: Candidate) -> bool:
        if "CompatibilityGroups" in self.features and not has_common_groups(
            candidate, self.allocated, self.taken
        ):
            return False
        return has_counters(candidate, self.allocated, self.taken)

    def _meets(
        self, constraint: DeviceConstraint, claim: int, choice: Choice, candidate: Candidate
    ) -> bool:
        names = set(constraint.requests)
        if names and not names & choice.names:
            return True
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        new = self.selectors.attribute(choice, candidate, name)
        if new is None:
            return False
        before = [
            self.selectors.attribute(taking.choice, taking.candidate, name)
            for taking in self.taken
            if taking.claim == claim and (not names or names & taking.choice.names)
        ]
        rule = may_differ if constraint.match_attribute is None else may_match
        lists = "ListTypeAttributes" in self.features
        return rule(new, [attribute for attribute in before if attribute], lists=lists)

    def _has_capacity(self, choice: Choice, candidate: Candidate) -> bool:
        if not self.shares_devices:
            return True
        taken = [
            *self.allocated.shares.get(candidate.id, ()),
            *(t.consumed for t in self.taken if t.candidate.id == candidate.id and t.consumed),
        ]
        return fits(choice.ask.capacity, candidate.device, taken=taken, fractional=self.fractional)

    def _consumption(self, choice: Choice, candidate: Candidate) -> Amounts:
        return consumption(choice.ask.capacity, candidate.device, fractional=self.fractional)


def _read_allocated(problem: Problem) -> Allocated:
    whole: set[DeviceId] = set()
    shares: dict[DeviceId, list[Amounts]] = {}
    for claim in problem.allocated:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation else ():
            device = DeviceId(result.driver, result.pool, result.device)
            if result.admin_access:
                continue
            if result.share_id is not None and "ConsumableCapacity" in problem.features:
                shares.setdefault(device, []).append(result.consumed_capacity or {})
            else:
                whole.add(device)
    return Allocated(frozenset(whole), shares)
