"""Rules about the slices of a pool: whether they agree with each other.

While a pool is incomplete or contradicts itself the scheduler allocates none of its devices, and
requests for all devices fail on every node that sees it, whatever driver they are about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mooring.api.field_path import MapKey, Place
from mooring.api.resource.v1 import Device, DeviceCounterConsumption, ResourceSlice
from mooring.insight.lint.pools import DeviceHome, LintPool, devices_of, pool_id_of
from mooring.insight.lint.rule import SLICES, Case, E, N, Oddity, RuleTable, W
from mooring.insight.messages import counted, nearest

RULES = RuleTable(SLICES)

POOL: Final = ("spec", "pool")
UNUSABLE: Final = "the scheduler gives none of the pool's devices away"


def slice_of(case: Case) -> ResourceSlice:
    """Return the slice at hand as an API server stores it."""
    slice_: ResourceSlice = case.subject.stored or case.subject.value
    return slice_


def pool_of(case: Case) -> LintPool | None:
    """Return the pool of the slice at hand, None if the slice is outdated."""
    slice_, objects = slice_of(case), case.context.objects
    pool = objects.pools.get(pool_id_of(slice_))
    if pool is None or slice_.spec.pool.generation != pool.generation:
        return None
    return None if objects.later(case.subject) is not None else pool


@RULES.add(W)
def incomplete_pool(case: Case) -> Iterator[Oddity]:
    """A pool with fewer or more slices than it says."""
    pool = pool_of(case)
    if pool is None or pool.first is not slice_of(case) or pool.is_complete:
        return
    there, wanted = len(pool.slices), pool.slices_wanted
    message = (
        f"pool {pool.id} has {counted(there, 'slice')} of generation {pool.generation} among those "
        f"given, but says it has {wanted}: {UNUSABLE}, and requests for all devices fail"
    )
    remedy = (
        "give the slices that are missing, or have the driver publish them"
        if there < wanted
        else f"set resourceSliceCount to {there} in every slice, and raise the generation"
    )
    yield Oddity((*POOL, "resourceSliceCount"), message, remedy)


@RULES.add(W)
def slice_counts_disagree(case: Case) -> Iterator[Oddity]:
    """Slices of a pool that say different numbers of slices."""
    pool = pool_of(case)
    count = slice_of(case).spec.pool.resource_slice_count
    if pool is not None and count != pool.slices_wanted:
        yield Oddity(
            (*POOL, "resourceSliceCount"),
            f"{count} here, but {pool.slices_wanted} in slice {pool.first.metadata.name} of the "
            "same pool and generation: the first slice by name is believed",
            "write the same number in all slices of a generation",
        )


@RULES.add(W)
def outdated_slice(case: Case) -> Iterator[Oddity]:
    """A slice of an older generation than others of its pool."""
    slice_ = slice_of(case)
    pool = case.context.objects.pools.get(pool_id_of(slice_))
    if pool is not None and slice_.spec.pool.generation < pool.generation:
        yield Oddity(
            (*POOL, "generation"),
            f"pool {pool.id} is at generation {pool.generation}: this slice is ignored",
            "delete it; a driver should do so once the slices of a new generation are there",
        )


@RULES.add(E)
def duplicate_device(case: Case) -> Iterator[Oddity]:
    """A device name that two slices of a pool have."""
    pool, slice_ = pool_of(case), slice_of(case)
    if pool is None:
        return
    doubles: dict[str, list[DeviceHome]] = {}  # by the name of the other slice
    for here, device in devices_of((slice_,)):
        home = pool.devices.get(device.name)
        if home is not None and home.slice is not slice_:
            doubles.setdefault(home.slice.metadata.name, []).append(here)
    for name, homes in doubles.items():
        yield _duplicate(pool, homes, name)


def _duplicate(pool: LintPool, homes: list[DeviceHome], other_name: str) -> Oddity:
    first = homes[0]
    device = first.slice.spec.devices[first.position] if first.slice.spec.devices else Device()
    other = pool.devices[device.name].slice
    nodes = {first.slice.spec.node_name, other.spec.node_name}
    if len(nodes) == 2 and None not in nodes:
        meaning = "to claims the two are one device: while one is in use, so is the other"
        remedy = "publish a pool for each node, named after it"
    else:
        meaning, remedy = UNUSABLE, "give each device of a pool a name of its own"
    more = f" and {counted(len(homes) - 1, 'other')}" if len(homes) > 1 else ""
    verb = "are" if more else "is"
    return Oddity(
        ("spec", "devices", first.position, "name"),
        f"device {device.name}{more} of pool {pool.id} {verb} in slice {other_name}, too: "
        f"{meaning}",
        remedy,
    )


@RULES.add(E)
def duplicate_counter_set(case: Case) -> Iterator[Oddity]:
    """A counter set that two slices of a pool have."""
    pool, slice_ = pool_of(case), slice_of(case)
    if pool is None:
        return
    for i, counter_set in enumerate(slice_.spec.shared_counters or ()):
        home = pool.counter_sets.get(counter_set.name)
        if home is not None and home.slice is not slice_:
            yield Oddity(
                ("spec", "sharedCounters", i, "name"),
                f"counter set {counter_set.name} of pool {pool.id} is in slice "
                f"{home.slice.metadata.name}, too: {UNUSABLE}",
                "give each counter set of a pool a name of its own",
            )


@RULES.add(E)
def unknown_counter(case: Case) -> Iterator[Oddity]:
    """A device that takes of a counter which its pool does not have."""
    pool = pool_of(case)
    if pool is None or not pool.is_complete:
        return  # A slice that was not given may have them.
    for place, _, consumption in _consumptions(case):
        known = pool.counter_set(consumption.counter_set)
        if known is None:
            message = f"pool {pool.id} has no counter set {consumption.counter_set}: {UNUSABLE}"
            near = nearest(consumption.counter_set, pool.counter_sets)
            remedy = _did_you_mean(near) or "publish it in sharedCounters of a slice of the pool"
            yield Oddity((*place, "counterSet"), message, remedy)
            continue
        for name in consumption.counters:
            if name not in known.counters:
                message = f"counter set {known.name} has no counter {name}: {UNUSABLE}"
                near = nearest(name, known.counters)
                remedy = _did_you_mean(near) or "add it to the counter set"
                yield Oddity((*place, "counters", MapKey(name)), message, remedy)


@RULES.add(W)
def exceeds_counter(case: Case) -> Iterator[Oddity]:
    """A device that takes more of a counter than there is in all."""
    pool = pool_of(case)
    if pool is None:
        return
    for place, device, consumption in _consumptions(case):
        known = pool.counter_set(consumption.counter_set)
        for name, counter in consumption.counters.items() if known is not None else ():
            there = known.counters.get(name) if known is not None else None
            if there is not None and counter.value > there.value:
                yield Oddity(
                    (*place, "counters", MapKey(name)),
                    f"device {device.name} takes {counter.value} of counter {name}, but counter "
                    f"set {consumption.counter_set} has {there.value} in all: "
                    "it can never be allocated",
                    "correct what the device takes, or what the set has",
                )


@RULES.add(N)
def unused_counter(case: Case) -> Iterator[Oddity]:
    """A counter that no device of its pool takes of."""
    pool = pool_of(case)
    if pool is None or not pool.is_complete:
        return
    for i, counter_set in enumerate(slice_of(case).spec.shared_counters or ()):
        idle = [
            name
            for name in counter_set.counters
            if (counter_set.name, name) not in pool.counters_consumed
        ]
        if not idle:
            continue
        what = (
            f"counter set {counter_set.name}"
            if len(idle) == len(counter_set.counters)
            else f"{', '.join(sorted(idle))} of counter set {counter_set.name}"
        )
        yield Oddity(
            ("spec", "sharedCounters", i),
            f"no device of pool {pool.id} takes of {what}",
            "name it in consumesCounters of the devices that share it, or leave it out",
        )


def _consumptions(case: Case) -> Iterator[tuple[Place, Device, DeviceCounterConsumption]]:
    for home, device in devices_of((slice_of(case),)):
        for j, consumption in enumerate(device.consumes_counters):
            yield ("spec", "devices", home.position, "consumesCounters", j), device, consumption


def _did_you_mean(near: str | None) -> str | None:
    return None if near is None else f"did you mean {near}?"
