"""What a pod's claims ask for, brought to one form, whatever the node.

    # ask: one request, or one alternative of a request
    # choice: a request: one ask, or several of which the first that leads to a solution counts

Checks come in Kubernetes' order: claim by claim, request by request. Some need the node (how
many devices are `All`?), so what is found wrong is kept as a check and raised when its turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.json import Encoder

from mooring.allocator.facts import Amounts
from mooring.allocator.features import Features
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import (
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

Classes = Callable[[str], DeviceClass | None]


class Wish(NamedTuple):
    """What decides which devices are candidates; asks with the same wish share their answers."""

    class_selectors: tuple[str, ...]
    selectors: tuple[str, ...]
    tolerations: tuple[DeviceToleration, ...]
    amounts: Amounts


class Ask(Struct, frozen=True, eq=False, gc=False):
    """Devices wanted: a request, or one alternative of it."""

    claim: int  # its place among the claims
    name: str  # as written; an alternative's own
    full_name: str  # with the request's in front
    device_class: DeviceClass
    wish: Wish
    count: int  # 0 if all are wanted
    wants_all: bool
    is_admin: bool
    derived: Mapping[str, str]  # expressions by the name of the attribute
    constraints: tuple[int, ...]  # which constraints of the claim apply


class Choice(Struct, frozen=True, eq=False, gc=False):
    """A request: its alternatives in order; one if it has none."""

    claim: int
    name: str
    asks: tuple[Ask, ...]


class Check(NamedTuple):
    """Something to look at before the search: a fault found, or what needs the node."""

    fault: str | None = None
    ask: Ask | None = None  # wants all devices: list them
    limited: tuple[int, int] | None = None  # the choices of a claim, to be counted


class Plan(Struct, frozen=True, eq=False, gc=False):
    """What claims want, apart from their names: claims of one template have the same plan."""

    choices: tuple[Choice, ...]
    constraints: tuple[tuple[DeviceConstraint, ...], ...]  # by claim
    checks: tuple[Check, ...]  # empty if nothing is wrong on any node
    needs_free_device: bool = False  # before anything else is looked at

    @property
    def is_faulty(self) -> bool:
        """Whether a fault was found; then it has the names of claims in it."""
        return any(check.fault is not None for check in self.checks)


def plan_of(claims: Sequence[ResourceClaim], *, features: Features, classes: Classes) -> Plan:
    """Return what the claims want."""
    reader = _Reader(features, classes)
    for number, claim in enumerate(claims):
        reader.read(number, claim)
        if reader.is_stopped:
            break
    constraints = tuple([claim.spec.devices.constraints for claim in claims])
    choices = tuple(reader.choices)
    needs_free = bool(choices) and not reader.checks and _needs_free_device(choices[0])
    return Plan(choices, constraints, tuple(reader.checks), needs_free)


def _needs_free_device(choice: Choice) -> bool:
    return all(ask.count > 0 and not ask.is_admin for ask in choice.asks)


def content_of(claims: Iterable[ResourceClaim]) -> tuple[bytes, ...]:
    """Return what the plan of claims depends on."""
    return tuple([_ENCODER.encode(claim.spec) for claim in claims])


def _quantity_text(value: object) -> str:
    assert isinstance(value, Quantity)
    return f"{value} {value.nano}"  # Texts above 1000E have no suffix.


_ENCODER = Encoder(enc_hook=_quantity_text, order="deterministic")


class _FaultError(Exception):
    """Something that ends the attempt."""


class _Reader:
    def __init__(self, features: Features, classes: Classes) -> None:
        self.choices: list[Choice] = []
        self.checks: list[Check] = []
        self.is_stopped = False
        self._features = features
        self._classes = classes

    def read(self, number: int, claim: ResourceClaim) -> None:
        try:
            self._read(number, claim)
        except _FaultError as fault:
            self.checks.append(Check(fault=str(fault)))
            self.is_stopped = True

    def _read(self, number: int, claim: ResourceClaim) -> None:
        devices = claim.spec.devices
        name = claim_name(claim)
        first = len(self.choices)
        for request in devices.requests or ():
            self._refuse_features(request, name)
            asks = tuple(self._asks(number, name, request, devices.constraints))
            self.choices.append(Choice(number, request.name, asks))
        self._limit(name, first)
        for index, constraint in enumerate(devices.constraints):
            if constraint.match_attribute is None and constraint.distinct_attribute is None:
                raise _FaultError(
                    f"claim {name}, constraint #{index}: "
                    "empty constraint (unsupported constraint type?)"
                )

    def _limit(self, name: str, first: int) -> None:
        """Refuse a claim that wants too many devices, now or when the node is known."""
        choices = self.choices[first:]
        if any(ask.wants_all for choice in choices for ask in choice.asks):
            self.checks.append(Check(limited=(first, len(self.choices))))
            return
        least = sum(min(ask.count for ask in choice.asks) for choice in choices)
        if least > RESULTS_MAX:
            raise _FaultError(too_many(name, least))

    def _refuse_features(self, request: DeviceRequest, name: str) -> None:
        if request.first_available and not self._features.prioritized_list:
            raise _FaultError(
                f"claim {name}, request {request.name}: has subrequests, but the "
                "DRAPrioritizedList feature is disabled"
            )
        if self._features.consumable_capacity:
            return
        off = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
        if request.exactly is not None and request.exactly.capacity is not None:
            raise _FaultError(f"claim {name}, request {request.name}: {off}")
        for alternative in request.first_available:
            if alternative.capacity is not None:
                raise _FaultError(f"claim {name}, subrequest {alternative.name}: {off}")

    def _asks(
        self,
        number: int,
        claim: str,
        request: DeviceRequest,
        constraints: Sequence[DeviceConstraint],
    ) -> Iterator[Ask]:
        if not request.first_available:
            details = request.exactly or ExactDeviceRequest()
            yield self._ask(number, claim, request.name, request.name, details, constraints)
        for alternative in request.first_available:
            full_name = f"{request.name}/{alternative.name}"
            yield self._ask(number, claim, alternative.name, full_name, alternative, constraints)

    def _ask(
        self,
        number: int,
        claim: str,
        name: str,
        full_name: str,
        details: ExactDeviceRequest | DeviceSubRequest,
        constraints: Sequence[DeviceConstraint],
    ) -> Ask:
        place = f"claim {claim}, request {name}"
        device_class = self._device_class(details, place)
        mode = details.allocation_mode
        if mode not in ("ExactCount", "All"):
            raise _FaultError(f"{place}: unsupported count mode {mode}")
        wants_all = mode == "All"
        amounts = details.capacity.requests if details.capacity is not None else {}
        ask = Ask(
            claim=number,
            name=name,
            full_name=full_name,
            device_class=device_class,
            wish=Wish(
                _expressions(device_class.spec.selectors),
                _expressions(details.selectors),
                details.tolerations,
                tuple([(name, str(amounts[name]), amounts[name]) for name in sorted(amounts)]),
            ),
            count=0 if wants_all else details.count,
            wants_all=wants_all,
            is_admin=isinstance(details, ExactDeviceRequest) and bool(details.admin_access),
            derived={entry.name: entry.expression for entry in details.derived_attributes},
            constraints=_applying(constraints, full_name),
        )
        if wants_all:
            self.checks.append(Check(ask=ask))
        return ask

    def _device_class(
        self, details: ExactDeviceRequest | DeviceSubRequest, place: str
    ) -> DeviceClass:
        if details.derived_attributes and not self._features.derived_attributes:
            raise _FaultError(
                f"{place}: cannot handle request with derived attributes, the feature is disabled"
            )
        for index, selector in enumerate(details.selectors):
            if selector.cel is None:
                raise _FaultError(
                    f"{place}, selector #{index}: CEL expression empty (unsupported selector type?)"
                )
        if (
            isinstance(details, ExactDeviceRequest)
            and details.admin_access is not None
            and not self._features.admin_access
        ):
            raise _FaultError(f"{place}: admin access is requested, but the feature is disabled")
        name = details.device_class_name
        if not name:
            raise _FaultError(f"{place}: missing device class name (unsupported request type?)")
        device_class = self._classes(name)
        if device_class is None:
            raise _FaultError(
                f"{place}: could not retrieve device class {name}: "
                f'deviceclass.resource.k8s.io "{name}" not found'
            )
        return device_class


def claim_name(claim: ResourceClaim) -> str:
    """Return how messages name a claim."""
    metadata = claim.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def too_many(claim: str, count: int) -> str:
    """Return the message for a claim that wants more devices than a claim can have."""
    return (
        f"claim {claim}: number of requested devices {count} exceeds the claim limit of "
        f"{RESULTS_MAX}"
    )


def _expressions(selectors: Sequence[DeviceSelector]) -> tuple[str, ...]:
    # A selector of a class that is no CEL expression matches nothing that we know.
    return tuple(
        selector.cel.expression if selector.cel is not None else "" for selector in selectors
    )


def _applying(constraints: Sequence[DeviceConstraint], full_name: str) -> tuple[int, ...]:
    """Return which constraints apply to a request or alternative."""
    request = full_name.partition("/")[0]
    return tuple(
        number
        for number, constraint in enumerate(constraints)
        if not constraint.requests
        or request in constraint.requests
        or full_name in constraint.requests
    )
