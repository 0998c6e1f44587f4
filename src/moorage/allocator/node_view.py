"""The devices that one node sees, in the order in which they are tried.

A position is a device's index in that order; a set of devices is an integer with their bits.
Static results come from the facts of the pools, allocations from the ledger; both are cached as
long as they are valid.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any, NamedTuple

from moorage.allocator.errors import AllocationError
from moorage.allocator.features import Features
from moorage.allocator.ledger import DeviceEntries, Ledger
from moorage.allocator.pool_facts import CapacityRequests, FittingDevices, PoolFacts
from moorage.allocator.pools import PoolState, PublishedDevice, bits, device_matches_node
from moorage.allocator.requests import Requirements
from moorage.allocator.rules.constraints import AttributeTable, DerivedTable
from moorage.allocator.static_rules import StaticCandidates
from moorage.api.core.node import Node
from moorage.api.core.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Device, DeviceToleration, ResourceSlice
from moorage.api.structs import unchecked

NODE_OPERATIONS = "DRAOptionalNodeOperations"
JUDGEMENTS_MAX = 256  # requirements, and attributes, that a view remembers

_shareable = attrgetter("shareable")
_consumers = attrgetter("consumers")
_waiting = attrgetter("waiting")
_skipping = attrgetter("skipping")
_by_device = attrgetter("by_device")
_node_selector = attrgetter("node_selector")


_new_requirement = unchecked(NodeSelectorRequirement)
_new_term = unchecked(NodeSelectorTerm)
_new_selector = unchecked(NodeSelector)


class AllocatedState(NamedTuple):
    """The allocations of the devices that a node sees."""

    whole: int  # devices that have an owner
    shared: int  # devices of which there are shares
    counters: tuple[int | None, ...]  # the remaining amounts of each pool, packed; None: overdrawn
    capacity: Mapping[int, Mapping[str, int]]  # what shares have of a device, in nano
    # By pool, all that have an owner or shares, if the pool has counters or groups.
    devices: tuple[tuple[Device, ...], ...]


class NodeView:
    """The devices of one node."""

    def __init__(
        self,
        node: Node,
        pools: Sequence[PoolFacts],
        features: Features,
        ledger: Ledger,
        versions: list[int],
    ) -> None:
        self.node = node
        self.features = features
        self.ledger = ledger
        self.seen = tuple(facts.pool for facts in pools)
        self.pools = tuple(f for f in pools if f.pool.state is PoolState.USABLE)
        self.is_invalid = any(pool.state is PoolState.INVALID for pool in self.seen)
        self.changes = 0  # of slices, when the view was last found to be current
        self._versions = versions
        self.offsets: Sequence[int] = (0,)
        self.devices: Sequence[Device] = ()
        if len(self.pools) == 1:
            self.devices = self.pools[0].pool.devices
        else:
            self.offsets = [0, *accumulate([facts.size for facts in self.pools])][:-1]
            self.devices = [device for facts in self.pools for device in facts.pool.devices]
        self.all = (1 << len(self.devices)) - 1
        self.shareable = self._joined(_shareable)  # devices that several claims may use at once
        self.consumers = self._joined(_consumers)  # that take something of shared counters
        self.waiting = self._joined(_waiting)  # that make a pod wait for conditions
        self.skipping = self._joined(_skipping)  # whose agent must leave out some operations
        self.by_device = self._joined(_by_device)  # with a node selection of their own
        self._static: dict[Requirements, StaticCandidates] = {}
        self._fitting: dict[CapacityRequests, FittingDevices] = {}
        self._tables: dict[tuple[str, str | None], AttributeTable] = {}
        self._taken = AllocatedState(0, 0, (), {}, ())
        self._taken_versions: Sequence[int] = ()
        self._taken_changes = -1
        self._published: tuple[PublishedDevice, ...] | None = None
        self._this_node: NodeSelector | None = None
        self._has_odd_selectors: bool | None = None
        self._node_matches: tuple[int, dict[int, str]] | None = None
        # Caches of others that live as long as the view, without references to it.
        self.hopeless: dict[
            Any, AllocatedState
        ] = {}  # plans without a solution while this is taken
        self.takes: dict[Requirements, Mapping[int, int]] = {}

    def shows(self, node: Node, versions: list[int]) -> bool:
        """Return whether the view shows this node with these pools."""
        return self._versions == versions and (node is self.node or node == self.node)

    @property
    def published(self) -> tuple[PublishedDevice, ...]:
        """The devices, each with its slice."""
        if self._published is None:
            listed = [entry for facts in self.pools for entry in facts.pool.published]
            self._published = tuple(listed)
        return self._published

    def slice_of(self, position: int) -> ResourceSlice:
        """Return the slice that publishes a device."""
        number = self.pool_of(position)
        return self.pools[number].pool.slice_of(position - self.offsets[number])

    def device_id(self, position: int) -> str:
        """Return the full name of a device."""
        pool = self.pools[self.pool_of(position)].pool
        return f"{pool.id}/{self.devices[position].name}"

    def pool_of(self, position: int) -> int:
        """Return which pool a device is in."""
        return bisect_right(self.offsets, position) - 1 if len(self.offsets) > 1 else 0

    @property
    def this_node(self) -> NodeSelector:
        """The selector that matches this node only."""
        if self._this_node is None:
            requirement = _new_requirement(
                key="metadata.name", operator="In", values=(self.node.metadata.name,)
            )
            term = _new_term(match_fields=(requirement,))
            self._this_node = _new_selector(node_selector_terms=(term,))
        return self._this_node

    @property
    def has_odd_selectors(self) -> bool:
        """Whether some device has a node selector that no result can express."""
        if self._has_odd_selectors is None:
            self._has_odd_selectors = self._finds_odd_selectors()
        return self._has_odd_selectors

    def _finds_odd_selectors(self) -> bool:
        slices = [slice_ for facts in self.pools for slice_ in facts.pool.slices]
        selectors = [
            *[slice_.spec.node_selector for slice_ in slices],
            *(map(_node_selector, self.devices) if self.by_device else ()),
        ]
        return any(
            selector is not None and len(selector.node_selector_terms or ()) > 1
            for selector in selectors
        )

    # --- static ---------------------------------------------------------------------------------

    def static(self, requirements: Requirements) -> StaticCandidates:
        """Return the devices that the static rules admit."""
        found = self._static.get(requirements)
        if found is None:
            found = StaticCandidates(self, requirements)
            if len(self._static) >= JUDGEMENTS_MAX:
                self._static.clear()
            self._static[requirements] = found
        return found

    def table(self, attribute: str, expression: str | None) -> AttributeTable:
        """Return the values of an attribute: published, or derived by an expression."""
        key = (attribute, expression)
        found = self._tables.get(key)
        if found is None:
            if expression is not None:
                found = DerivedTable(attribute, expression, self)
            elif len(self.pools) == 1:
                found = self.pools[0].table(attribute)
            else:
                found = AttributeTable(with_lists=self.features.list_type_attributes)
                for facts, offset in zip(self.pools, self.offsets, strict=True):
                    found.add_table(facts.table(attribute), offset)
            if len(self._tables) >= JUDGEMENTS_MAX:
                self._tables.clear()
            self._tables[key] = found
        return found

    def is_cheap(self, selector: str) -> bool:
        """Return whether it costs little to ask many devices for a selector at once."""
        return not self.pools or self.pools[0].selector(selector).is_cheap

    def tolerated(self, tolerations: tuple[DeviceToleration, ...]) -> int:
        """Return the devices without a blocking taint that the tolerations do not cover."""
        return self._joined(lambda facts: facts.tolerated(tolerations))

    @property
    def can_skip_operations(self) -> bool:
        """Whether the node can leave out operations that some devices have none of."""
        features = self.node.status.declared_features
        return self.features.optional_node_operations and NODE_OPERATIONS in features

    @property
    def node_matches(self) -> tuple[int, dict[int, str]]:
        """The devices whose own node selection selects this node, and errors."""
        if self._node_matches is None:
            self._node_matches = self._match_node()
        return self._node_matches

    def _match_node(self) -> tuple[int, dict[int, str]]:
        matching = 0
        unreadable: dict[int, str] = {}
        for position in bits(self.by_device):
            device = self.devices[position]
            try:
                chosen = device_matches_node(device, self.node)
            except AllocationError as error:
                unreadable[position] = str(error)
                continue
            matching |= chosen << position
        return matching, unreadable

    def is_for_node(self, position: int) -> bool:
        """Return whether a device with a node selection of its own selects this node."""
        return bool(self.node_matches[0] >> position & 1)

    def fitting(self, amounts: CapacityRequests) -> FittingDevices:
        """Return the devices whose whole capacity can serve the request."""
        if len(self.pools) == 1:
            return self.pools[0].fitting(amounts)
        found = self._fitting.get(amounts)
        if found is None:
            enough = 0
            consumed: dict[int, Mapping[str, Quantity]] = {}
            faults: dict[int, str] = {}
            for facts, offset in zip(self.pools, self.offsets, strict=True):
                fitting = facts.fitting(amounts)
                enough |= fitting.yes << offset
                for position, takes in fitting.consumed.items():
                    consumed[position + offset] = takes
                for position, text in fitting.faults.items():
                    faults[position + offset] = text
            if len(self._fitting) >= JUDGEMENTS_MAX:
                self._fitting.clear()
            found = self._fitting[amounts] = FittingDevices(enough, consumed, faults)
        return found

    def _joined(self, mask: Callable[[PoolFacts], int]) -> int:
        if len(self.pools) == 1:
            return mask(self.pools[0])
        joined = 0
        for facts, offset in zip(self.pools, self.offsets, strict=True):
            joined |= mask(facts) << offset
        return joined

    # --- taken ----------------------------------------------------------------------------------

    @property
    def allocated(self) -> AllocatedState:
        """The present allocations, from the ledger."""
        changes = self.ledger.changes
        if changes != self._taken_changes:
            self._taken_changes = changes
            versions = [self.ledger.version(facts.pool.id) for facts in self.pools]
            if versions != self._taken_versions:
                before = self._taken_versions or [0] * len(versions)
                self._taken = self._read_ledger(self._taken, before)
                self._taken_versions = versions
        return self._taken

    def _read_ledger(self, before: AllocatedState, versions: Sequence[int]) -> AllocatedState:
        """Return the present allocations: what changed since these versions of the pools is new."""
        ledger = self.ledger
        whole, shared = before.whole, before.shared
        capacity = dict(before.capacity)
        for position, entries in self._changed(versions):
            bit = 1 << position
            whole &= ~bit
            if shared & bit:
                shared ^= bit
                del capacity[position]
            if entries is None:
                continue
            if ledger.has_owner(entries):
                whole |= bit
                if len(entries.listed) == 1:
                    continue  # as most often
            if ledger.has_shares(entries):
                shared |= bit
                capacity[position] = entries.consumed
        devices = tuple(map(self._counted_devices, self.pools))
        counters = [
            None if facts.counters is None else facts.counters.left(taken)
            for facts, taken in zip(self.pools, devices, strict=True)
        ]
        return AllocatedState(whole, shared, tuple(counters), capacity, devices)

    def _changed(self, versions: Sequence[int]) -> Iterator[tuple[int, DeviceEntries | None]]:
        """Yield the devices whose entries changed since these versions, and the entries now."""
        for facts, offset, version in zip(self.pools, self.offsets, versions, strict=True):
            pool_id = facts.pool.id
            names = self.ledger.changed_since(pool_id, version)
            if not names and names is not None:
                continue
            positions, entries = facts.positions, self.ledger.taken(pool_id)
            for name in positions if names is None else names:
                place = positions.get(name)
                if place is not None:
                    yield place + offset, entries.get(name)

    def _counted_devices(self, facts: PoolFacts) -> tuple[Device, ...]:
        """Return the allocated devices of a pool, if their counters or groups count."""
        if facts.counters is None and not facts.has_groups:
            return ()
        entries = self.ledger.taken(facts.pool.id)
        if not entries:
            return ()
        devices = chain(facts.pool.devices, facts.pool.other_devices)
        return tuple([device for device in devices if device.name in entries])
