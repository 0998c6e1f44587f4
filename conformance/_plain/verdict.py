"""Is there any allocation at all? The plain search, without branches that obviously repeat earlier
ones.

To show that there is none, the plain search goes through every order of everything. Four remarks
spare most of it, each true by itself:

1. Devices that look alike and are unused are interchangeable: if the first leads to no solution,
   the others do not either.
2. Takings that look alike leave alike: what could not be completed from them once cannot be later.
3. A request cannot be given more devices than are left to try and match it.
4. Whether all requests of a claim can be served does not depend on the order in which they are; so
   those that a constraint is about come one after the other, and then it can be forgotten.

They change which branches are visited and so might miss an error that ends the search. So they are
used only where there can be none: no request for all devices, nothing derived, and every selector
and capacity judged beforehand, for every device. A claim over its limit of devices is no error. Nor
are they used where a device takes less than nothing of a counter, for there the order matters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from functools import cache
from typing import Any

from msgspec.structs import replace

from conformance._allocation import Problem
from conformance._plain.model import Candidate, Choice, Failure, Taking
from conformance._plain.requests import claim_name
from conformance._plain.search import STEPS_MAX, Search


def is_possible(problem: Problem, *, steps_max: int = STEPS_MAX) -> bool:
    """Return whether the claims can be allocated, or raise TooManyStepsError."""
    try:
        return _Verdict(problem, steps_max, None).run().outcome == "allocated"
    except Failure:
        return False


class _Verdict(Search):
    """A search that leaves out ways which are plainly the same as others."""

    is_safe: bool | None = None

    def _search_request(self, claim: int, request: int) -> bool:
        if self.is_safe is None:
            self.is_safe = self._has_no_faults()
            self.hopeless: set[Any] = set()
            self.look = cache(self._look)
            self.matching: dict[Choice, list[int]] = {}
            if self.is_safe:
                self.choices = [self._ordered(number) for number in range(len(self.choices))]
        if not self.is_safe:
            return super()._search_request(claim, request)
        key = claim, request, self._left_by_takings(claim, request)
        if key in self.hopeless:
            return False
        is_found = super()._search_request(claim, request)
        if not is_found:
            self.hopeless.add(key)
        return is_found

    def _search_device(
        self, claim: int, request: int, choice: Choice, number: int, start: int
    ) -> bool:
        if not self.is_safe or number >= choice.count:
            return super()._search_device(claim, request, choice, number, start)
        self._refuse_too_many(claim, choice.count - number)
        if self._matching_from(choice, start) < choice.count - number:
            return False
        failed: set[Any] = set()
        for position in range(start, len(self.candidates)):
            candidate = self.candidates[position]
            is_new = all(taking.candidate is not candidate for taking in self.taken)
            look = self.look(candidate)
            if is_new and look in failed:
                continue
            if self._is_suitable(claim, choice, candidate):
                taking = self._take(claim, choice, candidate, must=False)
                if taking is not None and self._go_on(claim, request, taking, number, position + 1):
                    return True
            if is_new:
                failed.add(look)
        return False

    def _matching_from(self, choice: Choice, start: int) -> int:
        """Return how many devices from a position on match a choice."""
        matching = self.matching.get(choice)
        if matching is None:
            matching = self.matching[choice] = [
                position
                for position, candidate in enumerate(self.candidates)
                if self.selectors.selects(choice, candidate, "")
            ]
        return len(matching) - bisect_left(matching, start)

    # --- what looks alike -----------------------------------------------------------------

    def _look(self, candidate: Candidate) -> Any:
        """Return all that matters of a device before it is taken."""
        shares = self.allocated.shares.get(candidate.id, [])
        return (
            str(candidate.pool),
            repr(replace(candidate.device, name="")),
            candidate.slice.spec.skip_node_operations,
            candidate.slice.spec.per_device_node_selection,
            candidate.id in self.allocated.whole,
            repr(shares),
        )

    def _left_by_takings(self, claim: int, request: int) -> Any:
        """Return what the requests from here on can see of the takings."""
        devices: dict[Any, list[Any]] = {}
        for taking in self.taken:
            seen = (
                taking.claim,
                repr(taking.consumed),
                taking.is_charged,
                self._constraints_ahead(taking, claim, request),
            )
            devices.setdefault(taking.candidate.id, []).append(seen)
        looks = {taking.candidate.id: self.look(taking.candidate) for taking in self.taken}
        return frozenset(
            Counter((looks[id_], tuple(sorted(seen))) for id_, seen in devices.items()).items()
        )

    def _constraints_ahead(self, taking: Taking, claim: int, request: int) -> tuple[int, ...]:
        """Return the constraints about a taking that are also about requests still to come."""
        if taking.claim != claim:
            return ()
        ahead = {
            name
            for alternatives in self.choices[claim][request:]
            for choice in alternatives
            for name in choice.names
        }
        return tuple(
            number
            for number, constraint in enumerate(self.problem.claims[claim].spec.devices.constraints)
            if not constraint.requests
            or (taking.choice.names & set(constraint.requests) and ahead & set(constraint.requests))
        )

    # --- order ----------------------------------------------------------------------------

    def _ordered(self, claim: int) -> list[list[Choice]]:
        """Return the requests of a claim so that those that a constraint is about are together."""
        constraints = self.problem.claims[claim].spec.devices.constraints
        groups = [set(constraint.requests) for constraint in constraints if constraint.requests]
        rest = list(self.choices[claim])
        ordered: list[list[Choice]] = []
        while rest:
            begun = [group for group in groups if any(group & _names(each) for each in ordered)]
            best = max(rest, key=lambda each: sum(bool(group & _names(each)) for group in begun))
            rest.remove(best)
            ordered.append(best)
        return ordered

    # --- errors ---------------------------------------------------------------------------

    def _has_no_faults(self) -> bool:
        """Return whether nothing can end the search but its answer."""
        if any(map(_takes_less_than_nothing, self.candidates)):
            return False
        for number, requests in enumerate(self.choices):
            name = claim_name(self.problem.claims[number])
            for choice in (choice for choices in requests for choice in choices):
                if choice.everything is not None or choice.ask.derived_attributes:
                    return False
                if not all(self._is_judged(choice, each, name) for each in self.candidates):
                    return False
        return True

    def _is_judged(self, choice: Choice, candidate: Candidate, name: str) -> bool:
        try:
            self.selectors.selects(choice, candidate, name)
            self._has_capacity(choice, candidate)
        except Failure:
            return False
        return True


def _names(alternatives: list[Choice]) -> set[str]:
    return {name for choice in alternatives for name in choice.names}


def _takes_less_than_nothing(candidate: Candidate) -> bool:
    return any(
        counter.value.nano < 0
        for consumption in candidate.device.consumes_counters
        for counter in consumption.counters.values()
    )
