"""Node resources that come with a pod's claims: whose they are, and whether there is room.

Devices may stand for CPUs, memory or huge pages of the node. A claim with such a device is for
one pod only; and what all claims stand for must be free on the node, besides what the pod asks
for itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Protocol

from mooring.allocator import Allocated, Inventory
from mooring.allocator.nodes import matches_node
from mooring.api.core.node import Node
from mooring.api.core.podstatus import NodeAllocatableResourceClaimStatus
from mooring.api.core.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import AllocationResult, Device, ResourceClaim
from mooring.claims import (
    AllocatedClaim,
    Refused,
    check_pod_level,
    check_unshared,
    claim_statuses,
    finder,
    is_mapped,
    pod_requests,
    shortages,
)
from mooring.claims.nodeallocatable import FindDevice
from mooring.scheduler.amounts import Amounts
from mooring.scheduler.claimneeds import PLUGIN, ClaimNeeds, distinct_claims, refusal
from mooring.scheduler.errors import CycleFault
from mooring.scheduler.features import Features
from mooring.scheduler.holds import Hold
from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.shapes import key_of

NodeResources = tuple[NodeAllocatableResourceClaimStatus, ...]


class Known(Protocol):
    """What must be known besides the pod."""

    features: Features
    inventory: Inventory

    @property
    def holds(self) -> Mapping[tuple[str, str], Hold]:
        """Claims that pods were given, by namespace and name."""


class NodeClaims:
    """The node resources of one pod's claims."""

    def __init__(self, needs: ClaimNeeds, known: Known) -> None:
        self._needs = needs
        self._known = known
        is_on = known.features.node_allocatable
        self._is_idle = not (is_on and known.inventory.has_node_resources)
        # By claim that is held: why it cannot be shared, if it stands for node resources.
        self.shared: tuple[Refusal | None, ...] = (None,) * len(needs.held)
        if not self._is_idle and needs.held:
            self.shared = tuple([self._find_shared(held.claim) for held in needs.held])

    @property
    def key(self) -> Hashable:
        """What the answers depend on, besides the shape of the pod and what its claims want."""
        if self._is_idle:
            return None
        claims = distinct_claims(self._needs.uses)
        names = [claim.metadata.name for claim in claims]
        entries = [
            (use.entry.name, names.index(use.claim.metadata.name)) for use in self._needs.uses
        ]
        held = [_key(held.claim) for held in self._needs.held]
        return (self.shared, tuple(entries), tuple(held))

    def check_room(
        self, node: Node, state: NodeState, answer: Allocated | None
    ) -> NodeResources | Refusal:
        """Return what comes with the claims on a node, or what it has no room for."""
        if self._is_idle:
            return ()
        pod = self._needs.pod
        statuses = self.coming_with(node, answer)
        if not statuses:
            return ()
        if (below := check_pod_level(pod, statuses)) is not None:
            return refusal(below.reason)
        short = shortages(
            pod_requests(pod, statuses),
            allocatable=node.status.allocatable,
            requested=_as_list(state.held),
        )
        if short:
            texts = tuple(each.reason for each in short)
            return Refusal(PLUGIN, texts, any(each.is_unresolvable for each in short))
        return statuses

    def coming_with(self, node: Node, answer: Allocated | None) -> NodeResources:
        """Return what of the node comes with the claims, room for it or not."""
        claims = self._allocated(answer)
        find = self._finder([each.allocation for each in claims], node)
        statuses = claim_statuses(self._needs.pod, claims, find)
        if isinstance(statuses, Refused):
            raise CycleFault(f'running "{PLUGIN}" filter plugin: {statuses.reason}')
        return statuses

    def _find_shared(self, claim: ResourceClaim) -> Refusal | None:
        allocation = claim.status.allocation
        if allocation is None or not is_mapped(allocation, self._finder([allocation])):
            return None
        pod, hold = self._needs.pod, self._known.holds.get(_key(claim))
        others = () if hold is None else hold.pods - {key_of(pod)}
        features = self._known.features.claims
        shared = check_unshared(claim, pod, features, pending_for=others)
        return None if shared is None else refusal(shared.reason)

    def _allocated(self, answer: Allocated | None) -> list[AllocatedClaim]:
        """Return the pod's claims with the devices that they have or would get."""
        given: dict[tuple[str, str], AllocationResult] = {}
        claims: list[ResourceClaim] = [*distinct_claims(self._needs.uses)]
        if answer is not None:
            # Which share it is does not matter for what comes with it.
            results = answer.results(lambda: "")
            for claim, result in zip(answer.claims, results, strict=True):
                given[_key(claim)] = result
                if _key(claim) not in map(_key, claims):
                    claims.append(claim)
        found = []
        for claim in claims:
            allocation = given.get(_key(claim)) or claim.status.allocation
            if allocation is not None:
                entries = frozenset(
                    use.entry.name for use in self._needs.uses if _key(use.claim) == _key(claim)
                )
                found.append(AllocatedClaim(claim, allocation, entries))
        return found

    def _finder(
        self, allocations: Iterable[AllocationResult], node: Node | None = None
    ) -> FindDevice:
        """Return what finds the devices of allocations, among those of a node if it is given."""

        def is_on_node(device: Device) -> bool:
            return node is None or matches_node(
                node,
                node_name=device.node_name,
                all_nodes=device.all_nodes,
                selector=device.node_selector,
            )

        pools = {(each.driver, each.pool) for one in allocations for each in one.devices.results}
        inventory = self._known.inventory
        slices = [each for pool in pools for each in inventory.slices_of(*pool, node)]
        return finder(slices, is_on_node)


def _key(claim: ResourceClaim) -> tuple[str, str]:
    return claim.metadata.namespace, claim.metadata.name


def _as_list(held: Amounts) -> ResourceList:
    return {
        CPU: Quantity.from_milli(held.milli_cpu),
        MEMORY: Quantity.from_int(held.memory),
        EPHEMERAL_STORAGE: Quantity.from_int(held.ephemeral_storage),
        **{name: Quantity.from_int(amount) for name, amount in held.others.items()},
    }
