"""Which devices of a pool can be allocated now, and what speaks against the others.

The allocator decides, pool by pool: the pool is built as nodes see it, and each of its devices is
put to the rules for a request that wants one device and names nothing in particular. Other pools of
a node have no say in that, so every pool is evaluated once, not once per node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from moorage.allocator.errors import AllocationError
from moorage.allocator.features import Features
from moorage.allocator.ledger import Ledger
from moorage.allocator.node_view import NodeView
from moorage.allocator.pool_facts import PoolFacts
from moorage.allocator.pool_slices import PoolSlices
from moorage.allocator.pools import Pool, PoolId, PoolState
from moorage.allocator.problem import Problem
from moorage.allocator.requests import RequestPlan, plan_of
from moorage.allocator.results import node_selector
from moorage.allocator.search import Pick
from moorage.allocator.trace import RejectionCause, causes_against
from moorage.api.core.node import Node
from moorage.api.node_affinity import read_node_selector
from moorage.api.resource.v1 import (
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSlice,
)
from moorage.cel.device import CelFeatures, DeviceCompiler
from moorage.insight.devices.node_selection import NodeIndex, can_skip_operations, node_selection_of

Spot = tuple[str, int]  # a slice, and which of its devices


ANYTHING = ResourceClaim(
    spec=ResourceClaimSpec(
        devices=DeviceClaim(
            requests=(
                DeviceRequest(
                    name="any",
                    exactly=ExactDeviceRequest(
                        device_class_name="any", allocation_mode="ExactCount", count=1
                    ),
                ),
            )
        )
    )
)


class DeviceEvaluation(NamedTuple):
    """What speaks against a device, on the node where the least does; nothing if it is free."""

    causes: tuple[tuple[RejectionCause, str], ...]
    pool: Pool | None  # as that node sees it, if known


class PoolEvaluation(NamedTuple):
    """The allocator's results for a pool."""

    devices: Mapping[Spot, DeviceEvaluation]
    is_seen: bool  # whether some node can use it
    unusable: tuple[tuple[PoolState, str], ...]  # reasons of nodes that see none of its devices
    faults: tuple[str, ...]  # why nodes cannot evaluate it


class PoolEvaluator:
    """Puts the devices of pools to the allocator's rules."""

    def __init__(
        self,
        slices: Iterable[ResourceSlice],
        nodes: NodeIndex,
        ledger: Ledger,
        features: Features,
    ) -> None:
        self._nodes = nodes
        self._ledger = ledger
        self._features = features
        self._compiler = DeviceCompiler(CelFeatures(list_attributes=True))
        self._plan = _plan(features)
        self.slices: dict[PoolId, list[ResourceSlice]] = {}
        for slice_ in slices:
            pool_id = PoolId(slice_.spec.driver, slice_.spec.pool.name)
            self.slices.setdefault(pool_id, []).append(nodes.readable(slice_))
        self._odd_pools = [
            self._pool_slices(pool_id)
            for pool_id, of_pool in self.slices.items()
            if any(map(_is_unreadable, of_pool))
        ]
        self._node_faults: dict[str, str] = {}

    def judge(self, pool_id: PoolId) -> PoolEvaluation:
        """Return what speaks against the devices of a pool."""
        found: dict[Spot, DeviceEvaluation] = {}
        unusable: dict[tuple[PoolState, str], None] = {}
        faults: dict[str, None] = {}
        nodes = self._nodes.representing(self.slices[pool_id])
        for node, pool in self._views(self._parts(pool_id, nodes), faults):
            if pool.state is not PoolState.USABLE:
                unusable[pool.state, pool.reason] = None
                continue
            for spot, judgement in self._judge_spots(node, pool):
                before = found.get(spot)
                if before is None or len(judgement.causes) < len(before.causes):
                    found[spot] = judgement
        return PoolEvaluation(found, bool(nodes), tuple(unusable), tuple(faults))

    def _parts(self, pool_id: PoolId, nodes: Iterable[Node]) -> Iterator[tuple[PoolSlices, Node]]:
        """Yield each node with the slices that matter to it.

        Slices of other nodes are left out where they cannot matter: otherwise a pool over many
        nodes would be evaluated as a whole from each of them.
        """
        if not _is_separable(self.slices[pool_id]):
            whole = self._pool_slices(pool_id)
            yield from ((whole, node) for node in nodes)
            return
        by_node: dict[str | None, list[ResourceSlice]] = {}
        for slice_ in self.slices[pool_id]:
            by_node.setdefault(slice_.spec.node_name, []).append(slice_)
        for node in nodes:
            own = _as_complete(by_node[node.metadata.name], len(self.slices[pool_id]))
            yield _put_together(pool_id, own, self._features), node

    def _pool_slices(self, pool_id: PoolId) -> PoolSlices:
        return _put_together(pool_id, self.slices[pool_id], self._features)

    def _views(
        self, parts: Iterable[tuple[PoolSlices, Node]], faults: dict[str, None]
    ) -> Iterator[tuple[Node, Pool]]:
        """Yield every distinct view that nodes have of a pool; collect why some see nothing."""
        seen: dict[tuple[int, bool, str], Pool] = {}  # also keeps pools, whose ids are the keys
        for slices, node in parts:
            fault = self._fault(node)
            if fault:
                faults[fault] = None
                continue
            pool = slices.seen_by(node)
            if pool is None:
                continue
            chooses = any(spot.slice.spec.per_device_node_selection for spot in pool.published)
            name = node.metadata.name if chooses else ""
            key = (id(pool), can_skip_operations(node), name)
            if key not in seen:
                seen[key] = pool
                yield node, pool

    def _fault(self, node: Node) -> str:
        """Return why nothing can be allocated on a node: a node selector cannot be read."""
        if not self._odd_pools:
            return ""
        name = node.metadata.name
        if name not in self._node_faults:
            self._node_faults[name] = _gathering_fault(self._odd_pools, node)
        return self._node_faults[name]

    def _judge_spots(self, node: Node, pool: Pool) -> Iterator[tuple[Spot, DeviceEvaluation]]:
        facts = PoolFacts(pool, self._features, self._compiler)
        view = NodeView(node, [facts], self._features, self._ledger, [])
        problem = Problem(self._plan, view)
        place = 0
        slice_name = None
        for position, spot in enumerate(view.published):
            name = spot.slice.metadata.name
            place = place + 1 if name == slice_name else 0
            slice_name = name
            causes = causes_against(problem, position)
            if not causes and view.has_odd_selectors:
                causes = _selector_causes(problem, position)
            yield (name, place), DeviceEvaluation(causes, pool)


def _put_together(
    pool_id: PoolId, slices: Iterable[ResourceSlice], features: Features
) -> PoolSlices:
    found = PoolSlices(pool_id, features)
    for version, slice_ in enumerate(slices):
        found.put(slice_.metadata.name, slice_, version)
    return found


def _is_separable(slices: Sequence[ResourceSlice]) -> bool:
    """Return whether nodes need to know only the number of each other's slices."""
    first = slices[0].spec.pool.generation
    return len(slices) > 1 and all(
        slice_.spec.node_name
        and slice_.spec.pool.generation == first
        and slice_.spec.per_device_node_selection is None
        and not slice_.spec.shared_counters
        and not any(device.consumes_counters for device in slice_.spec.devices or ())
        for slice_ in slices
    )


def _as_complete(own: list[ResourceSlice], total: int) -> list[ResourceSlice]:
    """Return the slices of a node, as a complete pool if the whole pool is complete."""
    # Where slices disagree about their number, the first by name counts.
    first = min(own, key=lambda slice_: slice_.metadata.name)
    if first.spec.pool.resource_slice_count != total:
        return own
    return [
        replace(
            slice_,
            spec=replace(
                slice_.spec, pool=replace(slice_.spec.pool, resource_slice_count=len(own))
            ),
        )
        for slice_ in own
    ]


def _plan(features: Features) -> RequestPlan:
    return plan_of([ANYTHING], features=features, classes=lambda _: DeviceClass())


def _selector_causes(problem: Problem, position: int) -> tuple[tuple[RejectionCause, str], ...]:
    """Return why an available device cannot become part of an allocation result."""
    pick = Pick(problem.stages[0][0].request, position)
    try:
        node_selector(problem, [pick], ANYTHING)
    except AllocationError as error:
        return ((RejectionCause.FAULT, str(error).partition(": ")[2]),)
    return ()


def _gathering_fault(pools: Sequence[PoolSlices], node: Node) -> str:
    for pool in pools:
        try:
            pool.seen_by(node)
        except AllocationError as error:
            return str(error)
    return ""


def _is_unreadable(slice_: ResourceSlice) -> bool:
    spec = slice_.spec
    devices = spec.devices or () if spec.per_device_node_selection else ()
    selectors = (spec.node_selector, *(device.node_selector for device in devices))
    return any(
        selector is not None and read_node_selector(selector).fault is not None
        for selector in selectors
    )


# --- devices that no node sees ----------------------------------------------------------


class UnseenDevices:
    """Explains why no node sees some devices of a pool."""

    def __init__(
        self,
        slices: Sequence[ResourceSlice],
        judged: PoolEvaluation,
        nodes: NodeIndex,
        features: Features,
    ) -> None:
        self._slices = slices
        self._judged = judged
        self._nodes = nodes
        self._features = features
        self._newest = max(slice_.spec.pool.generation for slice_ in slices)
        self._gates: dict[str, str] = {}

    def is_replaced(self, slice_: ResourceSlice, device: Device) -> bool:
        """Return whether a newer generation also has a device of this name."""
        return slice_.spec.pool.generation != self._newest and device.name in self._current

    def reason(self, slice_: ResourceSlice, device: Device) -> str:
        """Return why no node sees a device."""
        if gate := self._missing_gate(slice_):
            return f"its slice needs {gate}, which is off"
        generation = slice_.spec.pool.generation
        if generation < self._newest:
            return f"generation {generation} is old: the pool is at {self._newest}"
        place = node_selection_of(device, slice_)
        if not self._nodes.has(place):
            return f"no node is there that it is for: {place}"
        return self._fault_of_pool

    @cached_property
    def _fault_of_pool(self) -> str:
        judged = self._judged
        if judged.faults:
            return judged.faults[0]
        for state, reason in judged.unusable:
            if state is PoolState.INVALID:
                return f"its pool is invalid: {reason}"
        if not judged.unusable:
            return "no node sees it"
        newest = [each for each in self._slices if each.spec.pool.generation == self._newest]
        # Where slices disagree about their number, the first by name counts.
        first = min(newest, key=lambda each: each.metadata.name)
        wanted = first.spec.pool.resource_slice_count
        return f"its pool is incomplete: {len(newest)} of {wanted} slices"

    @cached_property
    def _current(self) -> set[str]:
        return {
            device.name
            for slice_ in self._slices
            if slice_.spec.pool.generation == self._newest
            for device in slice_.spec.devices or ()
        }

    def _missing_gate(self, slice_: ResourceSlice) -> str:
        name = slice_.metadata.name
        if name not in self._gates:
            self._gates[name] = _missing_gate(slice_, self._features)
        return self._gates[name]


def _missing_gate(slice_: ResourceSlice, features: Features) -> str:
    """Return the feature gate that a slice needs and that is off, or ""."""
    spec = slice_.spec
    if not features.partitionable_devices and (
        spec.per_device_node_selection is not None or spec.shared_counters
    ):
        return "DRAPartitionableDevices"
    uses_groups = any(
        consumption.compatibility_groups
        for device in spec.devices or ()
        for consumption in device.consumes_counters
    )
    is_off = uses_groups and not features.compatibility_groups
    return "DRADeviceCompatibilityGroups" if is_off else ""
