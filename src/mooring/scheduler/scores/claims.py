"""Nodes where claims get alternatives that stand earlier in their lists are better."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.allocator import Allocated
from mooring.api.resource.v1 import ResourceClaim

WEIGHT = 2
ALTERNATIVES_MAX = 8


def chosen_score(answer: Allocated | None) -> int:
    """Return the sum, over requests with alternatives, of how early the chosen ones stand."""
    if answer is None:
        return 0
    choices = zip(answer.problem.plan.choices, answer.solution.chosen, strict=True)
    return sum(
        ALTERNATIVES_MAX - choice.asks.index(ask)
        for choice, ask in choices
        if ask.full_name != choice.name
    )


def held_score(claims: Iterable[ResourceClaim]) -> int:
    """Return the same for claims that have their devices already."""
    return sum(map(_held_score, claims))


def _held_score(claim: ResourceClaim) -> int:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    given = {result.request for result in results}
    return sum(
        ALTERNATIVES_MAX - index
        for request in claim.spec.devices.requests or ()
        for index, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in given
    )
