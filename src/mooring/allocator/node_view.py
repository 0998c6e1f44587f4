"""The devices that one node sees, in the order in which they are tried.

A position is a device's index in that order; a set of devices is an integer with their bits.
Static results come from the facts of the pools, allocations from the ledger; both are cached as
long as they are valid.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from mooring.allocator.errors import AllocationError
from mooring.allocator.features import Features
from mooring.allocator.ledger import Ledger, consumed_by_shares
from mooring.allocator.pool_facts import PoolFacts, SelectorFault
from mooring.allocator.pools import PoolState, PublishedDevice, bits, device_matches_node
from mooring.allocator.requests import Requirements
from mooring.allocator.rules.constraints import AttributeTable, AttributeTableBuilder
from mooring.api.core.node import Node
from mooring.api.core.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import Device

NODE_OPERATIONS = "DRAOptionalNodeOperations"

Stage = str  # "class", "request", "node" or "capacity"


class StaticFault(NamedTuple):
    """Why a static rule fails for a device; it only counts if the search reaches the device."""

    stage: Stage
    text: str
    selector: int = 0  # which one, of a stage that has several
    is_compile: bool = False


class StaticCandidates(NamedTuple):
    """The devices that the static rules admit for some requirements."""

    selectable: int  # the devices that are selected
    usable: int  # those that every static rule admits
    faults: Mapping[int, StaticFault]
    consumed: Mapping[int, Mapping[str, Quantity]]  # of shareable or partly taken devices


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
        self.offsets: list[int] = []
        published: list[PublishedDevice] = []
        for facts in self.pools:
            self.offsets.append(len(published))
            published += facts.pool.published
        self.published = tuple(published)
        self.all = (1 << len(published)) - 1
        self._static: dict[Requirements, StaticCandidates] = {}
        self._tables: dict[tuple[str, str | None], AttributeTable] = {}
        self._taken: AllocatedState | None = None
        self._taken_versions: list[int] = []
        self._taken_changes = 0
        # Caches of others that live as long as the view.
        self.problems: dict[Any, Any] = {}
        self.hopeless: dict[
            Any, AllocatedState
        ] = {}  # plans without a solution while this is taken
        self.takes: dict[Requirements, Mapping[int, int]] = {}

    def shows(self, node: Node, versions: list[int]) -> bool:
        """Return whether the view shows this node with these pools."""
        return self._versions == versions and (node is self.node or node == self.node)

    def device_id(self, position: int) -> str:
        """Return the full name of a device."""
        entry = self.published[position]
        spec = entry.slice.spec
        return f"{spec.driver}/{spec.pool.name}/{entry.device.name}"

    def pool_of(self, position: int) -> int:
        """Return which pool a device is in."""
        return bisect_right(self.offsets, position) - 1

    @cached_property
    def this_node(self) -> NodeSelector:
        """The selector that matches this node only."""
        requirement = NodeSelectorRequirement(
            key="metadata.name", operator="In", values=(self.node.metadata.name,)
        )
        term = NodeSelectorTerm(match_fields=(requirement,))
        return NodeSelector(node_selector_terms=(term,))

    @cached_property
    def has_odd_selectors(self) -> bool:
        """Whether some device has a node selector that no result can express."""
        return any(
            selector is not None and len(selector.node_selector_terms or ()) > 1
            for device, slice_ in self.published
            for selector in (device.node_selector, slice_.spec.node_selector)
        )

    # --- static ---------------------------------------------------------------------------------

    @cached_property
    def shareable(self) -> int:
        """The devices that several claims may use at once."""
        return self._joined(lambda facts: facts.shareable)

    @cached_property
    def consumers(self) -> int:
        """The devices that take something of shared counters."""
        return self._joined(lambda facts: facts.consumers)

    def static(self, requirements: Requirements) -> StaticCandidates:
        """Return the devices that the static rules admit."""
        found = self._static.get(requirements)
        if found is None:
            found = self._static[requirements] = self._judge(requirements)
        return found

    def table(self, attribute: str, expression: str | None) -> AttributeTable:
        """Return the values of an attribute: published, or derived by an expression."""
        key = (attribute, expression)
        found = self._tables.get(key)
        if found is None:
            if len(self.pools) == 1:
                found = self.pools[0].table(attribute, expression)
            else:
                builder = AttributeTableBuilder(with_lists=self.features.list_type_attributes)
                for facts, offset in zip(self.pools, self.offsets, strict=True):
                    builder.add_table(facts.table(attribute, expression), offset)
                found = builder.table()
            self._tables[key] = found
        return found

    def _judge(self, requirements: Requirements) -> StaticCandidates:
        faults: dict[int, StaticFault] = {}
        yes = self.all
        if not self.features.device_binding_and_status:
            yes &= ~self._joined(lambda facts: facts.waiting)
        yes = self._select(requirements.class_selectors, "class", yes, faults)
        yes = self._select(requirements.selectors, "request", yes, faults)
        if self._by_device & yes:
            matching, unreadable = self._node_matches
            for position in bits(yes & self._by_device):
                if position in unreadable:
                    faults[position] = StaticFault("node", unreadable[position])
            yes &= matching | ~self._by_device
        consumed: dict[int, Mapping[str, Quantity]] = {}
        if self.features.consumable_capacity:
            yes = self._fit(requirements, yes, consumed, faults)
        return StaticCandidates(yes, yes & self._unhindered(requirements), faults, consumed)

    def _select(
        self,
        expressions: tuple[str, ...],
        stage: Stage,
        yes: int,
        faults: dict[int, StaticFault],
    ) -> int:
        if not expressions:
            return yes
        matching = 0
        for facts, offset in zip(self.pools, self.offsets, strict=True):
            selected = facts.selected(expressions)
            matching |= selected.yes << offset
            for position, fault in selected.faults.items():
                if yes >> position + offset & 1:
                    faults[position + offset] = _selector_fault(stage, fault)
        return yes & matching

    def _fit(
        self,
        requirements: Requirements,
        yes: int,
        consumed: dict[int, Mapping[str, Quantity]],
        faults: dict[int, StaticFault],
    ) -> int:
        enough = 0
        for facts, offset in zip(self.pools, self.offsets, strict=True):
            fitting = facts.fitting(requirements.amounts)
            enough |= fitting.yes << offset
            for position, text in fitting.faults.items():
                if yes >> position + offset & 1:
                    faults[position + offset] = StaticFault("capacity", text)
            for position, amounts in fitting.consumed.items():
                if amounts:
                    consumed[position + offset] = amounts
        return yes & enough

    def _unhindered(self, requirements: Requirements) -> int:
        """Return the devices that a request may use if it selects them."""
        usable = self.all
        if not self.features.partitionable_devices:
            usable &= ~self.consumers
        if not (
            self.features.optional_node_operations
            and NODE_OPERATIONS in self.node.status.declared_features
        ):
            usable &= ~self._joined(lambda facts: facts.skipping)
        if self.features.device_taints:
            usable &= self._joined(lambda facts: facts.tolerated(requirements.tolerations))
        return usable

    @cached_property
    def _by_device(self) -> int:
        return self._joined(lambda facts: facts.by_device)

    @cached_property
    def _node_matches(self) -> tuple[int, dict[int, str]]:
        """Return the devices whose own node selection selects this node, and errors."""
        matching = 0
        unreadable: dict[int, str] = {}
        for position in bits(self._by_device):
            device = self.published[position].device
            try:
                chosen = device_matches_node(device, self.node)
            except AllocationError as error:
                unreadable[position] = str(error)
                continue
            matching |= chosen << position
        return matching, unreadable

    def is_for_node(self, position: int) -> bool:
        """Return whether a device with a node selection of its own selects this node."""
        return bool(self._node_matches[0] >> position & 1)

    def _joined(self, mask: Callable[[PoolFacts], int]) -> int:
        joined = 0
        for facts, offset in zip(self.pools, self.offsets, strict=True):
            joined |= mask(facts) << offset
        return joined

    # --- taken ----------------------------------------------------------------------------------

    @property
    def allocated(self) -> AllocatedState:
        """The present allocations, from the ledger."""
        changes = self.ledger.changes
        if self._taken is None or changes != self._taken_changes:
            self._taken_changes = changes
            versions = [self.ledger.version(facts.pool.id) for facts in self.pools]
            if self._taken is None or versions != self._taken_versions:
                self._taken = self._read_ledger()
                self._taken_versions = versions
        return self._taken

    def _read_ledger(self) -> AllocatedState:
        whole = shared = 0
        counters: list[int | None] = []
        capacity: dict[int, Mapping[str, int]] = {}
        devices: list[tuple[Device, ...]] = []
        ledger = self.ledger
        for facts, offset in zip(self.pools, self.offsets, strict=True):
            entries = ledger.taken(facts.pool.id)
            positions = facts.positions
            for name, found in entries.items():
                place = positions.get(name)
                if place is None:
                    continue
                position = place + offset
                if ledger.has_owner(found):
                    whole |= 1 << position
                if ledger.has_shares(found):
                    shared |= 1 << position
                    capacity[position] = consumed_by_shares(found)
            taken: list[Device] = []
            if entries and (facts.counters is not None or facts.has_groups):
                published = (*facts.pool.published, *facts.pool.others)
                taken = [entry.device for entry in published if entry.device.name in entries]
            counters.append(None if facts.counters is None else facts.counters.left(taken))
            devices.append(tuple(taken))
        return AllocatedState(whole, shared, tuple(counters), capacity, tuple(devices))


def _selector_fault(stage: Stage, fault: SelectorFault) -> StaticFault:
    return StaticFault(stage, fault.text, fault.selector, fault.is_compile)
