"""Checking claims before the search: what makes a request impossible to understand."""

from __future__ import annotations

from conformance._allocation import Problem
from conformance._plain.capacity import fits
from conformance._plain.model import Candidate, Choice, Failure, Pool
from conformance._plain.selectors import Selectors
from moorage.api.resource.v1 import (
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)

DEVICES_PER_CLAIM_MAX = 32


def claim_name(claim: ResourceClaim) -> str:
    """Return the name of a claim as messages give it."""
    metadata = claim.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


class Checker:
    """Turns the requests of claims into choices, or raises Failure."""

    def __init__(self, problem: Problem, pools: list[Pool], selectors: Selectors) -> None:
        self._features = problem.features
        self._classes = {class_.metadata.name: class_ for class_ in problem.classes}
        self._pools = pools
        self._selectors = selectors

    def check_claim(self, claim: ResourceClaim) -> list[list[Choice]]:
        """Return the choices of a claim, by request and alternative."""
        name = claim_name(claim)
        devices = claim.spec.devices
        choices = [self._check_request(name, request) for request in devices.requests or ()]
        least = sum(min(choice.count for choice in some) for some in choices)
        if least > DEVICES_PER_CLAIM_MAX:
            text = f"number of requested devices {least} exceeds the claim limit of 32"
            raise Failure(f"claim {name}: {text}")
        for number, constraint in enumerate(devices.constraints):
            if constraint.match_attribute is None and constraint.distinct_attribute is None:
                text = "empty constraint (unsupported constraint type?)"
                raise Failure(f"claim {name}, constraint #{number}: {text}")
        return choices

    def _check_request(self, claim: str, request: DeviceRequest) -> list[Choice]:
        alternatives = request.first_available
        exactly = request.exactly or ExactDeviceRequest()
        if alternatives and "PrioritizedList" not in self._features:
            text = "has subrequests, but the DRAPrioritizedList feature is disabled"
            raise Failure(f"claim {claim}, request {request.name}: {text}")
        if "ConsumableCapacity" not in self._features:
            text = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
            if exactly.capacity is not None:
                raise Failure(f"claim {claim}, request {request.name}: {text}")
            for alternative in alternatives:
                if alternative.capacity is not None:
                    raise Failure(f"claim {claim}, subrequest {alternative.name}: {text}")
        if not alternatives:
            return [self._check(claim, request.name, None, exactly)]
        return [self._check(claim, ask.name, request.name, ask) for ask in alternatives]

    def _check(
        self,
        claim: str,
        name: str,
        parent: str | None,
        ask: ExactDeviceRequest | DeviceSubRequest,
    ) -> Choice:
        place = f"claim {claim}, request {name}"
        if ask.derived_attributes and "DerivedAttributes" not in self._features:
            text = "cannot handle request with derived attributes, the feature is disabled"
            raise Failure(f"{place}: {text}")
        for number, selector in enumerate(ask.selectors):
            if selector.cel is None:
                text = "CEL expression empty (unsupported selector type?)"
                raise Failure(f"{place}, selector #{number}: {text}")
        asks_for_admin = isinstance(ask, ExactDeviceRequest) and ask.admin_access is not None
        if asks_for_admin and "AdminAccess" not in self._features:
            raise Failure(f"{place}: admin access is requested, but the feature is disabled")
        class_name = ask.device_class_name
        if not class_name:
            raise Failure(f"{place}: missing device class name (unsupported request type?)")
        if class_name not in self._classes:
            text = f'deviceclass.resource.k8s.io "{class_name}" not found'
            raise Failure(f"{place}: could not retrieve device class {class_name}: {text}")
        choice = Choice(name, parent, ask, self._classes[class_name])
        match ask.allocation_mode:
            case "ExactCount":
                pass
            case "All":
                choice.everything = self._everything(choice, claim, place)
            case mode:
                raise Failure(f"{place}: unsupported count mode {mode}")
        return choice

    def _everything(self, choice: Choice, claim: str, place: str) -> list[Candidate]:
        """Return all devices that the choice selects and whose size suffices."""
        found = []
        for pool in self._pools:
            text = f"{place}: asks for all devices, but resource pool {pool} is currently"
            if pool.is_incomplete:
                raise Failure(f"{text} being updated")
            if pool.is_invalid:
                raise Failure(f"{text} invalid")
            found += [
                candidate
                for candidate in pool.candidates(pool.here)
                if self._selectors.selects(choice, candidate, claim)
                and self._is_large_enough(choice, candidate, place)
            ]
        return found

    def _is_large_enough(self, choice: Choice, candidate: Candidate, place: str) -> bool:
        if "ConsumableCapacity" not in self._features:
            return True
        fractional = "FractionalCapacityRange" in self._features
        device = candidate.device
        try:
            return fits(choice.ask.capacity, device, taken=(), fractional=fractional)
        except Failure as failure:
            text = f"{place}: checking capacity for device {device.name}: {failure}"
            raise Failure(text) from None
