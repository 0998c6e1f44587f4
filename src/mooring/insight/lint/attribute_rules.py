"""Rules about attributes of devices: names, types, and standard values.

Constraints and expressions of one claim look at devices of several drivers. What these publish
under one name must have one type, and mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mooring.api.field_path import MapKey
from mooring.api.resource.v1 import Device, DeviceAttribute
from mooring.hardware.attributes import NUMA_NODE, PCI_BUS_ID, PCIE_ROOT, PREFIX
from mooring.insight.lint.pool_rules import pool_of, slice_of
from mooring.insight.lint.pools import STANDARD, DeviceHome, Sighting, devices_of, type_of
from mooring.insight.lint.rule import SLICES, Case, N, Oddity, RuleTable, W
from mooring.insight.messages import counted, nearest

RULES = RuleTable(SLICES)

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
                f"did you mean {near}?" if near else "publish it in the domain of the driver",
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
