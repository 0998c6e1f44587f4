"""What a claim may not use while its feature is off, unless it did so before."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from mooring.api.gates import Gate
from mooring.api.resource.v1 import (
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from mooring.validation.context import Context

Ask = ExactDeviceRequest | DeviceSubRequest


def drop_disabled(
    spec: ResourceClaimSpec, old: ResourceClaimSpec | None, context: Context
) -> ResourceClaimSpec:
    """Return the spec without fields of disabled features that the old one does not use."""
    claim = spec.devices
    for gate, is_used, drop in _FEATURES:
        if not context.enabled(gate) and not (old is not None and is_used(old.devices)):
            claim = drop(claim)
    return spec if claim is spec.devices else replace(spec, devices=claim)


def disabled(
    spec: ResourceClaimSpec, old: ResourceClaimSpec | None, context: Context
) -> Iterator[Gate]:
    """Yield the gates whose fields `drop_disabled` takes away."""
    for gate, is_used, _ in _FEATURES:
        if context.enabled(gate) or (old is not None and is_used(old.devices)):
            continue
        if is_used(spec.devices):
            yield gate


def uses_admin_access(claim: DeviceClaim) -> bool:
    """Tell whether a request says anything about admin access."""
    return any(r.exactly and r.exactly.admin_access is not None for r in claim.requests or ())


def uses_consumable_capacity(claim: DeviceClaim) -> bool:
    """Tell whether the claim asks for amounts of capacity or for distinct attributes."""
    return any(c.distinct_attribute is not None for c in claim.constraints) or any(
        ask.capacity is not None for ask in _asks(claim)
    )


def _uses_prioritized_list(claim: DeviceClaim) -> bool:
    return any(request.first_available for request in claim.requests or ())


def _uses_tolerations(claim: DeviceClaim) -> bool:
    return any(ask.tolerations for ask in _asks(claim))


def _uses_derived_attributes(claim: DeviceClaim) -> bool:
    return any(ask.derived_attributes for ask in _asks(claim))


def _drop_prioritized_list(claim: DeviceClaim) -> DeviceClaim:
    return _with_requests(claim, lambda request: replace(request, first_available=()))


def _drop_tolerations(claim: DeviceClaim) -> DeviceClaim:
    return _with_asks(claim, lambda ask: replace(ask, tolerations=()))


def _drop_admin_access(claim: DeviceClaim) -> DeviceClaim:
    def drop(request: DeviceRequest) -> DeviceRequest:
        if request.exactly is None:
            return request
        return replace(request, exactly=replace(request.exactly, admin_access=None))

    return _with_requests(claim, drop)


def _drop_consumable_capacity(claim: DeviceClaim) -> DeviceClaim:
    constraints = tuple(replace(c, distinct_attribute=None) for c in claim.constraints)
    claim = replace(claim, constraints=constraints)
    return _with_asks(claim, lambda ask: replace(ask, capacity=None))


def _drop_derived_attributes(claim: DeviceClaim) -> DeviceClaim:
    return _with_asks(claim, lambda ask: replace(ask, derived_attributes=()))


# The prioritized list comes first: what it drops need not be looked at again.
_FEATURES: tuple[
    tuple[Gate, Callable[[DeviceClaim], bool], Callable[[DeviceClaim], DeviceClaim]], ...
] = (
    (Gate.DRA_PRIORITIZED_LIST, _uses_prioritized_list, _drop_prioritized_list),
    (Gate.DRA_DEVICE_TAINTS, _uses_tolerations, _drop_tolerations),
    (Gate.DRA_ADMIN_ACCESS, uses_admin_access, _drop_admin_access),
    (Gate.DRA_CONSUMABLE_CAPACITY, uses_consumable_capacity, _drop_consumable_capacity),
    (Gate.DRA_DERIVED_ATTRIBUTES, _uses_derived_attributes, _drop_derived_attributes),
)


def _asks(claim: DeviceClaim) -> Iterator[Ask]:
    for request in claim.requests or ():
        if request.exactly is not None:
            yield request.exactly
        yield from request.first_available


def _with_requests(
    claim: DeviceClaim, change: Callable[[DeviceRequest], DeviceRequest]
) -> DeviceClaim:
    if not claim.requests:
        return claim
    return replace(claim, requests=tuple(map(change, claim.requests)))


def _with_asks(claim: DeviceClaim, change: Callable[[Ask], Ask]) -> DeviceClaim:
    def change_request(request: DeviceRequest) -> DeviceRequest:
        exactly = request.exactly and change(request.exactly)
        return replace(
            request, exactly=exactly, first_available=tuple(map(change, request.first_available))
        )

    return _with_requests(claim, change_request)
