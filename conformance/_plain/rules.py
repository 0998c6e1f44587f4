"""Rules that a candidate must pass, computed from the devices taken already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from conformance._plain.model import Allocated, Candidate, Pool, Taking
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    DeviceTaint,
    DeviceToleration,
)

# --- taints -------------------------------------------------------------------------------


def is_repelled(device: Device, tolerations: tuple[DeviceToleration, ...]) -> bool:
    """Return whether the device has a taint that keeps the request away."""
    return any(
        taint.effect in ("NoSchedule", "NoExecute")
        and not any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in device.taints
    )


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case operator:
            return operator == "Exists"


# --- counters and groups ------------------------------------------------------------------


def has_counters(candidate: Candidate, allocated: Allocated, taken: Iterable[Taking]) -> bool:
    """Return whether no counter of the whole pool would be overdrawn with the candidate."""
    pool = candidate.pool
    used: dict[tuple[str, str], Quantity] = {}
    for consumption in (
        *_charged(pool, allocated, taken),
        *candidate.device.consumes_counters,
    ):
        for name, counter in consumption.counters.items():
            key = consumption.counter_set, name
            used[key] = used.get(key, Quantity.ZERO) + counter.value
    return all(
        used.get((set_name, name), Quantity.ZERO) <= counter.value
        for set_name, counter_set in pool.counter_sets.items()
        for name, counter in counter_set.counters.items()
    )


def has_common_groups(candidate: Candidate, allocated: Allocated, taken: Iterable[Taking]) -> bool:
    """Return whether the candidate may be beside those that use the same counter sets."""
    charged = list(_charged(candidate.pool, allocated, taken))
    for consumption in candidate.device.consumes_counters:
        beside = [set(c.compatibility_groups) for c in charged if _is_same_set(c, consumption)]
        groups = set(consumption.compatibility_groups)
        if beside and not (groups & _common(beside) if groups else not beside[0]):
            return False
        charged.append(consumption)
    return True


def _common(groups: list[set[str]]) -> set[str]:
    """Return the groups that all have. The first states whether devices have groups here."""
    return set.intersection(*(some for some in groups if some)) if groups[0] else set()


def _is_same_set(one: DeviceCounterConsumption, other: DeviceCounterConsumption) -> bool:
    return one.counter_set == other.counter_set


def _charged(
    pool: Pool, allocated: Allocated, taken: Iterable[Taking]
) -> Iterator[DeviceCounterConsumption]:
    """Yield the charges to the pool's counters, allocated devices first."""
    for candidate in pool.candidates(pool.here + pool.elsewhere):
        if candidate.id in allocated:
            yield from candidate.device.consumes_counters
    for taking in taken:
        if taking.is_charged and taking.candidate.pool is pool:
            yield from taking.candidate.device.consumes_counters


# --- attributes ---------------------------------------------------------------------------

Typed = tuple[str, Any]


def may_match(new: DeviceAttribute, before: list[DeviceAttribute], *, lists: bool) -> bool:
    """Return whether a device may join devices that match in an attribute."""
    if lists:
        sets = [_typed_values(attribute) for attribute in (*before, new)]
        return bool(set.intersection(*sets))
    return not before or (_scalar(new) is not None and _scalar(new) in _scalars(before[0]))


def may_differ(new: DeviceAttribute, before: list[DeviceAttribute], *, lists: bool) -> bool:
    """Return whether a device may join devices that differ in an attribute."""
    if lists:
        mine = _typed_values(new)
        return bool(mine) and all(mine.isdisjoint(_typed_values(other)) for other in before)
    value = _scalar(new)
    return not before or (
        value is not None and all(value not in _scalars(other) for other in before)
    )


def _typed_values(attribute: DeviceAttribute) -> set[Typed]:
    """Return the values with their type; a scalar is a list of one."""
    for name in ("int", "bool", "string", "version"):
        if values := getattr(attribute, f"{name}_values"):
            return {(name, value) for value in values}
    for name in ("int", "bool", "string", "version"):
        if (value := getattr(attribute, f"{name}_value")) is not None:
            return {(name, value)}
    return set()


def _scalar(attribute: DeviceAttribute) -> Typed | None:
    return next(iter(_scalars(attribute)), None)


def _scalars(attribute: DeviceAttribute) -> list[Typed]:
    """Return the scalar values that are set: one, unless the API was not asked."""
    names = ("string", "int", "bool", "version")
    values = ((name, getattr(attribute, f"{name}_value")) for name in names)
    return [(name, value) for name, value in values if value is not None]
