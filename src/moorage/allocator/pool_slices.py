"""The slices of a pool, and the pool that they make for a node.

    # targeting: slices whose devices the node may use
    # others: slices of the same pool and generation that are for other nodes

A pool is complete when all its slices of the newest generation exist, including those for other
nodes; none of its devices is allocated before. A pool that contradicts itself is invalid. Both are
kept, because `All` must not ignore them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from moorage.allocator.errors import AllocationError
from moorage.allocator.features import Features
from moorage.allocator.pools import (
    NO_COUNTERS,
    Pool,
    PoolId,
    PoolState,
    device_matches_node,
    matches_node,
)
from moorage.api.core.node import Node
from moorage.api.resource.v1 import CounterSet, Device, ResourceSlice

if TYPE_CHECKING:
    from moorage.allocator.pool_facts import PoolFacts

_device_name = attrgetter("name")
_consumes_counters = attrgetter("consumes_counters")


class PoolSlices:
    """All slices of one pool, of whatever generation and node, and the pools they make."""

    __slots__ = (
        *("_built", "_by_node", "_features", "_slices"),
        *("facts", "id", "shared_count", "version"),
    )

    def __init__(self, pool_id: PoolId, features: Features) -> None:
        self.id = pool_id
        self.version = 0
        self.shared_count = 0  # slices that are not for one named node
        self._features = features
        self._slices: dict[str, ResourceSlice] = {}
        self._by_node: _SlicesByNode | None = None  # computed on demand
        self._built: dict[tuple[str, ...], Pool | None] | None = None
        self.facts: dict[Pool, PoolFacts] = {}  # of these pools, kept here by the inventory

    @property
    def is_empty(self) -> bool:
        """Whether no slice is left."""
        return not self._slices

    @property
    def is_shared(self) -> bool:
        """Whether some slice is not for one named node."""
        return self.shared_count > 0

    @property
    def node_names(self) -> Collection[str]:
        """The nodes that slices are named for."""
        return self._indexed().local.keys()

    @property
    def slices(self) -> Collection[ResourceSlice]:
        """All slices, of whatever generation and node."""
        return self._slices.values()

    @property
    def devices_count(self) -> int:
        """How many devices the slices of the newest generation publish."""
        newest = max(slice_.spec.pool.generation for slice_ in self.slices)
        return sum(
            len(slice_.spec.devices or ())
            for slice_ in self.slices
            if slice_.spec.pool.generation == newest
        )

    def put(self, key: str, slice_: ResourceSlice, version: int) -> None:
        """Add a slice; no two changes, of whatever pool, have the same version."""
        self.version = version
        self._forget_pools()
        self._slices[key] = slice_
        if not slice_.spec.node_name:
            self.shared_count += 1

    def remove(self, key: str, version: int) -> None:
        """Forget a slice."""
        self.version = version
        self._forget_pools()
        if not self._slices.pop(key).spec.node_name:
            self.shared_count -= 1

    def _forget_pools(self) -> None:
        self._by_node = self._built = None
        self.facts.clear()

    def seen_by(self, node: Node) -> Pool | None:
        """Return the pool as the node sees it; None if it does not, or only an old one."""
        targeting = dict(_newest([*self.relevant(node)]))
        if not targeting:
            return None
        key = tuple(sorted(targeting))
        if self._built is None:
            self._built = {}
        if key not in self._built:
            self._built[key] = self._build(targeting)
        return self._built[key]

    def relevant(self, node: Node) -> Iterator[tuple[str, ResourceSlice]]:
        """Yield the slices with devices that the node may use, of whatever generation."""
        slices = self._indexed()
        for key, slice_ in slices.local.get(node.metadata.name, ()):
            if self._understands(slice_):
                yield key, slice_
        for key, slice_ in slices.shared:
            if self._understands(slice_) and _targets(slice_, node):
                yield key, slice_

    def _indexed(self) -> _SlicesByNode:
        if self._by_node is None:
            local: dict[str, list[tuple[str, ResourceSlice]]] = {}
            shared: list[tuple[str, ResourceSlice]] = []
            for item in self._slices.items():
                node_name = item[1].spec.node_name
                if node_name:
                    local.setdefault(node_name, []).append(item)
                else:
                    shared.append(item)
            self._by_node = _SlicesByNode(local, shared)
        return self._by_node

    def _understands(self, slice_: ResourceSlice) -> bool:
        """Return whether the feature gates that a slice needs are on."""
        spec = slice_.spec
        if not self._features.partitionable_devices and (
            spec.per_device_node_selection is not None or spec.shared_counters
        ):
            return False
        return self._features.compatibility_groups or not _uses_groups(slice_)

    def _build(self, targeting: dict[str, ResourceSlice]) -> Pool | None:
        # If slices disagree about their number, the first by name decides.
        first = min(targeting.values(), key=_name)
        wanted = first.spec.pool.resource_slice_count
        if len(targeting) == wanted:
            return self._pool(targeting.values(), ())
        generation = first.spec.pool.generation
        if any(slice_.spec.pool.generation > generation for slice_ in self._slices.values()):
            return None  # The driver is replacing what this node sees.
        known = {
            key: slice_
            for key, slice_ in self._slices.items()
            if slice_.spec.pool.generation == generation
            and (self._features.compatibility_groups or not _uses_groups(slice_))
        }
        if len(known) != wanted:
            return Pool(self.id, PoolState.INCOMPLETE)
        others = [slice_ for key, slice_ in known.items() if key not in targeting]
        return self._pool(targeting.values(), others)

    def _pool(
        self, targeting: Collection[ResourceSlice], others: Collection[ResourceSlice]
    ) -> Pool:
        sets: Mapping[str, CounterSet] = NO_COUNTERS
        reason = ""
        has_counters = self._features.partitionable_devices
        targeting = sorted(targeting, key=_name)
        others = sorted(others, key=_name)
        if has_counters and any(slice_.spec.shared_counters for slice_ in (*targeting, *others)):
            sets, reason = _counter_sets(sorted((*targeting, *others), key=_name))
            targeting = [s for s in targeting if not s.spec.shared_counters]
            others = [s for s in others if not s.spec.shared_counters]
        pool = Pool(self.id, PoolState.USABLE, slices=targeting, others=others, counter_sets=sets)
        reason = _duplicate_device(pool.devices) or reason
        if has_counters and not reason:
            reason = _bad_consumption(pool.devices, sets) or _bad_consumption(
                pool.other_devices, sets
            )
        return Pool(self.id, PoolState.INVALID, reason=reason) if reason else pool


class _SlicesByNode(NamedTuple):
    """The slices of a pool with their keys: those for one node each, and those for several."""

    local: Mapping[str, Sequence[tuple[str, ResourceSlice]]]
    shared: Sequence[tuple[str, ResourceSlice]]


def _name(slice_: ResourceSlice) -> str:
    return slice_.metadata.name


def _newest(listed: list[tuple[str, ResourceSlice]]) -> list[tuple[str, ResourceSlice]]:
    """Return the slices of the highest generation."""
    if len(listed) <= 1:
        return listed
    newest = max(slice_.spec.pool.generation for _, slice_ in listed)
    return [(key, slice_) for key, slice_ in listed if slice_.spec.pool.generation == newest]


def _uses_groups(slice_: ResourceSlice) -> bool:
    return any(
        consumption.compatibility_groups
        for device in slice_.spec.devices or ()
        for consumption in device.consumes_counters
    )


def _targets(slice_: ResourceSlice, node: Node) -> bool:
    """Return whether the node may use some device of a slice that is for several nodes."""
    spec = slice_.spec
    if spec.all_nodes or spec.node_selector is not None:
        try:
            return matches_node(
                node, node_name=None, all_nodes=spec.all_nodes, selector=spec.node_selector
            )
        except AllocationError as error:
            text = f"failed to perform node selection for slice {_name(slice_)}: {error}"
            raise AllocationError(f"gather pool information: {text}") from None
    if spec.per_device_node_selection:
        return any(_device_targets(device, slice_, node) for device in spec.devices or ())
    return False  # An unknown kind of node selection.


def _device_targets(device: Device, slice_: ResourceSlice, node: Node) -> bool:
    try:
        return device_matches_node(device, node)
    except AllocationError as error:
        text = (
            f"failed to perform node selection for device {device.name} in slice "
            f"{_name(slice_)}: {error}"
        )
        raise AllocationError(f"gather pool information: {text}") from None


# --- invalid pools --------------------------------------------------------------------------------


def _counter_sets(slices: Iterable[ResourceSlice]) -> tuple[dict[str, CounterSet], str]:
    sets: dict[str, CounterSet] = {}
    for slice_ in slices:
        for counter_set in slice_.spec.shared_counters or ():
            if counter_set.name in sets:
                return {}, f"duplicate counter set name {counter_set.name}"
            sets[counter_set.name] = counter_set
    return sets, ""


def _duplicate_device(devices: Sequence[Device]) -> str:
    names = list(map(_device_name, devices))
    if len(set(names)) == len(names):
        return ""
    first = next(name for place, name in enumerate(names) if name in names[:place])
    return f"duplicate device name {first}"


def _bad_consumption(devices: Iterable[Device], sets: Mapping[str, CounterSet]) -> str:
    for consumption in chain.from_iterable(map(_consumes_counters, devices)):
        counter_set = sets.get(consumption.counter_set)
        if counter_set is None:
            return f"counter set {consumption.counter_set} not found"
        for name in consumption.counters:
            if name not in counter_set.counters:
                return f"counter {name} not found in counter set {counter_set.name}"
    return ""
