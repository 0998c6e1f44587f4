"""Facts about the devices of a pool that do not depend on allocations, computed once and kept.

All are by position in the pool; a set of devices is an integer with their bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from mooring.allocator.errors import CapacityError
from mooring.allocator.features import Features
from mooring.allocator.pools import Pool, bits
from mooring.allocator.rules.capacity import consumed_capacity
from mooring.allocator.rules.constraints import AttributeTable, AttributeTableBuilder, published
from mooring.allocator.rules.consumption import Counters, counters_of
from mooring.allocator.taints import blocking_taint
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import DeviceToleration
from mooring.cel.device import DeviceCompiler
from mooring.cel.device_values import DeviceBatch, with_hint

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


class PoolFacts:
    """Facts about the devices of one pool."""

    def __init__(self, pool: Pool, features: Features, compiler: DeviceCompiler) -> None:
        self.pool = pool
        self._features = features
        self._compiler = compiler
        self._selected: dict[tuple[str, ...], Selected] = {}
        self._tolerated: dict[tuple[DeviceToleration, ...], int] = {}
        self._fitting: dict[CapacityRequests, FittingDevices] = {}
        self._tables: dict[tuple[str, str | None], AttributeTable] = {}

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

    def selected(self, expressions: tuple[str, ...]) -> Selected:
        """Return which devices match all of the expressions."""
        found = self._selected.get(expressions)
        if found is None:
            found = self._selected[expressions] = (
                select(expressions, self.devices, self.all, compiler=self._compiler)
                if expressions
                else Selected(self.all, {})
            )
        return found

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

    def table(self, attribute: str, expression: str | None) -> AttributeTable:
        """Return the values of an attribute: published, or derived by an expression."""
        found = self._tables.get((attribute, expression))
        if found is None:
            builder = AttributeTableBuilder(with_lists=self._features.list_type_attributes)
            if expression is None:
                driver = self.pool.id.driver
                for position, entry in enumerate(self.pool.published):
                    builder.add(position, published(entry.device, driver, attribute))
            else:
                ids = {
                    n: f"{self.pool.id}/{s.device.name}" for n, s in enumerate(self.pool.published)
                }
                derive(attribute, expression, self.devices, ids, builder, compiler=self._compiler)
            found = self._tables[attribute, expression] = builder.table()
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


# --- CEL expressions ------------------------------------------------------------------------------


def select(
    expressions: Iterable[str], devices: DeviceBatch, among: int, *, compiler: DeviceCompiler
) -> Selected:
    """Return which devices match all expressions; each is evaluated for those left before it."""
    yes = among
    faults: dict[int, SelectorFault] = {}
    for number, expression in enumerate(expressions):
        positions = bits(yes)
        compiled = compiler.compile(expression)
        if compiled.error is not None:
            fault = SelectorFault(number, compiled.error, is_compile=True)
            return Selected(0, faults | dict.fromkeys(positions, fault))
        matches = devices.matches(compiled, positions)
        for position, match in zip(positions, matches, strict=True):
            if match is True:
                continue
            yes ^= 1 << position
            if match is not False:
                faults[position] = SelectorFault(number, with_hint(match), is_compile=False)
    return Selected(yes, faults)


def derive(
    attribute: str,
    expression: str,
    devices: DeviceBatch,
    ids: Mapping[int, str],
    builder: AttributeTableBuilder,
    *,
    compiler: DeviceCompiler,
) -> None:
    """Add the value of an expression for each device to a table of the attribute."""
    compiled = compiler.compile(expression, kind="derived")
    if compiled.error is not None:
        for position in ids:
            builder.add_fault(
                position, f"compile derived attribute {attribute} failed: {compiled.error}"
            )
        return
    positions = list(ids)
    values = devices.attributes(compiled, positions)
    for position, value in zip(positions, values, strict=True):
        if isinstance(value, str):
            where = f"attribute {attribute} on device {ids[position]}"
            builder.add_fault(position, f"evaluate derived {where} failed: {value}")
        else:
            builder.add(position, value)
