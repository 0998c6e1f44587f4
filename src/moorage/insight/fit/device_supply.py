"""The devices of all nodes that a request could have, each counted once.

# free: would be allocated to the request now, if it asked for just one device
# countable: a replica takes a known number of whole devices; not so for shared devices and
#   shared claims, for admin access, for requests of all devices, and where device plugins of
#   some nodes serve the request as well
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from moorage.allocator.pools import bits
from moorage.allocator.problem import Problem, Slot
from moorage.api.resource.v1 import POD_CLAIM_ANNOTATION
from moorage.insight.explain.funnel import FITTING, SELECTED, devices_left
from moorage.insight.explain.nodes import NodeProbe
from moorage.scheduler.scheduling_cycle import Attempt

OF_CLAIM = " of claim "


class DeviceSupply(Struct, frozen=True):
    """The devices that one request could have, on all nodes."""

    request: str
    wanted: int  # by one replica; of alternatives, the fewest
    is_countable: bool
    matching: frozenset[str]  # devices that are selected, free or not
    free: Mapping[str, tuple[str, ...]]  # by node; a device of several nodes is the first's

    @property
    def free_count(self) -> int:
        """How many devices are free."""
        return sum(map(len, self.free.values()))


class RequestNames(NamedTuple):
    """The names of the claims and requests of a problem, as the pod has them."""

    claims: Sequence[str]
    resources: Mapping[str, str]  # extended resources, by generated request

    @property
    def is_one(self) -> bool:
        """Whether there is only one claim, so that request names suffice."""
        return len(self.claims) == 1

    def of(self, claim: int, request: str) -> str:
        """Return the name of a request, with its claim where there are several."""
        if request in self.resources and claim == len(self.claims) - 1:
            resource = self.resources[request]
            is_one = list(self.resources.values()).count(resource) == 1
            return resource if is_one else f"{resource} ({request})"
        return request if self.is_one else f"{request}{OF_CLAIM}{self.claims[claim]}"


def names_of(ready: Attempt, node_name: str) -> RequestNames:
    """Return the names of claims and requests in the problem that a pod poses on a node."""
    check = ready.claims
    if check is None:
        return RequestNames((), {})
    extended = check.extended_on(ready.cluster.node(node_name))
    mappings = () if extended is None else extended.mappings
    resources = {each.request_name: each.resource_name for each in mappings}
    metadata = (claim.metadata for claim in NodeProbe(ready).claims(node_name))
    entries = [each.annotations.get(POD_CLAIM_ANNOTATION) or each.name for each in metadata]
    return RequestNames(entries, resources)


class _SupplyBuilder:
    """Collects a supply, node by node."""

    def __init__(self, *, is_countable: bool) -> None:
        self.wanted: int | None = None
        self.is_countable = is_countable
        self.matching: set[str] = set()
        self.free: dict[str, tuple[str, ...]] = {}
        self._seen: set[str] = set()

    def add(
        self, node: str, problem: Problem, stage: Sequence[Slot], left: Sequence[Sequence[int]]
    ) -> None:
        """Add the node's devices for a request and its alternatives."""
        selected = free = 0
        for masks in left:
            selected |= masks[SELECTED]
            free |= masks[FITTING]
        least = min(slot.count for slot in stage)
        self.wanted = least if self.wanted is None else min(self.wanted, least)
        is_odd = any(slot.request.is_admin or slot.request.wants_all for slot in stage)
        if is_odd or selected & problem.view.shareable:
            self.is_countable = False
        names = {position: problem.view.device_id(position) for position in bits(selected | free)}
        self.matching.update([names[position] for position in bits(selected)])
        fresh = [d for d in (names[position] for position in bits(free)) if d not in self._seen]
        self._seen.update(fresh)
        if fresh:
            self.free[node] = tuple(fresh)

    def done(self, request: str, *, is_countable: bool) -> DeviceSupply:
        """Return the supply."""
        wanted = self.wanted or 0
        countable = is_countable and self.is_countable and wanted > 0
        return DeviceSupply(request, wanted, countable, frozenset(self.matching), self.free)


def supplies_of(ready: Attempt, shared: Collection[str] = ()) -> tuple[DeviceSupply, ...]:
    """Return the supply for each request of a pod, some of whose claims are shared."""
    found: dict[str, _SupplyBuilder] = {}
    is_served_otherwise = False  # by a device plugin
    probe = NodeProbe(ready)
    for node in sorted(ready.cluster.snapshot.nodes):
        problem = probe.problem(node)
        if problem is None:
            is_served_otherwise = True
            continue
        left = devices_left(problem)
        names = names_of(ready, node)
        for choice, stage in zip(problem.plan.requests, problem.stages, strict=True):
            is_countable = names.claims[choice.claim] not in shared
            name = names.of(choice.claim, choice.name)
            supply = found.setdefault(name, _SupplyBuilder(is_countable=is_countable))
            supply.add(node, problem, stage, [left[slot.request] for slot in stage])
    return tuple(
        supply.done(name, is_countable=not is_served_otherwise) for name, supply in found.items()
    )


def bound_of(supplies: Sequence[DeviceSupply]) -> int | None:
    """Return how many replicas the free devices would suffice for, if nothing kept them apart."""
    countable = [supply for supply in supplies if supply.is_countable]
    if not countable:
        return None
    together = {device for supply in countable for own in supply.free.values() for device in own}
    wanted = sum(supply.wanted for supply in countable)
    return min(
        [*(supply.free_count // supply.wanted for supply in countable), len(together) // wanted]
    )
