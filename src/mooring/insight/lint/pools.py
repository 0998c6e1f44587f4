"""The slices that were given, as pools: what drivers publish together.

Only slices of the newest generation are members of a pool; those of older ones are left over. Of
slices with the same name the later counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from mooring.allocator.pools import PoolId
from mooring.api.resource.v1 import CounterSet, Device, ResourceSlice


class Home(NamedTuple):
    """A slice, and the place of something in one of its lists."""

    slice: ResourceSlice
    position: int


class Pool:
    """A pool and what its slices say together."""

    def __init__(self, pool_id: PoolId, slices: Iterable[ResourceSlice]) -> None:
        given = sorted(slices, key=lambda slice_: slice_.metadata.name)
        self.id = pool_id
        self.generation = max(slice_.spec.pool.generation for slice_ in given)
        self.slices = tuple(
            slice_ for slice_ in given if slice_.spec.pool.generation == self.generation
        )

    @property
    def first(self) -> ResourceSlice:
        """The first slice by name; of slices that disagree about their number it is believed."""
        return self.slices[0]

    @property
    def slices_wanted(self) -> int:
        """How many slices the pool says it has."""
        return self.first.spec.pool.resource_slice_count

    @cached_property
    def is_complete(self) -> bool:
        """Whether all slices are there: in the whole pool or, for every node, of that node."""
        if len(self.slices) == self.slices_wanted:
            return True
        by_node: defaultdict[str | None, list[ResourceSlice]] = defaultdict(list)
        for slice_ in self.slices:
            by_node[slice_.spec.node_name].append(slice_)
        shared = by_node.pop(None, [])
        return bool(by_node) and all(_is_whole(own, shared) for own in by_node.values())

    @cached_property
    def devices(self) -> dict[str, Home]:
        """The first home of each device by name."""
        homes: dict[str, Home] = {}
        for slice_ in self.slices:
            for i, device in enumerate(slice_.spec.devices or ()):
                homes.setdefault(device.name, Home(slice_, i))
        return homes

    @cached_property
    def counter_sets(self) -> dict[str, Home]:
        """The first home of each counter set by name."""
        homes: dict[str, Home] = {}
        for slice_ in self.slices:
            for i, counter_set in enumerate(slice_.spec.shared_counters or ()):
                homes.setdefault(counter_set.name, Home(slice_, i))
        return homes

    def counter_set(self, name: str) -> CounterSet | None:
        """Return a counter set by its name."""
        home = self.counter_sets.get(name)
        if home is None or home.slice.spec.shared_counters is None:
            return None
        return home.slice.spec.shared_counters[home.position]

    @cached_property
    def counters_consumed(self) -> frozenset[tuple[str, str]]:
        """Every set and counter that some device takes of."""
        return frozenset(
            (consumption.counter_set, counter)
            for _, device in devices_of(self.slices)
            for consumption in device.consumes_counters
            for counter in consumption.counters
        )


def _is_whole(own: list[ResourceSlice], shared: list[ResourceSlice]) -> bool:
    first = min((own[0], *shared[:1]), key=lambda slice_: slice_.metadata.name)
    return len(own) + len(shared) == first.spec.pool.resource_slice_count


def pools_of(slices: Iterable[ResourceSlice]) -> dict[PoolId, Pool]:
    """Return the pools that slices make."""
    named: dict[str | int, ResourceSlice] = {}
    for slice_ in slices:
        named[slice_.metadata.name or len(named)] = slice_
    found: defaultdict[PoolId, list[ResourceSlice]] = defaultdict(list)
    for slice_ in named.values():
        found[pool_id_of(slice_)].append(slice_)
    return {pool_id: Pool(pool_id, members) for pool_id, members in found.items()}


def pool_id_of(slice_: ResourceSlice) -> PoolId:
    """Return what names the pool of a slice."""
    return PoolId(slice_.spec.driver, slice_.spec.pool.name)


def devices_of(slices: Iterable[ResourceSlice]) -> Iterator[tuple[Home, Device]]:
    """Give all devices with their places."""
    for slice_ in slices:
        for i, device in enumerate(slice_.spec.devices or ()):
            yield Home(slice_, i), device
