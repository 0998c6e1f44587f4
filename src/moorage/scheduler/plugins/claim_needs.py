"""The needs of a pod's claims, found and checked once per attempt, independent of the node.

    # allocated: a claim that has devices already; the pod must go where these can be used
    # pending: a claim that has none yet; the node must have devices for it
    # special: the claim for extended resources; its requests depend on the node
    # node resources: CPUs, memory or huge pages of the node that devices represent

A claim with a device that represents node resources is for one pod only; and the node must have the
resources of all claims free, besides the pod's own requests.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple, Protocol

from msgspec import Struct

from moorage.allocator import Allocated, Inventory
from moorage.allocator.pools import device_matches_node
from moorage.api.core.node import Node
from moorage.api.core.pod import NodeAllocatableResourceClaimStatus, Pod
from moorage.api.core.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList
from moorage.api.node_affinity import NodeQuery, read_node_selector
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import AllocationResult, DeviceRequest, ResourceClaim
from moorage.claims import (
    AllocatedClaim,
    ClaimRejection,
    ClaimUse,
    DeviceClassIndex,
    check_pod_level,
    check_unshared,
    claim_statuses,
    extended_needs,
    finder,
    is_mapped,
    pod_requests,
    shortages,
    special_claim,
    uses_of,
)
from moorage.claims.extended_resources import ExtendedNeeds
from moorage.claims.node_allocatable import FindDevice
from moorage.claims.pod_claims import controller_of
from moorage.scheduler.binding_conditions import must_be_reallocated
from moorage.scheduler.errors import CycleError
from moorage.scheduler.features import Features
from moorage.scheduler.framework import (
    DYNAMIC_RESOURCES,
    PluginError,
    PluginStatus,
    Unschedulable,
)
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins.registry import Profile
from moorage.scheduler.pod_signature import pod_key
from moorage.scheduler.resources import ResourceAmounts

NODE_OPERATIONS = "DRAOptionalNodeOperations"

ClaimKey = tuple[str, str]  # namespace, name
NodeResources = tuple[NodeAllocatableResourceClaimStatus, ...]


class AssumedClaim(NamedTuple):
    """A claim that `reserve` gave to pods and that is not written yet: how it was before that."""

    before: ResourceClaim
    pods: frozenset[str]  # keys of those that have not been released


class AllocatedNeed(Struct, frozen=True):
    """A claim with devices, and where these can be used; None for everywhere."""

    claim: ResourceClaim
    query: NodeQuery | None
    needs_node_operations: bool  # only where the kubelet can do without the driver
    is_lost: bool  # its devices failed, or took too long: it must be allocated again

    def is_within_reach(self, node: Node) -> bool:
        """Return whether the devices can be used on a node."""
        metadata = node.metadata
        if self.query is not None and not self.query.matches(metadata.name, metadata.labels):
            return False
        return not self.needs_node_operations or NODE_OPERATIONS in node.status.declared_features


class ClaimNeeds(Struct, frozen=True):
    """The claims of one pod; a claim that several entries name counts once."""

    pod: Pod
    uses: tuple[ClaimUse, ...] = ()  # by entry
    allocated: tuple[AllocatedNeed, ...] = ()
    pending: tuple[ResourceClaim, ...] = ()  # without the special one
    special: ResourceClaim | None = None
    extended: ExtendedNeeds = {}
    has_alternatives: bool = False  # then the choice made on a node counts in its score

    @property
    def key(self) -> Hashable:
        """A key that distinguishes allocated claims; pending ones have a plan of their own."""
        return tuple(
            [(each.query, each.needs_node_operations, each.is_lost) for each in self.allocated]
        )


class Waiting(Struct, frozen=True):
    """The pod is not tried before this is over; Kubernetes reports nothing."""

    text: str


class ClaimContext(Protocol):
    """The parts of the cluster that the plugin reads."""

    features: Features
    index: DeviceClassIndex
    inventory: Inventory
    now: datetime | None

    @property
    def assumed_claims(self) -> Mapping[ClaimKey, AssumedClaim]:
        """Claims that pods were given and that are not written yet."""

    def profile_for(self, pod: Pod) -> Profile:
        """Return the profile of a pod."""
        ...

    def find_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return a claim."""

    def special_claims(self, pod: Pod) -> Iterable[ResourceClaim]:
        """Return the claims for the pod's extended resources that are left over."""
        ...

    def node(self, name: str) -> Node:
        """Return a node."""
        ...

    def mark_full(self, name: str) -> None:
        """Remember that a node has no free device."""


def claim_key(claim: ResourceClaim) -> ClaimKey:
    """Return the namespace and name of a claim."""
    return claim.metadata.namespace, claim.metadata.name


def distinct_claims(uses: Iterable[ClaimUse]) -> tuple[ResourceClaim, ...]:
    """Return the claims of entries, each once and in the order of the entries."""
    return tuple({use.claim.metadata.name: use.claim for use in uses}.values())


class OwnedClaims:
    """The claims that have a controller, by its uid."""

    def __init__(self) -> None:
        self._claims: dict[str, set[ClaimKey]] = {}

    def of(self, uid: str) -> Iterable[ClaimKey]:
        """Return the claims of a controller."""
        return self._claims.get(uid, ())

    def replace(self, before: ResourceClaim | None, claim: ResourceClaim | None) -> None:
        """Take in the newer version of a claim, a new one, or that it is gone."""
        if before is not None and (owner := controller_of(before.metadata)) is not None:
            owned = self._claims[owner.uid]
            owned.discard(claim_key(before))
            if not owned:
                del self._claims[owner.uid]
        if claim is not None and (owner := controller_of(claim.metadata)) is not None:
            self._claims.setdefault(owner.uid, set()).add(claim_key(claim))


def rejection(text: str) -> Unschedulable:
    """Return the plugin's status that removing other pods never changes."""
    return Unschedulable(DYNAMIC_RESOURCES, (text,), is_unresolvable=True)


# --- PreFilter ------------------------------------------------------------------------------------


def find_uses(pod: Pod, context: ClaimContext) -> tuple[ClaimUse, ...] | Waiting:
    """Return the claims that the pod names, or what it must wait for first."""
    uses = uses_of(pod, context.find_claim, context.features.claims)
    return Waiting(uses.reason) if isinstance(uses, ClaimRejection) else uses


def claim_needs(
    pod: Pod, uses: tuple[ClaimUse, ...], context: ClaimContext
) -> ClaimNeeds | PluginStatus | None:
    """Return the needs of the pod's claims; None if it has none and needs none."""
    extended = extended_needs(pod, context.index) if context.features.extended_resources else {}
    if not uses and not extended:
        return None
    special = None
    if extended:
        left_over = next(iter(context.special_claims(pod)), None)
        special = left_over or special_claim(pod, uid=f"{pod.metadata.uid}-extended-resources")
    allocated: list[AllocatedNeed] = []
    pending: list[ResourceClaim] = []
    for claim in distinct_claims(uses):
        if claim.status.allocation is not None:
            match _allocated(pod, claim, claim.status.allocation, context):
                case AllocatedNeed() as found:
                    allocated.append(found)
                case error:
                    return error
        else:
            for request in claim.spec.devices.requests or ():
                if status := _check_request(request, claim, context):
                    return status
            pending.append(claim)
    return ClaimNeeds(
        pod=pod,
        uses=uses,
        allocated=tuple(allocated),
        pending=tuple(pending),
        special=special,
        extended=extended,
        has_alternatives=context.features.claims.prioritized_list
        and any(r.first_available for use in uses for r in use.claim.spec.devices.requests or ()),
    )


def _allocated(
    pod: Pod, claim: ResourceClaim, allocation: AllocationResult, context: ClaimContext
) -> AllocatedNeed | PluginError:
    query = None
    if allocation.node_selector is not None:
        query = read_node_selector(allocation.node_selector)
        if query.fault is not None:
            return _pre_filter_error(query.fault)
    is_watched = context.features.allocator.device_binding_and_status
    timeout_s = context.profile_for(pod).binding_timeout_s
    return AllocatedNeed(
        claim,
        query,
        any(result.skip_node_operations for result in allocation.devices.results),
        is_watched and must_be_reallocated(claim, context.now, timeout_s=timeout_s),
    )


def _check_request(
    request: DeviceRequest, claim: ResourceClaim, context: ClaimContext
) -> PluginStatus | None:
    """Reject a request that no node can serve: its classes must exist."""
    place = f"resource claim {claim.metadata.namespace}/{claim.metadata.name}"
    if request.exactly is not None:
        return _check_class(request.exactly.device_class_name, request.name, context)
    if not request.first_available:
        return rejection(f"{place}, request {request.name}: unknown request type")
    if not context.features.claims.prioritized_list:
        off = "has subrequests, but the DRAPrioritizedList feature is disabled"
        return rejection(f"{place}, request {request.name}: {off}")
    for alternative in request.first_available:
        name = f"{request.name}/{alternative.name}"
        if status := _check_class(alternative.device_class_name, name, context):
            return status
    return None


def _check_class(class_name: str, request: str, context: ClaimContext) -> PluginStatus | None:
    if not class_name:
        return _pre_filter_error(f"request {request}: unsupported request type")
    if context.index.has_class(class_name):
        return None
    return rejection(f"request {request}: device class {class_name} does not exist")


def _pre_filter_error(text: str) -> PluginError:
    return PluginError(DYNAMIC_RESOURCES, f'running PreFilter plugin "{DYNAMIC_RESOURCES}": {text}')


# --- node resources -------------------------------------------------------------------------------


class NodeClaims:
    """The node resources of one pod's claims."""

    def __init__(self, needs: ClaimNeeds, context: ClaimContext) -> None:
        self._needs = needs
        self._context = context
        is_on = context.features.node_allocatable
        self._is_idle = not (is_on and context.inventory.has_node_resources)
        # By allocated claim: why it cannot be shared, if it represents node resources.
        self.shared: tuple[Unschedulable | None, ...] = (None,) * len(needs.allocated)
        if not self._is_idle and needs.allocated:
            self.shared = tuple([self._find_shared(each.claim) for each in needs.allocated])

    @property
    def key(self) -> Hashable:
        """The inputs of the answers, besides the pod's signature and its pending claims."""
        if self._is_idle:
            return None
        claims = distinct_claims(self._needs.uses)
        names = [claim.metadata.name for claim in claims]
        entries = [
            (use.entry.name, names.index(use.claim.metadata.name)) for use in self._needs.uses
        ]
        allocated = [claim_key(each.claim) for each in self._needs.allocated]
        return (self.shared, tuple(entries), tuple(allocated))

    def check_free(
        self, node: Node, info: NodeInfo, allocated: Allocated | None
    ) -> NodeResources | Unschedulable:
        """Return the node resources of the claims on a node, or those it lacks."""
        if self._is_idle:
            return ()
        pod = self._needs.pod
        statuses = self.coming_with(node, allocated)
        if not statuses:
            return ()
        if (below := check_pod_level(pod, statuses)) is not None:
            return rejection(below.reason)
        short = shortages(
            pod_requests(pod, statuses),
            allocatable=node.status.allocatable,
            requested=_as_list(info.requested),
        )
        if short:
            reasons = tuple(each.reason for each in short)
            is_unresolvable = any(each.is_unresolvable for each in short)
            return Unschedulable(DYNAMIC_RESOURCES, reasons, is_unresolvable)
        return statuses

    def coming_with(self, node: Node, allocated: Allocated | None) -> NodeResources:
        """Return what of the node comes with the claims, free or not."""
        claims = self._claims(allocated)
        find = self._finder([each.allocation for each in claims], node)
        statuses = claim_statuses(self._needs.pod, claims, find)
        if isinstance(statuses, ClaimRejection):
            raise CycleError(f'running "{DYNAMIC_RESOURCES}" filter plugin: {statuses.reason}')
        return statuses

    def _find_shared(self, claim: ResourceClaim) -> Unschedulable | None:
        allocation = claim.status.allocation
        if allocation is None or not is_mapped(allocation, self._finder([allocation])):
            return None
        pod, assumed = self._needs.pod, self._context.assumed_claims.get(claim_key(claim))
        others = () if assumed is None else assumed.pods - {pod_key(pod)}
        features = self._context.features.claims
        shared = check_unshared(claim, pod, features, pending_for=others)
        return None if shared is None else rejection(shared.reason)

    def _claims(self, allocated: Allocated | None) -> list[AllocatedClaim]:
        """Return the pod's claims with the devices that they have or would get."""
        results: dict[ClaimKey, AllocationResult] = {}
        claims: list[ResourceClaim] = [*distinct_claims(self._needs.uses)]
        if allocated is not None:
            # Which share it is does not matter for what comes with it.
            new = allocated.results(lambda: "")
            for claim, result in zip(allocated.claims, new, strict=True):
                results[claim_key(claim)] = result
                if claim_key(claim) not in map(claim_key, claims):
                    claims.append(claim)
        found = []
        for claim in claims:
            key = claim_key(claim)
            allocation = results.get(key) or claim.status.allocation
            if allocation is not None:
                uses = self._needs.uses
                entries = frozenset(u.entry.name for u in uses if claim_key(u.claim) == key)
                found.append(AllocatedClaim(claim, allocation, entries))
        return found

    def _finder(
        self, allocations: Iterable[AllocationResult], node: Node | None = None
    ) -> FindDevice:
        """Return a finder of the devices of allocations, among those of a node if there is one."""
        pools = {(each.driver, each.pool) for one in allocations for each in one.devices.results}
        inventory = self._context.inventory
        slices = [each for pool in pools for each in inventory.slices_of(*pool, node)]
        return finder(slices, lambda each: node is None or device_matches_node(each, node))


def _as_list(requested: ResourceAmounts) -> ResourceList:
    return {
        CPU: Quantity.from_milli(requested.milli_cpu),
        MEMORY: Quantity.from_int(requested.memory),
        EPHEMERAL_STORAGE: Quantity.from_int(requested.ephemeral_storage),
        **{name: Quantity.from_int(amount) for name, amount in requested.others.items()},
    }
