"""Apply changes to a situation: the objects as they would then be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from mooring.api.resource.v1 import (
    CapacityRequirements,
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    ResourceClaim,
    ResourceSlice,
)
from mooring.insight.diagnosis.changes import (
    AskCapacity,
    Change,
    DropAlternative,
    DropClassSelector,
    DropConstraint,
    DropRequest,
    DropSelector,
    FreeClaim,
    LowerCount,
    PublishList,
    SwitchFeature,
    Tolerate,
)
from mooring.insight.diagnosis.situation import Details, Place, Situation

T = TypeVar("T")
D = TypeVar("D", bound=Details)


def applied(situation: Situation, changes: Collection[Change]) -> Situation:
    """Return the situation with all the changes."""
    switched = {c.feature: c.is_on for c in changes if isinstance(c, SwitchFeature)}
    freed = {(c.namespace, c.name) for c in changes if isinstance(c, FreeClaim)}
    return replace(
        situation,
        features=situation.features._replace(**switched),
        classes=changed_classes(situation, changes),
        slices=changed_slices(situation, changes),
        allocated=tuple(
            claim
            for claim in situation.allocated
            if (claim.metadata.namespace, claim.metadata.name) not in freed
        ),
        claims=changed_claims(situation, changes),
    )


# --- claims -------------------------------------------------------------------------------


def changed_claims(situation: Situation, changes: Collection[Change]) -> tuple[ResourceClaim, ...]:
    """Return the claims that are wanted, with the changes."""
    by_claim: dict[int, list[Change]] = {}
    for change in changes:
        for number in _claims_of(change, situation):
            by_claim.setdefault(number, []).append(change)
    return tuple(
        _claim(number, claim, by_claim[number]) if number in by_claim else claim
        for number, claim in enumerate(situation.claims)
    )


def _claims_of(change: Change, situation: Situation) -> Iterable[int]:
    match change:
        case DropRequest(claim=number) | DropConstraint(claim=number):
            return (number,)
        case Tolerate(place=None):
            return range(len(situation.claims))
        case DropAlternative() | DropSelector() | LowerCount() | AskCapacity() | Tolerate():
            assert change.place is not None
            return (change.place.claim,)
    return ()


def _claim(number: int, claim: ResourceClaim, changes: Sequence[Change]) -> ResourceClaim:
    devices = claim.spec.devices
    requests = {c.request for c in changes if isinstance(c, DropRequest)}
    constraints = {c.constraint for c in changes if isinstance(c, DropConstraint)}
    edited = replace(
        devices,
        requests=tuple(
            _request(Place(number, index), request, changes)
            for index, request in enumerate(devices.requests or ())
            if index not in requests
        ),
        constraints=_without(devices.constraints, constraints),
    )
    return replace(claim, spec=replace(claim.spec, devices=edited))


def _request(place: Place, request: DeviceRequest, changes: Sequence[Change]) -> DeviceRequest:
    if not request.first_available:
        if request.exactly is None:
            return request
        return replace(request, exactly=_details(place, request.exactly, changes))
    dropped = {c.place for c in changes if isinstance(c, DropAlternative)}
    places = [replace(place, alternative=n) for n in range(len(request.first_available))]
    return replace(
        request,
        first_available=tuple(
            _details(where, details, changes)
            for where, details in zip(places, request.first_available, strict=True)
            if where not in dropped
        ),
    )


def _details(place: Place, details: D, changes: Sequence[Change]) -> D:
    selectors: set[int] = set()
    for change in changes:
        match change:
            case DropSelector(place=where, selector=number) if where == place:
                selectors.add(number)
            case LowerCount(place=where, count=count) if where == place:
                details = replace(details, count=count)
            case AskCapacity(place=where) if where == place:
                details = _ask_capacity(details, change)
            case Tolerate(place=where, toleration=toleration) if where in (None, place):
                details = replace(details, tolerations=(*details.tolerations, toleration))
    if selectors:
        details = replace(details, selectors=_without(details.selectors, selectors))
    return details


def _ask_capacity(details: D, change: AskCapacity) -> D:
    amounts = dict(details.capacity.requests) if details.capacity is not None else {}
    amounts.pop(change.name, None)
    if change.amount is not None:
        amounts[change.name] = change.amount
    return replace(details, capacity=CapacityRequirements(amounts) if amounts else None)


def _without(items: Sequence[T], numbers: Collection[int]) -> tuple[T, ...]:
    return tuple([item for number, item in enumerate(items) if number not in numbers])


# --- classes and slices -------------------------------------------------------------------


def changed_classes(situation: Situation, changes: Collection[Change]) -> tuple[DeviceClass, ...]:
    """Return the classes with the changes."""
    dropped: dict[str, set[int]] = {}
    for change in changes:
        if isinstance(change, DropClassSelector):
            dropped.setdefault(change.device_class, set()).add(change.selector)
    if not dropped:
        return situation.classes
    return tuple(
        _class(device_class, dropped.get(device_class.metadata.name, ()))
        for device_class in situation.classes
    )


def _class(device_class: DeviceClass, numbers: Collection[int]) -> DeviceClass:
    selectors: tuple[DeviceSelector, ...] = _without(device_class.spec.selectors, numbers)
    return replace(device_class, spec=replace(device_class.spec, selectors=selectors))


def changed_slices(situation: Situation, changes: Collection[Change]) -> tuple[ResourceSlice, ...]:
    """Return the slices with the changes."""
    lists = [change for change in changes if isinstance(change, PublishList)]
    if not lists:
        return situation.slices
    return tuple(_slice(slice_, lists) for slice_ in situation.slices)


def _slice(slice_: ResourceSlice, lists: Iterable[PublishList]) -> ResourceSlice:
    for change in lists:
        if slice_.spec.driver == change.driver:
            devices = tuple(_device(device, change) for device in slice_.spec.devices or ())
            slice_ = replace(slice_, spec=replace(slice_.spec, devices=devices))
    return slice_


def _device(device: Device, change: PublishList) -> Device:
    attributes = dict(device.attributes)
    for name in attribute_names(change.attribute, change.driver):
        found = attributes.get(name)
        if found is not None:
            attributes[name] = _listed(found, change.values)
    return replace(device, attributes=attributes)


def attribute_names(attribute: str, driver: str) -> tuple[str, ...]:
    """Return the keys under which devices of a driver may publish a qualified attribute."""
    domain, _, short = attribute.partition("/")
    return (attribute, short) if domain == driver else (attribute,)


def _listed(attribute: DeviceAttribute, values: Sequence[int]) -> DeviceAttribute:
    """Return the attribute with all the values, its own first, if it is one of them."""
    own = attribute.int_value
    if own is None or own not in values:
        return attribute
    return DeviceAttribute(int_values=(own, *[value for value in values if value != own]))
