"""What is true of the devices of a pool whatever is taken, worked out once and kept.

Everything is by position in the pool; a set of devices is an integer with their bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from mooring.allocator.features import Features
from mooring.allocator.pools import Pool
from mooring.allocator.rules.attributes import Table, TableBuilder, published
from mooring.allocator.rules.capacity import CapacityError, consumed_capacity
from mooring.allocator.rules.counters import Counters, counters_of
from mooring.allocator.rules.selectors import Selected, derive, select
from mooring.allocator.rules.taints import blocking_taint
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import DeviceToleration
from mooring.cel.device import DeviceCompiler
from mooring.cel.devices import Devices

# Capacities that a request asks for: name, text and amount. Equal amounts may differ in their text,
# which is what the result has.
Amounts = tuple[tuple[str, str, Quantity], ...]


class Fitting(NamedTuple):
    """The devices whose capacity can serve a request, and what it takes of them."""

    yes: int
    consumed: Mapping[int, Mapping[str, Quantity]]
    faults: Mapping[int, str]


class Facts:
    """What is true of the devices of one pool."""

    def __init__(self, pool: Pool, features: Features, compiler: DeviceCompiler) -> None:
        self.pool = pool
        self._features = features
        self._compiler = compiler
        self._selected: dict[tuple[str, ...], Selected] = {}
        self._tolerated: dict[tuple[DeviceToleration, ...], int] = {}
        self._fitting: dict[Amounts, Fitting] = {}
        self._tables: dict[tuple[str, str | None], Table] = {}

    @property
    def size(self) -> int:
        """The number of devices."""
        return len(self.pool.spots)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Where each device is, by its name."""
        return {spot.device.name: place for place, spot in enumerate(self.pool.spots)}

    @cached_property
    def all(self) -> int:
        """All devices."""
        return (1 << self.size) - 1

    @cached_property
    def devices(self) -> Devices:
        """The devices as expressions see them."""
        devices = [spot.device for spot in self.pool.spots]
        return Devices(self.pool.id.driver, devices, names=self._compiler.extensions)

    @cached_property
    def shareable(self) -> int:
        """The devices that several claims may use at once."""
        if not self._features.consumable_capacity:
            return 0
        return self._mask(s.device.allow_multiple_allocations for s in self.pool.spots)

    @cached_property
    def waiting(self) -> int:
        """The devices that make a pod wait for conditions."""
        return self._mask(s.device.binding_conditions for s in self.pool.spots)

    @cached_property
    def by_device(self) -> int:
        """The devices that say themselves on which nodes they can be used."""
        return self._mask(s.slice.spec.per_device_node_selection for s in self.pool.spots)

    @cached_property
    def skipping(self) -> int:
        """The devices for which the node's agent must leave out some operations."""
        return self._mask(s.slice.spec.skip_node_operations for s in self.pool.spots)

    @cached_property
    def consumers(self) -> int:
        """The devices that take something of shared counters."""
        return self._mask(s.device.consumes_counters for s in self.pool.spots)

    @cached_property
    def counters(self) -> Counters | None:
        """The shared counters; None if no device takes of any."""
        if not (self._features.partitionable_devices and self.consumers):
            return None
        return counters_of(self.pool.spots, self.pool.others, self.pool.counter_sets)

    @cached_property
    def has_groups(self) -> bool:
        """Whether some device may stand beside certain others only."""
        return self._features.compatibility_groups and any(
            consumption.compatibility_groups
            for spot in (*self.pool.spots, *self.pool.others)
            for consumption in spot.device.consumes_counters
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
        """Return the devices without a taint, or with such as the tolerations cover."""
        found = self._tolerated.get(tolerations)
        if found is None:
            found = self._tolerated[tolerations] = self._mask(
                blocking_taint(spot.device, tolerations) is None for spot in self.pool.spots
            )
        return found

    def fitting(self, amounts: Amounts) -> Fitting:
        """Return the devices that have, when nothing is taken of them, what is asked for."""
        found = self._fitting.get(amounts)
        if found is None:
            found = self._fitting[amounts] = self._fit(
                {name: amount for name, _, amount in amounts}
            )
        return found

    def table(self, attribute: str, expression: str | None) -> Table:
        """Return the values of an attribute: published, or derived by an expression."""
        found = self._tables.get((attribute, expression))
        if found is None:
            builder = TableBuilder(with_lists=self._features.list_type_attributes)
            if expression is None:
                driver = self.pool.id.driver
                for position, spot in enumerate(self.pool.spots):
                    builder.add(position, published(spot.device, driver, attribute))
            else:
                ids = {n: f"{self.pool.id}/{s.device.name}" for n, s in enumerate(self.pool.spots)}
                derive(attribute, expression, self.devices, ids, builder, compiler=self._compiler)
            found = self._tables[attribute, expression] = builder.table()
        return found

    def _fit(self, requests: Mapping[str, Quantity]) -> Fitting:
        yes = 0
        consumed: dict[int, Mapping[str, Quantity]] = {}
        faults: dict[int, str] = {}
        fractional = self._features.fractional_capacity_range
        for position, spot in enumerate(self.pool.spots):
            try:
                takes = consumed_capacity(requests, spot.device.capacity, fractional=fractional)
            except CapacityError as fault:
                faults[position] = str(fault)
                continue
            if takes is not None:
                yes |= 1 << position
                consumed[position] = takes
        return Fitting(yes, consumed, faults)

    def _mask(self, flags: Iterable[object]) -> int:
        mask = 0
        bit = 1
        for flag in flags:
            if flag:
                mask |= bit
            bit <<= 1
        return mask
