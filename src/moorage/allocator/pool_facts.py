"""Facts about the devices of a pool that do not depend on allocations, computed once and kept.

All are by position in the pool; a set of devices is an integer with their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import chain
from operator import attrgetter
from typing import NamedTuple, TypeVar

from moorage.allocator.answers import DerivedAnswers, SelectorAnswers
from moorage.allocator.errors import CapacityError
from moorage.allocator.features import Features
from moorage.allocator.pools import Pool, bits, truth_mask
from moorage.allocator.rules.capacity import are_plain, consumed_capacity, content_key
from moorage.allocator.rules.constraints import AttributeTable, PublishedTables
from moorage.allocator.rules.consumption import Counters, PublishedCounters
from moorage.allocator.taints import blocking_taint
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import DeviceToleration, ResourceSlice
from moorage.cel.device import DeviceCompiler
from moorage.cel.device_batch import DeviceBatch

EXPRESSIONS_MAX = 512  # of each kind, that a pool remembers

# Requested capacities: name, text and amount. Equal amounts may differ in their text, which the
# result repeats.
CapacityRequests = tuple[tuple[str, str, Quantity], ...]


class FittingDevices(NamedTuple):
    """The devices whose capacity can serve a request, and how much it consumes."""

    yes: int
    consumed: Mapping[int, Mapping[str, Quantity]]  # of shareable devices
    faults: Mapping[int, str]


class SelectorFault(NamedTuple):
    """Why a selector fails for a device."""

    selector: int  # which one
    text: str
    is_compile: bool


class Selected(NamedTuple):
    """The devices that all selectors match, and those for which one fails."""

    yes: int
    faults: Mapping[int, SelectorFault]


V = TypeVar("V")


class PoolFacts:
    """Facts about the devices of one pool."""

    __slots__ = (
        "_batch",
        "_compiler",
        "_counters",
        "_derived",
        "_features",
        "_fitting",
        "_has_taints",
        "_positions",
        "_published",
        "_published_counters",
        "_selectors",
        "_tables",
        "_tolerated",
        "all",
        "by_device",
        "consumers",
        "has_groups",
        "pool",
        "shareable",
        "size",
        "skipping",
        "waiting",
    )

    def __init__(
        self,
        pool: Pool,
        features: Features,
        compiler: DeviceCompiler,
        published: PublishedTables | None = None,
        counters: PublishedCounters | None = None,
    ) -> None:
        self.pool = pool
        self._published = published or PublishedTables(with_lists=features.list_type_attributes)
        self._published_counters = counters or PublishedCounters()
        self._features = features
        self._compiler = compiler
        self._selectors: dict[str, SelectorAnswers] = {}
        self._derived: dict[str, DerivedAnswers] = {}
        self._tolerated: dict[tuple[DeviceToleration, ...], int] = {}
        self._fitting: dict[CapacityRequests, FittingDevices] = {}
        self._tables: dict[str, AttributeTable] = {}
        self._batch: DeviceBatch | None = None
        self._positions: Mapping[str, int] | None = None
        self._counters: Counters | None = None
        devices = pool.devices
        self.size = len(devices)
        self.all = (1 << len(devices)) - 1
        self._has_taints = any(map(_taints, devices))
        # Devices with allowMultipleAllocations (gate DRAConsumableCapacity).
        self.shareable = truth_mask(map(_is_shareable, devices))
        if not features.consumable_capacity:
            self.shareable = 0
        # Those that make a pod wait for conditions.
        self.waiting = truth_mask(map(_conditions, devices)) if pool.has_binding_conditions else 0
        # Those with a node selection of their own.
        self.by_device = self._of_slices(_is_by_device)
        # Those for which the node's agent must leave out some operations.
        self.skipping = self._of_slices(_skipped_operations)
        # Those that consume shared counters.
        self.consumers = truth_mask(map(_consumed_counters, devices))
        # Whether some device, or one for other nodes, has compatibility groups.
        self.has_groups = features.compatibility_groups and any(
            consumption.compatibility_groups
            for consumption in chain.from_iterable(
                map(_consumed_counters, chain(devices, pool.other_devices))
            )
        )

    @property
    def positions(self) -> Mapping[str, int]:
        """The position of each device, by name."""
        if self._positions is None:
            self._positions = {each.name: place for place, each in enumerate(self.pool.devices)}
        return self._positions

    @property
    def devices(self) -> DeviceBatch:
        """The devices as expressions see them."""
        if self._batch is None:
            self._batch = DeviceBatch(
                self.pool.id.driver, self.pool.devices, names=self._compiler.extensions
            )
        return self._batch

    @property
    def counters(self) -> Counters | None:
        """The shared counters; None if no device consumes any."""
        if not (self.consumers and self._features.partitionable_devices):
            return None
        if self._counters is None:
            pool = self.pool
            self._counters = self._published_counters.of(
                pool.devices, pool.other_devices, pool.counter_sets
            )
        return self._counters

    def selector(self, expression: str) -> SelectorAnswers:
        """Return which devices an expression selects, as far as they were asked."""
        found = self._selectors.get(expression)
        if found is None:
            compiled = self._compiler.compile(expression)
            found = _kept(self._selectors, expression, SelectorAnswers(compiled, self.devices))
        return found

    def derived(self, expression: str) -> DerivedAnswers:
        """Return the attributes that an expression derives, as far as devices were asked."""
        found = self._derived.get(expression)
        if found is None:
            compiled = self._compiler.compile(expression, kind="derived")
            found = _kept(self._derived, expression, DerivedAnswers(compiled, self.devices))
        return found

    def selected(self, expressions: tuple[str, ...]) -> Selected:
        """Return which devices match all of the expressions; asks every device."""
        yes = self.all
        faults: dict[int, SelectorFault] = {}
        for number, expression in enumerate(expressions):
            answers = self.selector(expression)
            answers.ask(yes)
            is_compile = answers.compiled.error is not None
            for position in bits(yes & answers.faulty):
                faults[position] = SelectorFault(number, answers.faults[position], is_compile)
            yes &= answers.yes
        return Selected(yes, faults)

    def tolerated(self, tolerations: tuple[DeviceToleration, ...]) -> int:
        """Return the devices without a blocking taint that the tolerations do not cover."""
        if not self._has_taints:
            return self.all
        found = self._tolerated.get(tolerations)
        if found is None:
            found = self._tolerated[tolerations] = truth_mask(
                blocking_taint(device, tolerations) is None for device in self.pool.devices
            )
        return found

    def fitting(self, amounts: CapacityRequests) -> FittingDevices:
        """Return the devices whose whole capacity can serve the request."""
        found = self._fitting.get(amounts)
        if found is None:
            found = self._fitting[amounts] = self._fit(
                {name: amount for name, _, amount in amounts}
            )
        return found

    def table(self, attribute: str) -> AttributeTable:
        """Return the values of a published attribute."""
        found = self._tables.get(attribute)
        if found is None:
            pool = self.pool
            found = self._published.table(pool.devices, pool.id.driver, attribute)
            _kept(self._tables, attribute, found)
        return found

    def _fit(self, requests: Mapping[str, Quantity]) -> FittingDevices:
        yes = self.all
        consumed: dict[int, Mapping[str, Quantity]] = {}
        faults: dict[int, str] = {}
        if not requests and not self.shareable and are_plain(map(_capacity, self.pool.devices)):
            return FittingDevices(yes, consumed, faults)
        fractional = self._features.fractional_capacity_range
        known: dict[Hashable, Mapping[str, Quantity] | str | None] = {}
        for position, device in enumerate(self.pool.devices):
            capacity = device.capacity
            is_shareable = self.shareable >> position & 1
            # Most devices of a pool have the same capacity.
            key = content_key(capacity)
            if key not in known:
                try:
                    known[key] = consumed_capacity(requests, capacity, fractional=fractional)
                except CapacityError as fault:
                    known[key] = str(fault)
            takes = known[key]
            if takes is None or isinstance(takes, str):
                yes ^= 1 << position
                if takes is not None:
                    faults[position] = takes
            elif is_shareable and takes:
                consumed[position] = takes
        return FittingDevices(yes, consumed, faults)

    def _of_slices(self, flag: Callable[[ResourceSlice], object]) -> int:
        """Return the devices of the slices that have a flag."""
        mask = 0
        for slice_, start in zip(self.pool.slices, self.pool.starts, strict=True):
            if flag(slice_):
                mask |= (1 << len(slice_.spec.devices or ())) - 1 << start
        return mask


_taints = attrgetter("taints")
_capacity = attrgetter("capacity")
_is_shareable = attrgetter("allow_multiple_allocations")
_conditions = attrgetter("binding_conditions")
_consumed_counters = attrgetter("consumes_counters")
_is_by_device = attrgetter("spec.per_device_node_selection")
_skipped_operations = attrgetter("spec.skip_node_operations")


def _kept(cache: dict[str, V], key: str, value: V) -> V:
    """Return the value, and keep it; a cache that is full begins again."""
    if len(cache) >= EXPRESSIONS_MAX:
        cache.clear()
    cache[key] = value
    return value
