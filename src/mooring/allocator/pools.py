"""Pools: the devices of one driver that are published together, as one node sees them.

    # targeting: slices whose devices the node may use
    # others: slices of the same pool and generation that are for other nodes

A pool is complete when all its slices of the newest generation are there, also those for other
nodes; while it is not, none of its devices is given away. A pool that contradicts itself is
invalid. Both are kept, because `All` must not ignore them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from mooring.allocator.errors import AllocationError
from mooring.allocator.features import Features
from mooring.allocator.nodes import matches_node
from mooring.api.core.node import Node
from mooring.api.resource.v1 import CounterSet, Device, ResourceSlice


class PoolId(NamedTuple):
    """What names a pool."""

    driver: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


class PoolState(Enum):
    """Whether devices of a pool can be given away."""

    USABLE = "usable"
    INCOMPLETE = "incomplete"
    INVALID = "invalid"


class Spot(NamedTuple):
    """A device and the slice that publishes it."""

    device: Device
    slice: ResourceSlice


@dataclass(frozen=True, eq=False)
class Pool:
    """A pool as some nodes see it. Devices are in the order in which they are tried."""

    id: PoolId
    state: PoolState
    reason: str = ""
    spots: tuple[Spot, ...] = ()
    others: tuple[Spot, ...] = ()
    counter_sets: Mapping[str, CounterSet] = field(default_factory=dict)
    has_binding_conditions: bool = False

    @property
    def order(self) -> tuple[bool, PoolId]:
        """What pools are sorted by: those that may make a pod wait come last."""
        return (self.has_binding_conditions, self.id)


# --- the slices of a pool -----------------------------------------------------------------------


class PoolSlices:
    """All slices of one pool, of whatever generation and node, and the pools they make."""

    def __init__(self, pool_id: PoolId, features: Features) -> None:
        self.id = pool_id
        self.version = 0
        self._features = features
        self._slices: dict[str, ResourceSlice] = {}
        self._local: dict[str, dict[str, ResourceSlice]] = {}  # by node
        self._shared: dict[str, ResourceSlice] = {}
        self._built: dict[tuple[str, ...], Pool | None] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no slice is left."""
        return not self._slices

    @property
    def is_shared(self) -> bool:
        """Whether some slice is not for one named node."""
        return bool(self._shared)

    @property
    def node_names(self) -> Collection[str]:
        """The nodes that slices are named for."""
        return self._local.keys()

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
        """Take in a slice; no two changes, of whatever pool, have the same version."""
        self.version = version
        self._built.clear()
        self._slices[key] = slice_
        node_name = slice_.spec.node_name
        if node_name:
            self._local.setdefault(node_name, {})[key] = slice_
        else:
            self._shared[key] = slice_

    def remove(self, key: str, version: int) -> None:
        """Forget a slice."""
        self.version = version
        self._built.clear()
        node_name = self._slices.pop(key).spec.node_name
        if node_name:
            del self._local[node_name][key]
            if not self._local[node_name]:
                del self._local[node_name]
        else:
            del self._shared[key]

    def seen_by(self, node: Node) -> Pool | None:
        """Return the pool as the node sees it; None if it does not, or only an old one."""
        targeting = dict(_newest(self.relevant(node)))
        if not targeting:
            return None
        key = tuple(sorted(targeting))
        if key not in self._built:
            self._built[key] = self._build(targeting)
        return self._built[key]

    def relevant(self, node: Node) -> Iterator[tuple[str, ResourceSlice]]:
        """Give the slices with devices that the node may use, of whatever generation."""
        for key, slice_ in self._local.get(node.metadata.name, {}).items():
            if self._understands(slice_):
                yield key, slice_
        for key, slice_ in self._shared.items():
            if self._understands(slice_) and _targets(slice_, node):
                yield key, slice_

    def _understands(self, slice_: ResourceSlice) -> bool:
        """Return whether the features that a slice needs are on."""
        spec = slice_.spec
        if not self._features.partitionable_devices and (
            spec.per_device_node_selection is not None or spec.shared_counters
        ):
            return False
        return self._features.compatibility_groups or not _uses_groups(slice_)

    def _build(self, targeting: dict[str, ResourceSlice]) -> Pool | None:
        # Of slices that disagree about their number the first by name is believed.
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
        sets: dict[str, CounterSet] = {}
        reason = ""
        has_counters = self._features.partitionable_devices
        if has_counters:
            sets, reason = _counter_sets(sorted((*targeting, *others), key=_name))
            targeting = [s for s in targeting if not s.spec.shared_counters]
            others = [s for s in others if not s.spec.shared_counters]
        spots, other_spots = _spots(targeting), _spots(others)
        reason = _duplicate_device(spots) or reason
        if has_counters and not reason:
            reason = _bad_consumption(spots, sets) or _bad_consumption(other_spots, sets)
        if reason:
            return Pool(self.id, PoolState.INVALID, reason)
        return Pool(
            self.id,
            PoolState.USABLE,
            spots=spots,
            others=other_spots,
            counter_sets=sets,
            has_binding_conditions=any(spot.device.binding_conditions for spot in spots),
        )


def _name(slice_: ResourceSlice) -> str:
    return slice_.metadata.name


def _spots(slices: Iterable[ResourceSlice]) -> tuple[Spot, ...]:
    return tuple(
        Spot(device, slice_)
        for slice_ in sorted(slices, key=_name)
        for device in slice_.spec.devices or ()
    )


def _newest(
    slices: Iterable[tuple[str, ResourceSlice]],
) -> list[tuple[str, ResourceSlice]]:
    """Return the slices of the highest generation."""
    listed = list(slices)
    newest = max((slice_.spec.pool.generation for _, slice_ in listed), default=0)
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
    return False  # A way of selection that we do not know.


def _device_targets(device: Device, slice_: ResourceSlice, node: Node) -> bool:
    try:
        return matches_node(
            node,
            node_name=device.node_name,
            all_nodes=device.all_nodes,
            selector=device.node_selector,
        )
    except AllocationError as error:
        text = (
            f"failed to perform node selection for device {device.name} in slice "
            f"{_name(slice_)}: {error}"
        )
        raise AllocationError(f"gather pool information: {text}") from None


# --- what makes a pool invalid ------------------------------------------------------------------


def _counter_sets(slices: Iterable[ResourceSlice]) -> tuple[dict[str, CounterSet], str]:
    sets: dict[str, CounterSet] = {}
    for slice_ in slices:
        for counter_set in slice_.spec.shared_counters or ():
            if counter_set.name in sets:
                return {}, f"duplicate counter set name {counter_set.name}"
            sets[counter_set.name] = counter_set
    return sets, ""


def _duplicate_device(spots: Iterable[Spot]) -> str:
    names: set[str] = set()
    for spot in spots:
        if spot.device.name in names:
            return f"duplicate device name {spot.device.name}"
        names.add(spot.device.name)
    return ""


def _bad_consumption(spots: Iterable[Spot], sets: Mapping[str, CounterSet]) -> str:
    for spot in spots:
        for consumption in spot.device.consumes_counters:
            counter_set = sets.get(consumption.counter_set)
            if counter_set is None:
                return f"counter set {consumption.counter_set} not found"
            for name in consumption.counters:
                if name not in counter_set.counters:
                    return f"counter {name} not found in counter set {counter_set.name}"
    return ""
