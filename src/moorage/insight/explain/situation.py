"""A situation: all that decides whether claims get devices on one node, and what could change.

A change is small, and a value. A fix is one or two changes. A member of a conflict is named by the
change that takes it away. Paths and indexes refer to the unchanged situation: changes that are
applied together do not shift one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from moorage.allocator import Features, Inventory
from moorage.allocator.ledger import ClaimKey
from moorage.api.core.node import Node
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceClass,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceSlice,
)

Details = ExactDeviceRequest | DeviceSubRequest


class RequestPath(Struct, frozen=True, order=True):
    """The position of a request, or of one of its alternatives, among the claims."""

    claim: int
    request: int
    alternative: int | None = None


class Situation(Struct, frozen=True):
    """Claims to be allocated on a node, and everything that decides about them."""

    features: Features
    node: Node
    classes: tuple[DeviceClass, ...]
    slices: tuple[ResourceSlice, ...]  # at least those of all pools that the node may see
    allocated: tuple[ResourceClaim, ...]  # at least those with devices of these pools
    claims: tuple[ResourceClaim, ...]
    fleet_devices: int | None = None  # in the whole cluster

    @classmethod
    def of(
        cls,
        inventory: Inventory,
        node: Node,
        claims: Iterable[ResourceClaim],
        *,
        fleet_devices: int | None = None,
    ) -> Situation:
        """Return the situation of claims on a node, with the part of the inventory that it sees."""
        wanted = tuple(claims)
        slices = tuple(inventory.slices_around(node.metadata.name))
        names = sorted({details.device_class_name for _, details in _requests_of(wanted)})
        found = [inventory.device_class(name) for name in names]
        count = inventory.devices_count if fleet_devices is None else fleet_devices
        return cls(
            features=inventory.features,
            node=node,
            classes=tuple([device_class for device_class in found if device_class is not None]),
            slices=slices,
            allocated=tuple(_holders(inventory, slices)),
            claims=wanted,
            fleet_devices=count,
        )

    def requests(self) -> list[tuple[RequestPath, Details]]:
        """Return all requests and alternatives with their paths."""
        return _requests_of(self.claims)

    def details(self, place: RequestPath) -> Details:
        """Return the request or alternative at a path."""
        request = (self.claims[place.claim].spec.devices.requests or ())[place.request]
        if place.alternative is None:
            return request.exactly or ExactDeviceRequest()
        return request.first_available[place.alternative]

    def request_name(self, place: RequestPath) -> str:
        """Return the name of a request, or `request/alternative`."""
        request = (self.claims[place.claim].spec.devices.requests or ())[place.request]
        if place.alternative is None:
            return request.name
        return f"{request.name}/{request.first_available[place.alternative].name}"


def _requests_of(claims: Sequence[ResourceClaim]) -> list[tuple[RequestPath, Details]]:
    found: list[tuple[RequestPath, Details]] = []
    for number, claim in enumerate(claims):
        for index, request in enumerate(claim.spec.devices.requests or ()):
            if request.exactly is not None and not request.first_available:
                found.append((RequestPath(number, index), request.exactly))
            for alternative, details in enumerate(request.first_available):
                found.append((RequestPath(number, index, alternative), details))
    return found


def _holders(inventory: Inventory, slices: Iterable[ResourceSlice]) -> Iterable[ResourceClaim]:
    """Return the claims that the ledger has for the slices' pools."""
    ledger = inventory.ledger
    keys: dict[ClaimKey, None] = {}
    for pool in dict.fromkeys((s.spec.driver, s.spec.pool.name) for s in slices):
        for entries in ledger.taken(pool).values():
            keys.update((entry.claim, None) for entry in entries)
    for namespace, name in keys:
        devices = DeviceAllocationResult(results=ledger.results((namespace, name)))
        yield ResourceClaim(
            metadata=ObjectMeta(name=name, namespace=namespace),
            status=ResourceClaimStatus(allocation=AllocationResult(devices=devices)),
        )


class _Tagged(Struct, frozen=True, tag_field="change"):
    """A change as JSON names it."""


class DropRequest(_Tagged, frozen=True, tag="drop request"):
    """Drop a request."""

    claim: int
    request: int


class DropAlternative(_Tagged, frozen=True, tag="drop subrequest"):
    """Drop one alternative of a request."""

    place: RequestPath


class DropConstraint(_Tagged, frozen=True, tag="drop constraint"):
    """Drop a constraint of a claim."""

    claim: int
    constraint: int


class DropSelector(_Tagged, frozen=True, tag="drop selector"):
    """Drop a selector of a request."""

    place: RequestPath
    selector: int


class DropClassSelector(_Tagged, frozen=True, tag="drop class selector"):
    """Drop a selector of a class."""

    device_class: str
    selector: int


class LowerCount(_Tagged, frozen=True, tag="lower count"):
    """Request fewer devices."""

    place: RequestPath
    count: int


class AskCapacity(_Tagged, frozen=True, tag="ask for capacity"):
    """Request another amount of a capacity; None: do not request it."""

    place: RequestPath
    name: str
    amount: Quantity | None = None


class Tolerate(_Tagged, frozen=True, tag="tolerate"):
    """Tolerate a taint, in one request or, without a path, in all."""

    toleration: DeviceToleration
    place: RequestPath | None = None


class FreeClaim(_Tagged, frozen=True, tag="free claim"):
    """Deallocate a claim."""

    namespace: str
    name: str


class SwitchFeature(_Tagged, frozen=True, tag="switch feature"):
    """Switch a feature on or off, by its name in `Features`."""

    feature: str
    is_on: bool


class PublishList(_Tagged, frozen=True, tag="publish list"):
    """Let a driver publish several values of an attribute on devices that have one of them."""

    driver: str
    attribute: str
    values: tuple[int, ...]


SituationChange = (
    DropRequest
    | DropAlternative
    | DropConstraint
    | DropSelector
    | DropClassSelector
    | LowerCount
    | AskCapacity
    | Tolerate
    | FreeClaim
    | SwitchFeature
    | PublishList
)

SituationChanges = frozenset[SituationChange]


class Removals(NamedTuple):
    """The changes that take away a part of the claims, by kind."""

    requests: list[SituationChange]
    constraints: list[SituationChange]
    selectors: list[SituationChange]
    capacities: list[SituationChange]


def removals(situation: Situation) -> Removals:
    """Return a change for every part of the claims that can be taken away."""
    devices = [(number, claim.spec.devices) for number, claim in enumerate(situation.claims)]
    requests = situation.requests()
    return Removals(
        [DropRequest(n, i) for n, each in devices for i in range(len(each.requests or ()))],
        [DropConstraint(n, i) for n, each in devices for i in range(len(each.constraints))],
        [DropSelector(path, i) for path, each in requests for i in range(len(each.selectors))],
        [
            AskCapacity(path, name)
            for path, each in requests
            for name in (sorted(each.capacity.requests) if each.capacity else ())
        ],
    )
