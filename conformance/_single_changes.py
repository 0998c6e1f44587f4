"""Every single change that might make a problem solvable, made to its objects one by one.

This is written without Moorage's own explanations: what these find is measured by it. The changes:
drop a constraint, a selector (of a request or a class), a request or an alternative; lower a count
by one; tolerate a taint; free an allocated claim; switch a feature.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from msgspec.structs import replace as with_fields

from conformance._allocation import Problem
from moorage.api.resource.v1 import DeviceRequest, DeviceToleration, ResourceClaim

FEATURES = (
    "AdminAccess",
    "CompatibilityGroups",
    "ConsumableCapacity",
    "DerivedAttributes",
    "DeviceBindingAndStatus",
    "DeviceTaints",
    "FractionalCapacityRange",
    "ListTypeAttributes",
    "OptionalNodeOperations",
    "PartitionableDevices",
    "PrioritizedList",
)


class Changed(NamedTuple):
    """A problem with one change."""

    text: str
    problem: Problem
    asks_for_nothing: bool = False  # the only request of all claims was dropped


def single_changes(problem: Problem) -> Iterator[Changed]:
    """Give the problem with each single change."""
    for number, claim in enumerate(problem.claims):
        for text, changed in _claims(claim):
            claims = (*problem.claims[:number], changed, *problem.claims[number + 1 :])
            is_empty = not any(each.spec.devices.requests for each in claims)
            yield Changed(f"claim {number}: {text}", replace(problem, claims=claims), is_empty)
    yield from _tolerating(problem)
    for number, held in enumerate(problem.allocated):
        rest = (*problem.allocated[:number], *problem.allocated[number + 1 :])
        yield Changed(f"free {held.metadata.name}", replace(problem, allocated=rest))
    for feature in FEATURES:
        switched = problem.features ^ {feature}
        yield Changed(f"switch {feature}", replace(problem, features=switched))
    yield from _classes(problem)


def _claims(claim: ResourceClaim) -> Iterator[tuple[str, ResourceClaim]]:
    devices = claim.spec.devices

    def with_devices(**fields: Any) -> ResourceClaim:
        return with_fields(
            claim, spec=with_fields(claim.spec, devices=with_fields(devices, **fields))
        )

    for index in range(len(devices.constraints)):
        rest = (*devices.constraints[:index], *devices.constraints[index + 1 :])
        yield f"drop constraint {index}", with_devices(constraints=rest)
    requests = devices.requests or ()
    for index, request in enumerate(requests):
        before, after = requests[:index], requests[index + 1 :]
        yield f"drop request {request.name}", with_devices(requests=(*before, *after))
        for text, changed in _requests(request):
            yield f"{request.name}: {text}", with_devices(requests=(*before, changed, *after))


def _requests(request: DeviceRequest) -> Iterator[tuple[str, DeviceRequest]]:
    if request.exactly is not None:
        for text, details in _details(request.exactly):
            yield text, with_fields(request, exactly=details)
    alternatives = request.first_available
    for index, alternative in enumerate(alternatives):
        before, after = alternatives[:index], alternatives[index + 1 :]
        if before or after:
            rest = with_fields(request, first_available=(*before, *after))
            yield f"drop subrequest {alternative.name}", rest
        for text, details in _details(alternative):
            changed = (*before, details, *after)
            yield f"{alternative.name}: {text}", with_fields(request, first_available=changed)


def _details(details: Any) -> Iterator[tuple[str, Any]]:
    for index in range(len(details.selectors)):
        rest = (*details.selectors[:index], *details.selectors[index + 1 :])
        yield f"drop selector {index}", with_fields(details, selectors=rest)
    if details.allocation_mode == "ExactCount" and details.count > 1:
        yield "lower count", with_fields(details, count=details.count - 1)


# --- taints -------------------------------------------------------------------------------


def _tolerating(problem: Problem) -> Iterator[Changed]:
    """Give the problem with each taint tolerated in one request, and in all."""
    taints = {
        (taint.key, taint.value, taint.effect)
        for slice_ in problem.slices
        for device in slice_.spec.devices or ()
        for taint in device.taints
    }
    for key, value, effect in sorted(taints):
        toleration = DeviceToleration(key=key, operator="Equal", value=value, effect=effect)
        places = [None, *_places(problem)]
        for place in places if len(places) > 2 else places[1:]:
            claims = tuple(
                _tolerant(number, claim, toleration, place)
                for number, claim in enumerate(problem.claims)
            )
            where = "everywhere" if place is None else f"at {place}"
            yield Changed(f"tolerate {key} {where}", replace(problem, claims=claims))


Place = tuple[int, int, int]  # claim, request, alternative (0 without any)


def _places(problem: Problem) -> Iterator[Place]:
    for number, claim in enumerate(problem.claims):
        for index, request in enumerate(claim.spec.devices.requests or ()):
            for alternative in range(len(request.first_available) or 1):
                yield number, index, alternative


def _tolerant(
    number: int, claim: ResourceClaim, toleration: DeviceToleration, place: Place | None
) -> ResourceClaim:
    def tolerant(details: Any, here: Place) -> Any:
        if place not in (None, here):
            return details
        return with_fields(details, tolerations=(*details.tolerations, toleration))

    requests = []
    for index, request in enumerate(claim.spec.devices.requests or ()):
        if request.exactly is not None:
            exactly = tolerant(request.exactly, (number, index, 0))
            request = with_fields(request, exactly=exactly)
        alternatives = tuple(
            tolerant(details, (number, index, alternative))
            for alternative, details in enumerate(request.first_available)
        )
        requests.append(with_fields(request, first_available=alternatives))
    devices = with_fields(claim.spec.devices, requests=tuple(requests))
    return with_fields(claim, spec=with_fields(claim.spec, devices=devices))


# --- classes ------------------------------------------------------------------------------


def _classes(problem: Problem) -> Iterator[Changed]:
    for number, class_ in enumerate(problem.classes):
        selectors = class_.spec.selectors
        for index in range(len(selectors)):
            rest = (*selectors[:index], *selectors[index + 1 :])
            changed = with_fields(class_, spec=with_fields(class_.spec, selectors=rest))
            classes = (*problem.classes[:number], changed, *problem.classes[number + 1 :])
            text = f"drop selector {index} of class {class_.metadata.name}"
            yield Changed(text, replace(problem, classes=classes))
