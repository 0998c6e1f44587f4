"""Rules about slices together: those of a pool, and the attributes that all devices have.

While a pool is incomplete or contradicts itself the scheduler allocates none of its devices, and
requests for all devices fail on every node that sees it, whatever driver they are about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from moorage.api.field_path import MapKey, Place
from moorage.api.resource.v1 import Device, DeviceAttribute, DeviceCounterConsumption, ResourceSlice
from moorage.hardware.attributes import NUMA_NODE, PCI_BUS_ID, PCIE_ROOT, PREFIX
from moorage.insight.lint.pools import (
    STANDARD,
    DeviceHome,
    LintPool,
    Sighting,
    devices_of,
    pool_id_of,
    type_of,
)
from moorage.insight.lint.rule import SLICES, Case, E, N, Oddity, RuleTable, W
from moorage.insight.messages import counted, nearest

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
            remedy = _meant(near, "publish it in sharedCounters of a slice of the pool")
            yield Oddity((*place, "counterSet"), message, remedy)
            continue
        for name in consumption.counters:
            if name not in known.counters:
                message = f"counter set {known.name} has no counter {name}: {UNUSABLE}"
                remedy = _meant(nearest(name, known.counters), "add it to the counter set")
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


def _meant(near: str | None, otherwise: str) -> str:
    return otherwise if near is None else f"did you mean {near}?"


# --- attributes -------------------------------------------------------------------------
#
# Constraints and expressions of one claim look at devices of several drivers. What these publish
# under one name must have one type, and mean the same.

_PATTERNS: Final = {
    PCI_BUS_ID: (re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"), "0000:3b:00.0"),
    PCIE_ROOT: (re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}"), "pci0000:3a"),
}


@RULES.add(W)
def both_names(case: Case) -> Iterator[Oddity]:
    """An attribute or capacity under both its short and its qualified name."""
    slice_ = slice_of(case)
    prefix = f"{slice_.spec.driver}/"
    for home, device in devices_of((slice_,)):
        for field, names in (("attributes", device.attributes), ("capacity", device.capacity)):
            for name in names:
                if "/" not in name and prefix + name in names:
                    yield Oddity(
                        ("spec", "devices", home.position, field, MapKey(name)),
                        f"device {device.name} has {prefix}{name}, too, which is the same name "
                        "in full: expressions see only that one",
                        "publish one of them",
                    )


@RULES.add(W)
def unknown_standard_attribute(case: Case) -> Iterator[Oddity]:
    """An attribute in the domain of Kubernetes that it does not have."""
    seen: set[str] = set()
    for home, device in devices_of((slice_of(case),)):
        for name in device.attributes:
            if not name.startswith(PREFIX) or name in STANDARD or name in seen:
                continue
            seen.add(name)
            near = nearest(name, STANDARD)
            yield Oddity(
                ("spec", "devices", home.position, "attributes", MapKey(name)),
                f"Kubernetes 1.37 has no attribute {name}, and the domain is its own",
                _meant(near, "publish it in the domain of the driver"),
            )


@RULES.add(W)
def mixed_types(case: Case) -> Iterator[Oddity]:
    """An attribute that has different types on different devices."""
    for name, (type_, sighting, usual, most) in _clashes(case):
        if _scalar(type_) != _scalar(usual):
            yield Oddity(
                _place(sighting),
                f"{name} is {_a(type_)} on {_seen(sighting)}, but {_a(usual)} on {_seen(most)}: "
                "constraints never match the two, and comparisons of one fail on the other",
                "publish one type under one name",
            )


@RULES.add(N)
def mixed_lists(case: Case) -> Iterator[Oddity]:
    """An attribute that is a list on some devices and a single value on others."""
    for name, (type_, sighting, usual, most) in _clashes(case):
        if type_ != usual and _scalar(type_) == _scalar(usual):
            yield Oddity(
                _place(sighting),
                f"{name} is {_a(type_)} on {_seen(sighting)}, but {_a(usual)} on {_seen(most)}: "
                "constraints match the two only while DRAListTypeAttributes is on, "
                "and == is not true of a list and a value",
                "publish one form, or have expressions ask with includes()",
            )


def _clashes(case: Case) -> Iterator[tuple[str, tuple[str, Sighting, str, Sighting]]]:
    """Yield the rarer types that were first seen in this slice, so that each is reported once."""
    slice_ = slice_of(case)
    sightings = case.context.objects.sightings
    for name in sightings.mixed:
        for clash in sightings.clashes(name):
            type_, sighting, usual, _ = clash
            if type_ and usual and sighting.first.slice is slice_:
                yield name, clash


def _scalar(type_: str) -> str:
    return type_.removesuffix("s")


def _a(type_: str) -> str:
    article = "an" if type_ == "int" else "a"
    return f"a list of {type_}" if type_.endswith("s") else f"{article} {type_}"


def _seen(sighting: Sighting) -> str:
    such_as = f"{sighting.first.slice.spec.driver}/{sighting.first.slice.spec.pool.name}"
    device = _device(sighting.first)
    return f"{counted(sighting.count, 'device')} such as {such_as}/{device.name}"


def _place(sighting: Sighting) -> tuple[str | int | MapKey, ...]:
    return ("spec", "devices", sighting.first.position, "attributes", MapKey(sighting.name))


def _device(home: DeviceHome) -> Device:
    return (home.slice.spec.devices or ())[home.position]


@RULES.add(N)
def missing_standard_attribute(case: Case) -> Iterator[Oddity]:
    """numaNode, pciBusID or pcieRoot on some devices of a driver only."""
    slice_ = slice_of(case)
    driver = slice_.spec.driver
    seen = case.context.objects.sightings.drivers.get(driver)
    if seen is None:
        return
    for name in STANDARD:
        lack = seen.lack(name)
        if lack is not None and lack.first.slice is slice_:
            verb = "lacks" if lack.count == 1 else "lack"
            yield Oddity(
                ("spec", "devices", lack.first.position),
                f"{lack.count:,} of {counted(seen.devices, 'device')} of {driver} {verb} {name}, "
                f"such as {_device(lack.first).name}: claims with a constraint on it never "
                "get them",
                "publish it wherever it is known",
            )


@RULES.add(W)
def odd_standard_value(case: Case) -> Iterator[Oddity]:
    """A numaNode, pciBusID or pcieRoot in a form that other drivers do not have."""
    if pool_of(case) is None:
        return
    for home, device in devices_of((slice_of(case),)):
        for name in STANDARD:
            attribute = device.attributes.get(name)
            wanted = None if attribute is None else _wanted(name, attribute)
            if wanted is not None:
                yield Oddity(
                    ("spec", "devices", home.position, "attributes", MapKey(name)),
                    f"device {device.name} has {name} in a form of its own: "
                    "constraints will not match it with devices of other drivers",
                    f"publish {wanted}",
                )


def _wanted(name: str, attribute: DeviceAttribute) -> str | None:
    """Return the expected form of a standard attribute, None if it has that or no value."""
    if not type_of(attribute):
        return None
    if name == NUMA_NODE:
        numbers = attribute.int_values or (attribute.int_value,)
        is_good = all(number is not None and number >= 0 for number in numbers)
        return None if is_good else "the number of the NUMA node, or nothing where it is unknown"
    pattern, example = _PATTERNS[name]
    texts = attribute.string_values or (attribute.string_value,)
    is_good = all(text is not None and pattern.fullmatch(text) for text in texts)
    return None if is_good else f"a string such as {example}"


@RULES.add(N)
def same_hardware(case: Case) -> Iterator[Oddity]:
    """A PCI device that two drivers publish for one node."""
    slice_ = slice_of(case)
    for (other, driver), sighting in case.context.objects.sightings.doubles.items():
        if sighting.first.slice is slice_:
            devices = counted(sighting.count, "device")
            yield Oddity(
                _place(sighting),
                f"{devices} of {driver}, such as {_device(sighting.first).name}, are at PCI "
                f"addresses where {other} has devices on the same node: "
                "both may be given away at once",
                "let one driver publish a device, or taint those of the other",
            )
