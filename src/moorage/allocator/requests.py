"""The requests of a pod's claims in one form, whatever the node.

    # subrequest: one alternative of a request; a request without alternatives is its own only one
    # requirements: what decides which devices are candidates; equal ones share their candidates

Checks run in Kubernetes' order: claim by claim, request by request. Some need the node (how many
devices are `All`?), so an error that is found here becomes a check, raised when its turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.json import Encoder

from moorage.allocator.errors import AllocationError
from moorage.allocator.features import Features
from moorage.allocator.pool_facts import CapacityRequests
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)

RESULTS_MAX = 32  # devices of one claim
NOTHING_DERIVED: Mapping[str, str] = {}

Classes = Callable[[str], DeviceClass | None]


class Requirements(NamedTuple):
    """What decides which devices are candidates."""

    class_selectors: tuple[str, ...]
    selectors: tuple[str, ...]
    tolerations: tuple[DeviceToleration, ...]
    amounts: CapacityRequests


class SubRequest(Struct, frozen=True, eq=False, gc=False):
    """One alternative of a request, with its class."""

    claim: int  # its index among the claims
    name: str
    full_name: str  # `request/subrequest`, as results have it
    device_class: DeviceClass
    requirements: Requirements
    count: int  # 0 for mode All
    wants_all: bool
    is_admin: bool
    derived: Mapping[str, str]  # expressions by the name of the attribute
    constraints: tuple[int, ...]  # which constraints of the claim apply


class PlannedRequest(Struct, frozen=True, eq=False, gc=False):
    """A request: its subrequests in order of preference."""

    claim: int
    name: str
    subrequests: tuple[SubRequest, ...]


class PlanCheck(NamedTuple):
    """A check before the search: an error that was found, or a question about the node."""

    fault: str | None = None
    for_all: SubRequest | None = None  # wants all devices: list them
    limited: tuple[int, int] | None = None  # the requests of a claim whose devices to count


class RequestPlan(Struct, frozen=True, eq=False, gc=False):
    """The requests of claims, without their names: claims of one template have the same plan."""

    requests: tuple[PlannedRequest, ...]
    constraints: tuple[tuple[DeviceConstraint, ...], ...]  # by claim
    checks: tuple[PlanCheck, ...]  # empty if nothing is wrong on any node
    needs_free_device: bool = False  # for its first request

    @property
    def is_faulty(self) -> bool:
        """Whether an error was found; its text contains the names of claims."""
        return any(check.fault is not None for check in self.checks)


def plan_of(
    claims: Sequence[ResourceClaim], *, features: Features, classes: Classes
) -> RequestPlan:
    """Return the plan of claims; the first error ends it."""
    planner = _Planner(features, classes)
    try:
        for number, claim in enumerate(claims):
            planner.add(number, claim)
    except AllocationError as fault:
        planner.checks.append(PlanCheck(fault=str(fault)))
    constraints = tuple([claim.spec.devices.constraints for claim in claims])
    requests = tuple(planner.requests)
    needs_free = not planner.checks and any(
        all(subrequest.count > 0 and not subrequest.is_admin for subrequest in first.subrequests)
        for first in requests[:1]
    )
    return RequestPlan(requests, constraints, tuple(planner.checks), needs_free)


def content_of(claims: Iterable[ResourceClaim]) -> tuple[bytes, ...]:
    """Return the content that the plan of claims depends on."""
    return tuple([_ENCODER.encode(claim.spec) for claim in claims])


def _quantity_text(value: object) -> str:
    assert isinstance(value, Quantity)
    return f"{value} {value.nano}"  # Texts above 1000E have no suffix.


_ENCODER = Encoder(enc_hook=_quantity_text, order="deterministic")


class _Planner:
    def __init__(self, features: Features, classes: Classes) -> None:
        self.requests: list[PlannedRequest] = []
        self.checks: list[PlanCheck] = []
        self._features = features
        self._classes = classes
        # Equal requirements are one object.
        self._requirements: dict[Requirements, Requirements] = {}

    def add(self, number: int, claim: ResourceClaim) -> None:
        devices = claim.spec.devices
        name = claim_name(claim)
        first = len(self.requests)
        applying = _ApplyingConstraints(devices.constraints)
        for request in devices.requests or ():
            self._refuse_features(request, name)
            subrequests = tuple(self._subrequests(number, name, request, applying))
            self.requests.append(PlannedRequest(number, request.name, subrequests))
        self._limit(name, first)
        for index, constraint in enumerate(devices.constraints):
            if constraint.match_attribute is None and constraint.distinct_attribute is None:
                raise AllocationError(
                    f"claim {name}, constraint #{index}: "
                    "empty constraint (unsupported constraint type?)"
                )

    def _limit(self, name: str, first: int) -> None:
        """Reject a claim that requests too many devices, now or once the node is known."""
        requests = [request.subrequests for request in self.requests[first:]]
        if any(subrequest.wants_all for subrequests in requests for subrequest in subrequests):
            self.checks.append(PlanCheck(limited=(first, len(self.requests))))
            return
        least = sum(min(each.count for each in subrequests) for subrequests in requests)
        if least > RESULTS_MAX:
            raise AllocationError(too_many(name, least))

    def _refuse_features(self, request: DeviceRequest, name: str) -> None:
        if request.first_available and not self._features.prioritized_list:
            raise AllocationError(
                f"claim {name}, request {request.name}: has subrequests, but the "
                "DRAPrioritizedList feature is disabled"
            )
        if self._features.consumable_capacity:
            return
        off = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
        if request.exactly is not None and request.exactly.capacity is not None:
            raise AllocationError(f"claim {name}, request {request.name}: {off}")
        for alternative in request.first_available:
            if alternative.capacity is not None:
                raise AllocationError(f"claim {name}, subrequest {alternative.name}: {off}")

    def _subrequests(
        self,
        number: int,
        claim: str,
        request: DeviceRequest,
        constraints: _ApplyingConstraints,
    ) -> Iterator[SubRequest]:
        if not request.first_available:
            details = request.exactly or ExactDeviceRequest()
            yield self._subrequest(number, claim, request.name, request.name, details, constraints)
        for alternative in request.first_available:
            full_name = f"{request.name}/{alternative.name}"
            yield self._subrequest(
                number, claim, alternative.name, full_name, alternative, constraints
            )

    def _subrequest(
        self,
        number: int,
        claim: str,
        name: str,
        full_name: str,
        details: ExactDeviceRequest | DeviceSubRequest,
        constraints: _ApplyingConstraints,
    ) -> SubRequest:
        device_class = self._device_class(details, claim, name)
        mode = details.allocation_mode
        if mode not in ("ExactCount", "All"):
            raise AllocationError(f"claim {claim}, request {name}: unsupported count mode {mode}")
        wants_all = mode == "All"
        requirements = Requirements(
            _expressions(device_class.spec.selectors),
            _expressions(details.selectors),
            details.tolerations,
            () if details.capacity is None else _amounts(details.capacity.requests),
        )
        subrequest = SubRequest(
            claim=number,
            name=name,
            full_name=full_name,
            device_class=device_class,
            requirements=self._requirements.setdefault(requirements, requirements),
            count=0 if wants_all else details.count,
            wants_all=wants_all,
            is_admin=isinstance(details, ExactDeviceRequest) and bool(details.admin_access),
            derived={entry.name: entry.expression for entry in details.derived_attributes}
            if details.derived_attributes
            else NOTHING_DERIVED,
            constraints=constraints.of(full_name),
        )
        if wants_all:
            self.checks.append(PlanCheck(for_all=subrequest))
        return subrequest

    def _device_class(
        self, details: ExactDeviceRequest | DeviceSubRequest, claim: str, request: str
    ) -> DeviceClass:
        """Return the class of a request that has no error."""
        fault = self._fault(details)
        if fault is None:
            name = details.device_class_name
            device_class = self._classes(name)
            if device_class is not None:
                return device_class
            fault = f": could not retrieve device class {name}: {_not_found(name)}"
        raise AllocationError(f"claim {claim}, request {request}{fault}")

    def _fault(self, details: ExactDeviceRequest | DeviceSubRequest) -> str | None:
        """Return the first thing in a request that cannot be served on any node."""
        if details.derived_attributes and not self._features.derived_attributes:
            return ": cannot handle request with derived attributes, the feature is disabled"
        for index, selector in enumerate(details.selectors):
            if selector.cel is None:
                text = "CEL expression empty (unsupported selector type?)"
                return f", selector #{index}: {text}"
        if (
            isinstance(details, ExactDeviceRequest)
            and details.admin_access is not None
            and not self._features.admin_access
        ):
            return ": admin access is requested, but the feature is disabled"
        if not details.device_class_name:
            return ": missing device class name (unsupported request type?)"
        return None


def _not_found(name: str) -> str:
    return f'deviceclass.resource.k8s.io "{name}" not found'


def _amounts(requests: Mapping[str, Quantity]) -> CapacityRequests:
    return tuple([(name, str(requests[name]), requests[name]) for name in sorted(requests)])


def claim_name(claim: ResourceClaim) -> str:
    """Return the name of a claim in messages."""
    metadata = claim.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def too_many(claim: str, count: int) -> str:
    """Return the message for a claim that wants more devices than a claim can have."""
    return (
        f"claim {claim}: number of requested devices {count} exceeds the claim limit of "
        f"{RESULTS_MAX}"
    )


def _expressions(selectors: Sequence[DeviceSelector]) -> tuple[str, ...]:
    # A selector of a class that has no CEL expression matches nothing.
    return tuple(
        [selector.cel.expression if selector.cel is not None else "" for selector in selectors]
    )


class _ApplyingConstraints:
    """Which constraints of a claim apply to a request or subrequest."""

    def __init__(self, constraints: Sequence[DeviceConstraint]) -> None:
        self._to_all: list[int] = []
        self._by_name: dict[str, list[int]] = {}
        for number, constraint in enumerate(constraints):
            if not constraint.requests:
                self._to_all.append(number)
            for name in constraint.requests:
                self._by_name.setdefault(name, []).append(number)

    def of(self, full_name: str) -> tuple[int, ...]:
        """Return the numbers of those that apply."""
        if not self._by_name:
            return tuple(self._to_all)
        named = self._by_name.get(full_name, [])
        request, slash, _ = full_name.partition("/")
        if slash:
            named = [*named, *self._by_name.get(request, ())]
        return tuple(sorted({*self._to_all, *named}))
