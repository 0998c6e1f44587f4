"""The writes that make a driver's slices as they should be (pure).

    pools, existing slices ─► plan ─► deletes, then updates, then creates

1. A slice is identified by the index at the start of its name. It is obsolete with an older
   generation, without an index, or with an index that is too high or that another slice has.
2. The others are compared with their desired specs.
3. A single update leaves the generation unchanged. With more writes the generation goes up in all
   slices: then nobody takes old and new ones together for the pool.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.api.resource.v1 import (
    Device,
    DeviceTaint,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.client.writes import Create, Delete, Target, Update
from moorage.driver.driver import Pool
from moorage.driver.errors import InventoryError
from moorage.driver.slice_layout import SliceContent, check_pool, lay_out, selects_per_device
from moorage.validation.equality import semantic_equal

INDEX_WIDTH_MIN = 5
TaintTimes = Mapping[tuple[str, str, str, str], DeviceTaint]  # by device, key, value and effect

_INDEX = re.compile(r"([0-9a-f]+)-", re.IGNORECASE)
_SECOND = timedelta(seconds=1)


class Publisher(Struct, frozen=True):
    """Who publishes, and for which node."""

    driver: str
    node_name: str = ""  # empty: for several nodes
    node_uid: str = ""


class StoredSlice(Struct, frozen=True):
    """A slice that the server did not store as it was sent: fields are missing."""

    sent: ResourceSliceSpec
    stored: ResourceSliceSpec


class SlicePlan(Struct, frozen=True):
    """What to write: first all deletes, then all updates, then all creates."""

    deletes: tuple[Delete, ...] = ()
    updates: tuple[Update, ...] = ()
    creates: tuple[Create, ...] = ()

    def __len__(self) -> int:
        return len(self.deletes) + len(self.updates) + len(self.creates)


def plan(
    pools: Iterable[Pool],
    existing: Iterable[ResourceSlice],
    publisher: Publisher,
    stored: Mapping[str, StoredSlice] = {},  # only read
) -> SlicePlan:
    """Return the writes that make the slices match the pools, or raise InventoryError.

    `existing` are all slices of the driver and node. `stored` has by name those that the server did
    not store as they were sent: they are taken as if it had.
    """
    wanted = check_pools(pools, publisher)
    by_pool: dict[str, list[ResourceSlice]] = {}
    for each in sorted(existing, key=lambda each: each.metadata.name):
        by_pool.setdefault(each.spec.pool.name, []).append(_as_sent(each, stored))
    parts = [_plan_pool(pool, by_pool.pop(name, []), publisher) for name, pool in wanted.items()]
    gone = [_delete(each) for name in sorted(by_pool) for each in by_pool[name]]
    return SlicePlan(
        (*gone, *(each for part in parts for each in part.deletes)),
        tuple(each for part in parts for each in part.updates),
        tuple(each for part in parts for each in part.creates),
    )


def index_of(name: str) -> int | None:
    """Return the index at the start of a slice's name; None if there is none."""
    found = _INDEX.match(name)
    return int(found[1], 16) if found and len(found[1]) <= 16 else None


# --- one pool -------------------------------------------------------------------------------------


def check_pools(pools: Iterable[Pool], publisher: Publisher) -> dict[str, Pool]:
    """Return pools by name, or raise InventoryError for what cannot be published."""
    wanted: dict[str, Pool] = {}
    for each in pools:
        pool = replace(each, name=each.name or publisher.node_name)
        if not pool.name:
            raise InventoryError("a pool that is not of one node needs a name")
        if pool.name in wanted:
            raise InventoryError(f'found duplicate pool "{pool.name}"')
        is_elsewhere = pool.all_nodes or pool.node_selector or selects_per_device(pool)
        if is_elsewhere and publisher.node_name:
            raise InventoryError(
                f'pool "{pool.name}" is for several nodes, and the driver publishes for node '
                f'"{publisher.node_name}" only'
            )
        if not publisher.node_name and not is_elsewhere:
            raise InventoryError(f'pool "{pool.name}" does not say which nodes it is for')
        check_pool(pool)
        wanted[pool.name] = pool
    return wanted


def _plan_pool(pool: Pool, existing: Sequence[ResourceSlice], publisher: Publisher) -> SlicePlan:
    highest = max((each.spec.pool.generation for each in existing), default=0)
    current = _current(existing, highest)
    contents = lay_out(pool, {index: _content(each) for index, each in current.items()})
    width = max(INDEX_WIDTH_MIN, len(f"{len(contents) - 1:x}"))
    current = {
        index: each
        for index, each in current.items()
        if index < len(contents) and each.metadata.name.find("-") == width
    }
    kept = {each.metadata.name for each in current.values()}
    deletes = tuple(_delete(each) for each in existing if each.metadata.name not in kept)
    frame = _frame(pool, publisher, highest, len(contents))
    times = _taint_times(existing)
    specs = [_filled(frame, content, times) for content in contents]
    changed = {i for i, each in current.items() if not is_same_spec(each.spec, specs[i])}
    generation = _next_generation(pool, highest, len(changed), len(contents) - len(current))
    if generation != highest:
        changed = set(current)
        specs = [_at_generation(spec, generation) for spec in specs]
    updates = tuple(Update(replace(current[i], spec=specs[i])) for i in sorted(changed))
    creates = tuple(
        Create(_new(spec, index, width, publisher))
        for index, spec in enumerate(specs)
        if index not in current
    )
    return SlicePlan(deletes, updates, creates)


def _current(existing: Iterable[ResourceSlice], generation: int) -> dict[int, ResourceSlice]:
    """Return the slices that can stay, by index; of several the first by name."""
    current: dict[int, ResourceSlice] = {}
    for each in existing:
        index = index_of(each.metadata.name)
        if each.spec.pool.generation == generation and index is not None:
            current.setdefault(index, each)
    return current


def _next_generation(pool: Pool, highest: int, changed: int, new: int) -> int:
    if pool.generation > highest:
        return pool.generation
    return highest if not new and changed <= 1 else highest + 1


def _content(value: ResourceSlice) -> SliceContent:
    return SliceContent(value.spec.devices or (), value.spec.shared_counters or ())


def _frame(pool: Pool, publisher: Publisher, generation: int, count: int) -> ResourceSliceSpec:
    """Return what all slices of a pool have in common."""
    is_per_device = selects_per_device(pool)
    return ResourceSliceSpec(
        driver=publisher.driver,
        pool=ResourcePool(name=pool.name, generation=generation, resource_slice_count=count),
        node_name=publisher.node_name or None,
        node_selector=pool.node_selector if not is_per_device else None,
        all_nodes=pool.all_nodes or None if not is_per_device else None,
        per_device_node_selection=is_per_device or None,
    )


def _filled(
    frame: ResourceSliceSpec, content: SliceContent, times: TaintTimes
) -> ResourceSliceSpec:
    if content.counters:
        return replace(frame, shared_counters=content.counters)
    return replace(frame, devices=tuple(_with_times(each, times) for each in content.devices))


def _at_generation(spec: ResourceSliceSpec, generation: int) -> ResourceSliceSpec:
    return replace(spec, pool=replace(spec.pool, generation=generation))


def _new(spec: ResourceSliceSpec, index: int, width: int, publisher: Publisher) -> ResourceSlice:
    name = f"{index:0{width}x}-{publisher.driver}-"
    owners: tuple[OwnerReference, ...] = ()
    if publisher.node_name:
        name += f"{publisher.node_name}-"
        owners = (
            OwnerReference(
                api_version="v1",
                kind="Node",
                name=publisher.node_name,
                uid=publisher.node_uid,
                controller=True,
            ),
        )
    return ResourceSlice(
        metadata=ObjectMeta(generate_name=name, owner_references=owners), spec=spec
    )


def _delete(value: ResourceSlice) -> Delete:
    return Delete(Target.of(value), revision=value.metadata.resource_version)


def _as_sent(value: ResourceSlice, stored: Mapping[str, StoredSlice]) -> ResourceSlice:
    found = stored.get(value.metadata.name)
    if found is None or not semantic_equal(found.stored, value.spec):
        return value
    return replace(value, spec=found.sent)


# --- comparison -----------------------------------------------------------------------------------


def is_same_spec(a: ResourceSliceSpec, b: ResourceSliceSpec) -> bool:
    """Return whether two specs mean the same; a taint's time may be missing, or rounded."""
    if semantic_equal(a, b):
        return True
    ours, others = a.devices or (), b.devices or ()
    if len(ours) != len(others) or not all(map(_is_same_device, ours, others)):
        return False
    return semantic_equal(replace(a, devices=b.devices), b)


def _is_same_device(a: Device, b: Device) -> bool:
    if semantic_equal(a, b):
        return True
    if len(a.taints) != len(b.taints) or not all(map(_is_same_taint, a.taints, b.taints)):
        return False
    return semantic_equal(replace(a, taints=b.taints), b)


def _is_same_taint(a: DeviceTaint, b: DeviceTaint) -> bool:
    if (a.key, a.value, a.effect) != (b.key, b.value, b.effect):
        return False
    if a.time_added is None or b.time_added is None:
        return True
    return abs(a.time_added.instant - b.time_added.instant) <= _SECOND


def _taint_times(existing: Iterable[ResourceSlice]) -> TaintTimes:
    return {
        (device.name, taint.key, taint.value, taint.effect): taint
        for each in existing
        for device in each.spec.devices or ()
        for taint in device.taints
        if taint.time_added is not None
    }


def _with_times(device: Device, times: TaintTimes) -> Device:
    """Return a device whose taints have the times at which they were added."""
    if not device.taints or not times:
        return device
    return replace(
        device,
        taints=tuple(
            times.get((device.name, taint.key, taint.value, taint.effect), taint)
            if taint.time_added is None
            else taint
            for taint in device.taints
        ),
    )
