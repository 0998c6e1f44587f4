"""Facts about the devices of a pool that do not depend on allocations, computed once and kept.

All are by position in the pool; a set of devices is an integer with their bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple, TypeVar

from mooring.allocator.answers import DerivedAnswers, SelectorAnswers
from mooring.allocator.errors import CapacityError
from mooring.allocator.features import Features
from mooring.allocator.pools import Pool, bits
from mooring.allocator.rules.capacity import consumed_capacity
from mooring.allocator.rules.constraints import AttributeTable, published
from mooring.allocator.rules.consumption import Counters, counters_of
from mooring.allocator.taints import blocking_taint
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import DeviceToleration
from mooring.cel.device import DeviceCompiler
from mooring.cel.device_batch import DeviceBatch

EXPRESSIONS_MAX = 512  # of each kind, that a pool remembers

# Requested capacities: name, text and amount. Equal amounts may differ in their text, which the
# result repeats.
CapacityRequests = tuple[tuple[str, str, Quantity], ...]


class FittingDevices(NamedTuple):
    """The devices whose capacity can serve a request, and how much it consumes."""

    yes: int
    consumed: Mapping[int, Mapping[str, Quantity]]
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

    def __init__(self, pool: Pool, features: Features, compiler: DeviceCompiler) -> None:
        self.pool = pool
        self._features = features
        self._compiler = compiler
        self._selectors: dict[str, SelectorAnswers] = {}
        self._derived: dict[str, DerivedAnswers] = {}
        self._tolerated: dict[tuple[DeviceToleration, ...], int] = {}
        self._fitting: dict[CapacityRequests, FittingDevices] = {}
        self._tables: dict[str, AttributeTable] = {}

    @property
    def size(self) -> int:
        """The number of devices."""
        return len(self.pool.published)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The position of each device, by name."""
        return {entry.device.name: place for place, entry in enumerate(self.pool.published)}

    @cached_property
    def all(self) -> int:
        """All devices."""
        return (1 << self.size) - 1

    @cached_property
    def devices(self) -> DeviceBatch:
        """The devices as expressions see them."""
        devices = [entry.device for entry in self.pool.published]
        return DeviceBatch(self.pool.id.driver, devices, names=self._compiler.extensions)

    @cached_property
    def shareable(self) -> int:
        """Devices with allowMultipleAllocations (gate DRAConsumableCapacity)."""
        if not self._features.consumable_capacity:
            return 0
        return self._mask(s.device.allow_multiple_allocations for s in self.pool.published)

    @cached_property
    def waiting(self) -> int:
        """The devices that make a pod wait for conditions."""
        return self._mask(s.device.binding_conditions for s in self.pool.published)

    @cached_property
    def by_device(self) -> int:
        """The devices with a node selection of their own."""
        return self._mask(s.slice.spec.per_device_node_selection for s in self.pool.published)

    @cached_property
    def skipping(self) -> int:
        """The devices for which the node's agent must leave out some operations."""
        return self._mask(s.slice.spec.skip_node_operations for s in self.pool.published)

    @cached_property
    def consumers(self) -> int:
        """The devices that consume shared counters."""
        return self._mask(s.device.consumes_counters for s in self.pool.published)

    @cached_property
    def counters(self) -> Counters | None:
        """The shared counters; None if no device consumes any."""
        if not (self._features.partitionable_devices and self.consumers):
            return None
        return counters_of(self.pool.published, self.pool.others, self.pool.counter_sets)

    @cached_property
    def has_groups(self) -> bool:
        """Whether some device has compatibility groups."""
        return self._features.compatibility_groups and any(
            consumption.compatibility_groups
            for entry in (*self.pool.published, *self.pool.others)
            for consumption in entry.device.consumes_counters
        )

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
        found = self._tolerated.get(tolerations)
        if found is None:
            found = self._tolerated[tolerations] = self._mask(
                blocking_taint(entry.device, tolerations) is None for entry in self.pool.published
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
            found = AttributeTable(with_lists=self._features.list_type_attributes)
            driver = self.pool.id.driver
            for position, entry in enumerate(self.pool.published):
                found.add(position, published(entry.device, driver, attribute))
            _kept(self._tables, attribute, found)
        return found

    def _fit(self, requests: Mapping[str, Quantity]) -> FittingDevices:
        yes = 0
        consumed: dict[int, Mapping[str, Quantity]] = {}
        faults: dict[int, str] = {}
        fractional = self._features.fractional_capacity_range
        for position, entry in enumerate(self.pool.published):
            try:
                takes = consumed_capacity(requests, entry.device.capacity, fractional=fractional)
            except CapacityError as fault:
                faults[position] = str(fault)
                continue
            if takes is not None:
                yes |= 1 << position
                consumed[position] = takes
        return FittingDevices(yes, consumed, faults)

    def _mask(self, flags: Iterable[object]) -> int:
        mask = 0
        bit = 1
        for flag in flags:
            if flag:
                mask |= bit
            bit <<= 1
        return mask


def _kept(cache: dict[str, V], key: str, value: V) -> V:
    """Return the value, and keep it; a cache that is full begins again."""
    if len(cache) >= EXPRESSIONS_MAX:
        cache.clear()
    cache[key] = value
    return value
