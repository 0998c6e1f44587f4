"""Whether a node has devices for a pod's claims, and which: the filter of dynamic resources.

In Kubernetes' order: extended resources, claims that have devices elsewhere, allocation, room for
the node resources that come with devices; at last, claims whose devices are not to be had here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from mooring.allocator import Allocated, Failed, Unsatisfied, allocate_wanted, prepare
from mooring.allocator.allocation import BUDGET, Budget, Wanted
from mooring.allocator.asks import Plan
from mooring.api.core.node import Node
from mooring.api.resource.v1 import ResourceClaim
from mooring.claims import (
    ClassIndex,
    ExtendedRequests,
    Refused,
    check_fresh,
    extended_requests,
    needs_on_node,
    with_requests,
)
from mooring.claims.consumers import is_at_most_for
from mooring.claims.specialclaim import is_in_memory
from mooring.scheduler import claimresources
from mooring.scheduler.claimneeds import PLUGIN, ClaimNeeds, Held, refusal
from mooring.scheduler.claimresources import NodeClaims, NodeResources
from mooring.scheduler.errors import CycleFault
from mooring.scheduler.filtering import Survey
from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.scores.claims import chosen_score, held_score

CANNOT_ALLOCATE = refusal("cannot allocate all claims")
NOT_AVAILABLE = refusal("resourceclaim not available on the node")


class Grant(Struct, frozen=True):
    """A node has what the claims need: the devices, and what comes with them."""

    answer: Allocated | None = None  # None if there was nothing to allocate
    special: ResourceClaim | None = None  # as this node must serve it
    extended: ExtendedRequests | None = None
    node_resources: NodeResources = ()
    choice_score: int = 0


NOTHING_NEEDED = Grant()


class GivenUp(Struct, frozen=True):
    """A claim that is in the pod's way: without its devices, or without it, another try may do."""

    claim: ResourceClaim
    is_deleted: bool = False  # not only its devices are given back


class Known(claimresources.Known, Protocol):
    """What the check must know besides the pod."""

    index: ClassIndex

    def node(self, name: str) -> Node:
        """Return a node."""
        ...

    def note_full(self, name: str) -> None:
        """Keep in mind that a node has no free device."""


class _Variant(Struct, frozen=True):
    """What is wanted on nodes that serve the same extended resources with devices."""

    wanted: Wanted
    special: ResourceClaim | None = None
    extended: ExtendedRequests | None = None


class ClaimCheck:
    """The check of one pod's claims, asked of one node after the other."""

    def __init__(self, needs: ClaimNeeds, known: Known, budget: Budget = BUDGET) -> None:
        self.needs = needs
        self._refused: Unsatisfied | Failed | None = None
        self._hopeless: tuple[Node, Wanted] | None = None  # refused without asking the allocator
        self._known = known
        self._budget = budget
        self._variants: dict[frozenset[str], _Variant] = {}
        self._plain = _Variant(prepare(known.inventory, needs.wanted))
        self._held_score = held_score(held.claim for held in needs.held)
        self._node_claims = NodeClaims(needs, known)

    @property
    def answer(self) -> Unsatisfied | Failed | None:
        """What the allocator last refused with; None if it never did."""
        if self._hopeless is not None:
            node, wanted = self._hopeless
            answer = allocate_wanted(self._known.inventory, node, wanted, budget=self._budget)
            assert not isinstance(answer, Allocated), "what is hopeless stays so until a change"
            return answer
        return self._refused

    @property
    def needs_free_device(self) -> bool:
        """Whether a node where no device is free will not do, whatever else there is."""
        return self.needs.special is None and self._plain.wanted.plan.needs_free_device

    @property
    def key(self) -> Hashable:
        """What nodes' answers depend on besides the pod's shape: the same for claims alike."""
        special = self.needs.special
        is_stale = special is not None and check_fresh(special) is not None
        return (self._plain.wanted.plan, self.needs.key, is_stale, self._node_claims.key)

    def wanted_on(self, node: Node) -> Sequence[ResourceClaim]:
        """Return the claims that a node would have to find devices for."""
        if self.needs.special is None:
            return self.needs.wanted
        found = self._variant(node)
        return found.wanted.claims if isinstance(found, _Variant) else ()

    def extended_on(self, node: Node) -> ExtendedRequests | None:
        """Return the requests for extended resources that a node would have to serve."""
        found = None if self.needs.special is None else self._variant(node)
        return found.extended if isinstance(found, _Variant) else None

    def coming_with(self, node: Node) -> NodeResources:
        """Return what of a node comes with the devices that it has for the claims."""
        variant = self._plain if self.needs.special is None else self._variant(node)
        if not isinstance(variant, _Variant):
            return ()
        answer = self._allocate(node, variant) if variant.wanted.claims else None
        if isinstance(answer, Refusal):
            return ()
        return self._node_claims.coming_with(node, answer)

    def __call__(self, state: NodeState) -> Grant | Refusal:
        """Return what a node has for the claims, or why it has not; raise CycleFault on a fault."""
        needs = self.needs
        node = self._known.node(state.facts.name)
        variant = self._plain
        if needs.special is not None:
            found = self._variant(node)
            if not isinstance(found, _Variant):
                return found
            variant = found
        is_lost = False
        for held, shared in zip(needs.held, self._node_claims.shared, strict=True):
            if not held.is_within_reach(node):
                is_lost = True
                continue
            if shared is not None:
                return shared
            is_lost = is_lost or held.is_lost
        answer = None
        if variant.wanted.claims:
            allocated = self._allocate(node, variant)
            if isinstance(allocated, Refusal):
                return allocated
            answer = allocated
        resources = self._node_claims.check_room(node, state, answer)
        if isinstance(resources, Refusal):
            return resources
        if is_lost:
            return NOT_AVAILABLE
        score = self._held_score + chosen_score(answer) if needs.has_alternatives else 0
        return Grant(answer, variant.special, variant.extended, resources, score)

    def given_up(self, survey: Survey, *, holder: str | None = None) -> GivenUp | None:
        """Return the first claim in the pod's way that nobody else holds, once all nodes refuse.

        `holder` is who may hold it, by the uid; the pod by default.
        """
        uid = self.needs.pod.metadata.uid if holder is None else holder
        refused = [name for name, said in survey.refusals.items() if said == NOT_AVAILABLE]
        for held in self.needs.held if refused else ():
            claim = held.claim
            if is_at_most_for(claim, uid) and self._is_in_the_way(held, refused):
                return GivenUp(claim)
        special = self.needs.special
        if special is not None and not is_in_memory(special):
            return GivenUp(special, is_deleted=True)
        return None

    def _is_in_the_way(self, held: Held, nodes: Iterable[str]) -> bool:
        known = self._known
        return held.is_lost or any(not held.is_within_reach(known.node(name)) for name in nodes)

    def _variant(self, node: Node) -> _Variant | Refusal | Grant:
        """Return what is wanted on a node with these resources of its own."""
        special = self.needs.special
        assert special is not None
        if (stale := check_fresh(special)) is not None:
            return refusal(stale.reason)
        index = self._known.index
        served = needs_on_node(self.needs.extended, node.status.allocatable, index)
        if isinstance(served, Refused):
            return refusal(served.reason)
        if not served and not self.needs.uses:
            return NOTHING_NEEDED
        key = frozenset(served)
        variant = self._variants.get(key)
        if variant is None:
            extended = extended_requests(self.needs.pod, served, index)
            claim = with_requests(special, extended)
            wanted = prepare(self._known.inventory, (*self.needs.wanted, claim))
            variant = self._variants[key] = _Variant(wanted, claim, extended)
        return variant

    def _is_hopeless(self, node: Node, plan: Plan) -> bool:
        """Return whether it is known that the node has no devices for a plan."""
        inventory = self._known.inventory
        if plan.needs_free_device and inventory.is_full(node):
            self._known.note_full(node.metadata.name)
            return True
        return inventory.is_hopeless(node, plan)

    def _interruption(self) -> str | None:
        """Return why no search can go on, such as that its time is up."""
        return None if self._budget.interrupt is None else self._budget.interrupt()

    def _allocate(self, node: Node, variant: _Variant) -> Allocated | Refusal:
        if self._is_hopeless(node, variant.wanted.plan):
            self._hopeless = (node, variant.wanted)
            return CANNOT_ALLOCATE
        self._hopeless = None
        answer = allocate_wanted(self._known.inventory, node, variant.wanted, budget=self._budget)
        match answer:
            case Allocated():
                return answer
            case Failed(message=message, node_only=False):
                self._refused = answer
                if answer.is_given_up and (cause := self._interruption()) is not None:
                    message = f"node {node.metadata.name}: {cause}"
                raise CycleFault(f'running "{PLUGIN}" filter plugin: {message}')
            case Failed(message=message):
                self._refused = answer
                return refusal(message)
            case _:
                self._refused = answer
                return CANNOT_ALLOCATE
