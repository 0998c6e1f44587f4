"""Pools: the devices of one driver that are published together, as one node sees them.

    # targeting: slices whose devices the node may use
    # others: slices of the same pool and generation that are for other nodes
    # position: the index of a device in the order in which devices are tried
    # mask: a set of devices as an integer: bit p is set if position p is in the set

Which pools slices make is decided in `pool_slices`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from itertools import compress, count
from operator import attrgetter
from typing import NamedTuple, cast

from moorage.allocator.errors import AllocationError
from moorage.api.core.node import Node
from moorage.api.core.placement import NodeSelector, NodeSelectorRequirement
from moorage.api.node_affinity import NodeQuery, read_node_selector
from moorage.api.resource.v1 import CounterSet, Device, ResourceSlice


class PoolId(NamedTuple):
    """The identity of a pool."""

    driver: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


class PoolState(Enum):
    """Whether devices of a pool can be allocated."""

    USABLE = "usable"
    INCOMPLETE = "incomplete"
    INVALID = "invalid"


class PublishedDevice(NamedTuple):
    """A device and the slice that publishes it."""

    device: Device
    slice: ResourceSlice


NO_COUNTERS: Mapping[str, CounterSet] = {}
SPARSE_MAX = 4  # positions that are found one by one
_binding_conditions = attrgetter("binding_conditions")


class Pool:
    """A pool as some nodes see it; never changed. Devices are in the order in which they are tried.

    Slices are those with devices, by name; `others` are for other nodes.
    """

    __slots__ = (
        "_other_slices",
        "_others",
        "_published",
        "counter_sets",
        "devices",
        "has_binding_conditions",
        "id",
        "other_devices",
        "reason",
        "slices",
        "starts",
        "state",
    )

    def __init__(
        self,
        pool_id: PoolId,
        state: PoolState,
        *,
        reason: str = "",
        slices: Sequence[ResourceSlice] = (),
        others: Sequence[ResourceSlice] = (),
        counter_sets: Mapping[str, CounterSet] = NO_COUNTERS,
    ) -> None:
        self.id = pool_id
        self.state = state
        self.reason = reason
        self.slices = slices
        self.devices, self.starts = _joined(slices)
        self.other_devices, _ = _joined(others)
        self._other_slices = others
        self._published: tuple[PublishedDevice, ...] | None = None
        self._others: tuple[PublishedDevice, ...] | None = None
        self.counter_sets = counter_sets
        self.has_binding_conditions = any(map(_binding_conditions, self.devices))

    @property
    def order(self) -> tuple[bool, PoolId]:
        """The sort key of pools: those that may make a pod wait come last."""
        return (self.has_binding_conditions, self.id)

    @property
    def published(self) -> tuple[PublishedDevice, ...]:
        """The devices, each with its slice."""
        if self._published is None:
            self._published = _published(self.slices)
        return self._published

    @property
    def others(self) -> tuple[PublishedDevice, ...]:
        """The devices for other nodes, each with its slice."""
        if self._others is None:
            self._others = _published(self._other_slices)
        return self._others

    def slice_of(self, position: int) -> ResourceSlice:
        """Return the slice that publishes a device."""
        if len(self.slices) == 1:
            return self.slices[0]
        return self.slices[bisect_right(self.starts, position) - 1]


def _published(slices: Sequence[ResourceSlice]) -> tuple[PublishedDevice, ...]:
    return tuple(
        [
            PublishedDevice(device, slice_)
            for slice_ in slices
            for device in slice_.spec.devices or ()
        ]
    )


def _joined(slices: Sequence[ResourceSlice]) -> tuple[tuple[Device, ...], Sequence[int]]:
    """Return the devices of slices in order, and the position of the first of each slice."""
    if not slices:
        return (), ()
    if len(slices) == 1:
        return slices[0].spec.devices or (), (0,)
    devices: list[Device] = []
    starts = []
    for slice_ in slices:
        starts.append(len(devices))
        devices += slice_.spec.devices or ()
    return tuple(devices), starts


# --- node selection -------------------------------------------------------------------------------


def matches_node(
    node: Node, *, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None
) -> bool:
    """Return whether devices with this node selection can be used on the node."""
    if node_name:
        return node.metadata.name == node_name
    if all_nodes:
        return True
    if selector is None:
        return False
    query, fault = _read(selector)
    if fault is not None:
        raise AllocationError(f"failed to parse node selector {_go_text(selector)}: {fault}")
    return query.matches(node.metadata.name, node.metadata.labels or {})


def device_matches_node(device: Device, node: Node) -> bool:
    """Return whether a device with a node selection of its own can be used on the node."""
    return matches_node(
        node,
        node_name=device.node_name,
        all_nodes=device.all_nodes,
        selector=device.node_selector,
    )


@lru_cache(maxsize=1024)
def _read(selector: NodeSelector) -> tuple[NodeQuery, str | None]:
    query = read_node_selector(selector)
    return query, query.fault


def _go_text(selector: NodeSelector) -> str:
    """Return the selector as Kubernetes prints it in messages."""
    terms = "".join(
        f"NodeSelectorTerm{{MatchExpressions:{_go_requirements(term.match_expressions)},"
        f"MatchFields:{_go_requirements(term.match_fields)},}},"
        for term in selector.node_selector_terms or ()
    )
    return f"&NodeSelector{{NodeSelectorTerms:[]NodeSelectorTerm{{{terms}}},}}"


def _go_requirements(requirements: tuple[NodeSelectorRequirement, ...]) -> str:
    shown = "".join(
        f"NodeSelectorRequirement{{Key:{requirement.key},Operator:{requirement.operator},"
        f"Values:[{' '.join(requirement.values)}],}},"
        for requirement in requirements
    )
    return f"[]NodeSelectorRequirement{{{shown}}}"


# --- sets of devices ------------------------------------------------------------------------------


_IS_ONE = bytes.maketrans(b"01", b"\x00\x01")
_DIGITS = bytes.maketrans(b"\x00\x01", b"01")


def bits(mask: int) -> Sequence[int]:
    """Return the positions in a set, lowest first."""
    low = mask & -mask
    if not mask & (mask + low):  # one run of positions, as most sets are
        return range(low.bit_length() - 1, mask.bit_length()) if mask else ()
    if mask.bit_count() > SPARSE_MAX:
        return list(compress(count(), bin(mask)[:1:-1].encode().translate(_IS_ONE)))
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def mask_of(positions: Iterable[int]) -> int:
    """Return the set of these positions."""
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


def flags_mask(flags: Sequence[object]) -> int:
    """Return the set of the positions whose flag, a bool, is set."""
    digits = bytes(cast("Sequence[bool]", flags)).translate(_DIGITS)
    return int(digits[::-1], 2) if digits else 0


def truth_mask(values: Iterable[object]) -> int:
    """Return the set of the positions whose value counts as true; most often there is none."""
    listed = list(values)
    return flags_mask(list(map(bool, listed))) if any(listed) else 0
