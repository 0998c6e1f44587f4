"""Why a device is in no pool that a node sees."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from mooring.allocator.features import Features
from mooring.allocator.pools import PoolState
from mooring.api.resource.v1 import Device, ResourceSlice
from mooring.insight.devices.judging import Judged
from mooring.insight.devices.places import Nodes, place_of


class Absence:
    """What is wrong with the slices of a pool."""

    def __init__(
        self, slices: Sequence[ResourceSlice], judged: Judged, nodes: Nodes, features: Features
    ) -> None:
        self._slices = slices
        self._judged = judged
        self._nodes = nodes
        self._features = features
        self._newest = max(slice_.spec.pool.generation for slice_ in slices)
        self._gates: dict[str, str] = {}

    def is_replaced(self, slice_: ResourceSlice, device: Device) -> bool:
        """Return whether a newer generation has a device of this name, too."""
        return slice_.spec.pool.generation != self._newest and device.name in self._current

    def reason(self, slice_: ResourceSlice, device: Device) -> str:
        """Return why no node sees a device."""
        if gate := self._missing_gate(slice_):
            return f"its slice needs {gate}, which is off"
        generation = slice_.spec.pool.generation
        if generation < self._newest:
            return f"generation {generation} is old: the pool is at {self._newest}"
        place = place_of(device, slice_)
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
        # Of slices that disagree about their number the first by name is believed.
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
    """Return the gate that is off and without which a slice is not understood, or ""."""
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
