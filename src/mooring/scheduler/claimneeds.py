"""What a pod's claims need, whatever the node: found and checked once for an attempt.

# held: a claim that has devices already; the pod must go where these can be used
# wanted: a claim that has none yet; the node must have devices for it
# special: the claim for extended resources; what it wants depends on the node
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from mooring.api.core.node import Node
from mooring.api.core.pod import Pod
from mooring.api.nodequery import NodeQuery, read_node_selector
from mooring.api.resource.v1 import DeviceRequest, ResourceClaim
from mooring.claims import ClassIndex, Refused, Use, extended_needs, special_claim, uses_of
from mooring.claims.extendedneeds import Needs
from mooring.scheduler.bindingconditions import must_be_tried_elsewhere
from mooring.scheduler.features import Features
from mooring.scheduler.refusals import Fault, Obstacle, Refusal

PLUGIN = "DynamicResources"
NODE_OPERATIONS = "DRAOptionalNodeOperations"


class Held(Struct, frozen=True):
    """A claim with devices, and where these can be used; None for everywhere."""

    claim: ResourceClaim
    query: NodeQuery | None
    needs_node_operations: bool  # only where the node agent can do without the driver
    is_lost: bool  # its devices failed, or took too long: it must be allocated anew

    def is_within_reach(self, node: Node) -> bool:
        """Return whether the devices can be used on a node."""
        metadata = node.metadata
        if self.query is not None and not self.query.matches(metadata.name, metadata.labels):
            return False
        return not self.needs_node_operations or NODE_OPERATIONS in node.status.declared_features


class ClaimNeeds(Struct, frozen=True):
    """The claims of one pod; one that several entries mean counts once."""

    pod: Pod
    uses: tuple[Use, ...] = ()  # by entry
    held: tuple[Held, ...] = ()
    wanted: tuple[ResourceClaim, ...] = ()  # the special one not among them
    special: ResourceClaim | None = None
    extended: Needs = {}
    has_alternatives: bool = False  # then the choice made on a node counts in its score

    @property
    def key(self) -> Hashable:
        """What tells apart the claims that are held; what is wanted has a plan of its own."""
        return tuple([(each.query, each.needs_node_operations, each.is_lost) for each in self.held])


class Waiting(Struct, frozen=True):
    """The pod is not tried before this is over; Kubernetes says nothing of it."""

    text: str


class Known(Protocol):
    """What must be known to find the claims of a pod."""

    features: Features
    index: ClassIndex
    now: datetime | None
    binding_timeout_s: float

    def find_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return a claim."""

    def special_claims(self, pod: Pod) -> Iterable[ResourceClaim]:
        """Return the claims for the pod's extended resources that are left over."""
        ...


def find_uses(pod: Pod, known: Known) -> tuple[Use, ...] | Waiting:
    """Return the claims that the pod names, or what it waits for before it is tried."""
    uses = uses_of(pod, known.find_claim, known.features.claims)
    return Waiting(uses.reason) if isinstance(uses, Refused) else uses


def claim_needs(pod: Pod, uses: tuple[Use, ...], known: Known) -> ClaimNeeds | Obstacle | None:
    """Return what the claims of the pod need; None if it has none and needs none."""
    extended = extended_needs(pod, known.index) if known.features.extended_resources else {}
    if not uses and not extended:
        return None
    special = _special(pod, known) if extended else None
    held: list[Held] = []
    wanted: list[ResourceClaim] = []
    for claim in distinct_claims(uses):
        if claim.status.allocation is not None:
            match _held(claim, known):
                case Held() as found:
                    held.append(found)
                case fault:
                    return fault
        else:
            if obstacle := _check_requests(claim, known):
                return obstacle
            wanted.append(claim)
    return ClaimNeeds(
        pod=pod,
        uses=uses,
        held=tuple(held),
        wanted=tuple(wanted),
        special=special,
        extended=extended,
        has_alternatives=known.features.claims.prioritized_list
        and any(r.first_available for use in uses for r in use.claim.spec.devices.requests or ()),
    )


def distinct_claims(uses: Iterable[Use]) -> tuple[ResourceClaim, ...]:
    """Return the claims that entries mean, each once and in the order of the entries."""
    return tuple({use.claim.metadata.name: use.claim for use in uses}.values())


def refusal(text: str) -> Refusal:
    """Return the plugin's no; other pods' leaving never changes it."""
    return Refusal(PLUGIN, (text,), is_unresolvable=True)


def _special(pod: Pod, known: Known) -> ResourceClaim:
    """Return the special claim: one that is left over, or a new one that asks for nothing yet."""
    left_over = next(iter(known.special_claims(pod)), None)
    return left_over or special_claim(pod, uid=f"{pod.metadata.uid}-extended-resources")


def _held(claim: ResourceClaim, known: Known) -> Held | Fault:
    allocation = claim.status.allocation
    assert allocation is not None
    query = None
    if allocation.node_selector is not None:
        query = read_node_selector(allocation.node_selector)
        if query.fault is not None:
            return Fault(PLUGIN, f'running PreFilter plugin "{PLUGIN}": {query.fault}')
    is_watched = known.features.allocator.device_binding_and_status
    return Held(
        claim,
        query,
        any(result.skip_node_operations for result in allocation.devices.results),
        is_watched and must_be_tried_elsewhere(claim, known.now, timeout_s=known.binding_timeout_s),
    )


def _check_requests(claim: ResourceClaim, known: Known) -> Obstacle | None:
    """Refuse a claim that no node can serve: its classes must be there."""
    for request in claim.spec.devices.requests or ():
        if obstacle := _check_request(request, claim, known):
            return obstacle
    return None


def _check_request(request: DeviceRequest, claim: ResourceClaim, known: Known) -> Obstacle | None:
    place = f"resource claim {claim.metadata.namespace}/{claim.metadata.name}"
    if request.exactly is not None:
        return _check_class(request.exactly.device_class_name, request.name, known)
    if not request.first_available:
        return refusal(f"{place}, request {request.name}: unknown request type")
    if not known.features.claims.prioritized_list:
        off = "has subrequests, but the DRAPrioritizedList feature is disabled"
        return refusal(f"{place}, request {request.name}: {off}")
    for alternative in request.first_available:
        name = f"{request.name}/{alternative.name}"
        if obstacle := _check_class(alternative.device_class_name, name, known):
            return obstacle
    return None


def _check_class(class_name: str, request: str, known: Known) -> Obstacle | None:
    if not class_name:
        text = f"request {request}: unsupported request type"
        return Fault(PLUGIN, f'running PreFilter plugin "{PLUGIN}": {text}')
    if known.index.has_class(class_name):
        return None
    return refusal(f"request {request}: device class {class_name} does not exist")
