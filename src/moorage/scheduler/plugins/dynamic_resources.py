"""DynamicResources: whether a node has devices for a pod's claims, and which.

The filter checks in Kubernetes' order: extended resources, claims with devices elsewhere,
allocation, free node resources that come with devices; at last, claims whose devices cannot be used
here. Nodes where claims get earlier alternatives of their lists are better. If no node will do,
PostFilter finds a claim to deallocate.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from msgspec import Struct

from moorage.allocator import Allocated, AllocationFailed, Unsatisfied, allocate_prepared, prepare
from moorage.allocator.allocation import BUDGET, Budget, PreparedClaims
from moorage.allocator.errors import AllocationError
from moorage.allocator.requests import RequestPlan
from moorage.api.core.node import Node
from moorage.api.resource.v1 import ResourceClaim
from moorage.claims import (
    ClaimRejection,
    ExtendedRequests,
    check_fresh,
    extended_requests,
    needs_on_node,
    with_requests,
)
from moorage.claims.extended_resources import is_in_memory
from moorage.claims.reservations import is_at_most_for
from moorage.scheduler.diagnosis import FitDiagnosis
from moorage.scheduler.errors import CycleError
from moorage.scheduler.framework import DYNAMIC_RESOURCES, Unschedulable
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins.claim_needs import (
    AllocatedNeed,
    ClaimContext,
    ClaimNeeds,
    NodeClaims,
    NodeResources,
    rejection,
)

CANNOT_ALLOCATE = rejection("cannot allocate all claims")
NOT_AVAILABLE = rejection("resourceclaim not available on the node")

ALTERNATIVES_MAX = 8


class NodeAllocation(Struct, frozen=True):
    """The devices that a node allocates to the claims, and the node resources they use."""

    allocated: Allocated | None = None  # None if there was nothing to allocate
    special: ResourceClaim | None = None  # as this node must serve it
    extended: ExtendedRequests | None = None
    node_resources: NodeResources = ()
    score: int = 0


NOTHING_NEEDED = NodeAllocation()

FilterClaims = Callable[[NodeInfo], NodeAllocation | Unschedulable]


def no_claims(_node: NodeInfo) -> NodeAllocation:
    """Return that a pod without claims needs nothing."""
    return NOTHING_NEEDED


class ClaimDeallocation(Struct, frozen=True):
    """A claim that keeps a pod from every node: without its devices, or without it, one may do."""

    claim: ResourceClaim
    is_deleted: bool = False  # the claim is deleted with its devices


class _Variant(Struct, frozen=True):
    """The claims to allocate on nodes that serve the same extended resources with devices."""

    wanted: PreparedClaims
    special: ResourceClaim | None = None
    extended: ExtendedRequests | None = None


class ClaimFilter:
    """The filter of one pod's claims, called for one node after the other."""

    def __init__(self, needs: ClaimNeeds, context: ClaimContext, budget: Budget = BUDGET) -> None:
        self.needs = needs
        self._refused: Unsatisfied | AllocationFailed | None = None
        self._hopeless: tuple[Node, PreparedClaims] | None = None  # rejected without a search
        self._context = context
        self._budget = budget
        self._variants: dict[frozenset[str], _Variant] = {}
        self._plain = _Variant(prepare(context.inventory, needs.pending))
        self._allocated_score = sum(_allocated_score(each.claim) for each in needs.allocated)
        self._node_claims = NodeClaims(needs, context)

    @property
    def answer(self) -> Unsatisfied | AllocationFailed | None:
        """The last rejection of the allocator; None if it never did."""
        if self._hopeless is not None:
            node, wanted = self._hopeless
            answer = allocate_prepared(self._context.inventory, node, wanted, budget=self._budget)
            assert not isinstance(answer, Allocated), "a hopeless node stays so until a change"
            return answer
        return self._refused

    @property
    def needs_free_device(self) -> bool:
        """Whether a node without a free device cannot do, whatever else it has."""
        return self.needs.special is None and self._plain.wanted.plan.needs_free_device

    @property
    def key(self) -> Hashable:
        """What nodes' answers depend on besides the pod's signature: the same for claims alike."""
        special = self.needs.special
        is_stale = special is not None and check_fresh(special) is not None
        return (self._plain.wanted.plan, self.needs.key, is_stale, self._node_claims.key)

    def claims_on(self, node: Node) -> Sequence[ResourceClaim]:
        """Return the claims that a node would have to find devices for."""
        if self.needs.special is None:
            return self.needs.pending
        found = self._variant(node)
        return found.wanted.claims if isinstance(found, _Variant) else ()

    def extended_on(self, node: Node) -> ExtendedRequests | None:
        """Return the requests for extended resources that a node would have to serve."""
        found = None if self.needs.special is None else self._variant(node)
        return found.extended if isinstance(found, _Variant) else None

    def coming_with(self, node: Node) -> NodeResources:
        """Return the node resources that come with the devices that a node has for the claims."""
        variant = self._plain if self.needs.special is None else self._variant(node)
        if not isinstance(variant, _Variant):
            return ()
        allocated = self._allocate(node, variant) if variant.wanted.claims else None
        if isinstance(allocated, Unschedulable):
            return ()
        return self._node_claims.coming_with(node, allocated)

    def __call__(self, info: NodeInfo) -> NodeAllocation | Unschedulable:
        """Return what a node allocates to the claims, or why it cannot; may raise CycleError."""
        needs = self.needs
        node = self._context.node(info.facts.name)
        variant = self._plain
        if needs.special is not None:
            found = self._variant(node)
            if not isinstance(found, _Variant):
                return found
            variant = found
        is_lost = False
        for need, shared in zip(needs.allocated, self._node_claims.shared, strict=True):
            if not need.is_within_reach(node):
                is_lost = True
                continue
            if shared is not None:
                return shared
            is_lost = is_lost or need.is_lost
        allocated = None
        if variant.wanted.claims:
            answer = self._allocate(node, variant)
            if isinstance(answer, Unschedulable):
                return answer
            allocated = answer
        resources = self._node_claims.check_free(node, info, allocated)
        if isinstance(resources, Unschedulable):
            return resources
        if is_lost:
            return NOT_AVAILABLE
        score = 0
        if needs.has_alternatives:
            score = self._allocated_score + _chosen_score(allocated)
        return NodeAllocation(allocated, variant.special, variant.extended, resources, score)

    def post_filter(
        self, diagnosis: FitDiagnosis, *, holder: str | None = None
    ) -> ClaimDeallocation | None:
        """Return the first claim to deallocate that nobody else holds, once all nodes reject.

        `holder` is the uid of who may hold it, the pod by default.
        """
        uid = self.needs.pod.metadata.uid if holder is None else holder
        nodes = [name for name, said in diagnosis.node_to_status.items() if said == NOT_AVAILABLE]
        for need in self.needs.allocated if nodes else ():
            if is_at_most_for(need.claim, uid) and self._is_in_the_way(need, nodes):
                return ClaimDeallocation(need.claim)
        special = self.needs.special
        if special is not None and not is_in_memory(special):
            return ClaimDeallocation(special, is_deleted=True)
        return None

    def _is_in_the_way(self, need: AllocatedNeed, nodes: Iterable[str]) -> bool:
        node = self._context.node
        return need.is_lost or any(not need.is_within_reach(node(name)) for name in nodes)

    def _variant(self, node: Node) -> _Variant | Unschedulable | NodeAllocation:
        """Return the claims to allocate on a node that has these resources itself."""
        special = self.needs.special
        assert special is not None
        if (stale := check_fresh(special)) is not None:
            return rejection(stale.reason)
        index = self._context.index
        served = needs_on_node(self.needs.extended, node.status.allocatable, index)
        if isinstance(served, ClaimRejection):
            return rejection(served.reason)
        if not served and not self.needs.uses:
            return NOTHING_NEEDED
        key = frozenset(served)
        variant = self._variants.get(key)
        if variant is None:
            extended = extended_requests(self.needs.pod, served, index)
            claim = with_requests(special, extended)
            wanted = prepare(self._context.inventory, (*self.needs.pending, claim))
            variant = self._variants[key] = _Variant(wanted, claim, extended)
        return variant

    def _is_hopeless(self, node: Node, plan: RequestPlan) -> bool:
        """Return whether it is certain without a search that the node lacks devices for a plan."""
        inventory = self._context.inventory
        try:
            if plan.needs_free_device and inventory.is_full(node):
                self._context.mark_full(node.metadata.name)
                return True
            return inventory.is_infeasible(node, plan)
        except AllocationError:  # The search will report it.
            return False

    def _interruption(self) -> str | None:
        """Return why no search can go on, such as that its time is up."""
        return None if self._budget.interrupt is None else self._budget.interrupt()

    def _allocate(self, node: Node, variant: _Variant) -> Allocated | Unschedulable:
        if self._is_hopeless(node, variant.wanted.plan):
            self._hopeless = (node, variant.wanted)
            return CANNOT_ALLOCATE
        self._hopeless = None
        inventory = self._context.inventory
        answer = allocate_prepared(inventory, node, variant.wanted, budget=self._budget)
        if isinstance(answer, Allocated):
            return answer
        self._refused = answer
        match answer:
            case AllocationFailed(message=message, node_only=False):
                if answer.is_given_up and (cause := self._interruption()) is not None:
                    message = f"node {node.metadata.name}: {cause}"
                raise CycleError(f'running "{DYNAMIC_RESOURCES}" filter plugin: {message}')
            case AllocationFailed(message=message):
                return rejection(message)
        return CANNOT_ALLOCATE


def _chosen_score(allocated: Allocated | None) -> int:
    """Return the sum, over requests with alternatives, of how early the chosen ones are."""
    if allocated is None:
        return 0
    requests = zip(allocated.problem.plan.requests, allocated.solution.chosen, strict=True)
    return sum(
        ALTERNATIVES_MAX - request.subrequests.index(chosen)
        for request, chosen in requests
        if chosen.full_name != request.name
    )


def _allocated_score(claim: ResourceClaim) -> int:
    """Return the same for a claim that has its devices already."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    requests = {result.request for result in results}
    return sum(
        ALTERNATIVES_MAX - index
        for request in claim.spec.devices.requests or ()
        for index, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in requests
    )
