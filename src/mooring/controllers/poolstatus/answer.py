"""The status of a request: the pools of its driver, how many devices each has and has left."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from mooring.api.devicetaints import NO_EXECUTE, NO_SCHEDULE, DeviceName
from mooring.api.meta import Condition
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import Device, DeviceTaintRule, ResourceClaim, ResourceSlice
from mooring.api.resource.v1alpha3 import (
    PoolStatus,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
)
from mooring.api.timestamp import Timestamp
from mooring.claims.evictions import Means
from mooring.client.objects import Objects
from mooring.controllers.poolstatus.views import Pool, view_of

POOLS_MAX = 100  # where the request does not say
TEXT_MAX = 256
INCOMPLETE = "PoolIncomplete:"


class _Used:
    """What claims have of each pool; those with admin access look on and take nothing."""

    def __init__(self, claims: Iterable[ResourceClaim], driver: str) -> None:
        self.devices: dict[str, set[str]] = {}
        self.consumed: dict[str, dict[str, Quantity]] = {}
        for claim in claims:
            allocation = claim.status.allocation
            for result in allocation.devices.results if allocation is not None else ():
                if result.driver != driver or result.admin_access:
                    continue
                self.devices.setdefault(result.pool, set()).add(result.device)
                consumed = self.consumed.setdefault(result.pool, {})
                for name, amount in (result.consumed_capacity or {}).items():
                    consumed[name] = consumed[name] + amount if name in consumed else amount


def pool_statuses(
    objects: Objects,
    spec: ResourcePoolStatusRequestSpec,
    *,
    rules: Iterable[DeviceTaintRule],
    means: Means,
) -> tuple[PoolStatus, ...]:
    """Return the status of every pool that is asked about, by name."""
    used = _Used(objects.all(ResourceClaim), spec.driver)
    blocking = [rule for rule in rules if rule.spec.taint.effect in (NO_SCHEDULE, NO_EXECUTE)]
    found = []
    for name, slices in sorted(_newest(objects, spec).items()):
        pool = Pool(
            spec.driver,
            name,
            slices,
            used.devices.get(name, frozenset()),
            used.consumed.get(name, {}),
        )
        found.append(_pool_status(pool, spec.default_partition_type_attribute, blocking, means))
    return tuple(found)


def _newest(
    objects: Objects, spec: ResourcePoolStatusRequestSpec
) -> dict[str, tuple[ResourceSlice, ...]]:
    """Return the slices of the newest generation of each pool, in the order of their names."""
    pools: dict[str, list[ResourceSlice]] = {}
    for each in sorted(objects.all(ResourceSlice), key=lambda each: each.metadata.name):
        name = each.spec.pool.name
        if each.spec.driver == spec.driver and spec.pool_name in (None, "", name):
            pools.setdefault(name, []).append(each)
    found = {}
    for name, slices in pools.items():
        generation = max(each.spec.pool.generation for each in slices)
        found[name] = tuple(each for each in slices if each.spec.pool.generation == generation)
    return found


def _pool_status(
    pool: Pool, default_attribute: str | None, rules: list[DeviceTaintRule], means: Means
) -> PoolStatus:
    status = PoolStatus(
        driver=pool.driver,
        pool_name=pool.name,
        generation=pool.slices[0].spec.pool.generation,
        node_name=_node_name(pool),
    )
    wanted = pool.slices[0].spec.pool.resource_slice_count
    if len(pool.slices) < wanted:
        return replace(status, validation_error=_incomplete(pool, wanted))
    devices = pool.devices
    unavailable = sum(_is_unavailable(pool, device, rules, means) for device in devices)
    view = view_of(pool, default_attribute)
    return replace(
        status,
        resource_slice_count=len(pool.slices),
        total_devices=len(devices),
        allocated_devices=len(pool.used),
        unavailable_devices=unavailable,
        available_devices=max(0, len(devices) - len(pool.used) - unavailable),
        partition_summary=view.partitions,
        shareable_summary=view.shareable,
        validation_error=view.error[:TEXT_MAX] or None,
    )


def _incomplete(pool: Pool, wanted: int) -> str:
    seen = f"observed {len(pool.slices)}/{wanted} slices"
    generation = pool.slices[0].spec.pool.generation
    return f"{INCOMPLETE} pool {pool} is incomplete: {seen} at generation {generation}"[:TEXT_MAX]


def _node_name(pool: Pool) -> str | None:
    names = {each.spec.node_name or "" for each in pool.slices}
    return (names.pop() or None) if len(names) == 1 else None


def _is_unavailable(pool: Pool, device: Device, rules: list[DeviceTaintRule], means: Means) -> bool:
    if any(taint.effect in (NO_SCHEDULE, NO_EXECUTE) for taint in device.taints):
        return True
    name = DeviceName(pool.driver, pool.name, device.name)
    return any(means(rule, name, device) for rule in rules)


def request_status(
    pools: tuple[PoolStatus, ...], limit: int | None, now: Timestamp
) -> ResourcePoolStatusRequestStatus:
    """Return the answer; of too many pools the first are told."""
    told = pools[: POOLS_MAX if limit is None else limit]
    faulty = sum(pool.validation_error is not None for pool in told)
    message = f"Calculated status for {len(told)} pools"
    if faulty:
        message = f"{message} ({faulty} incomplete)"
    condition = Condition(
        type="Complete",
        status="True",
        reason="CalculationComplete",
        message=message,
        last_transition_time=now,
    )
    return ResourcePoolStatusRequestStatus(
        pool_count=len(pools), pools=told, conditions=(condition,)
    )


def is_incomplete(status: ResourcePoolStatusRequestStatus) -> bool:
    """Tell whether a driver is still publishing one of the pools."""
    return any((pool.validation_error or "").startswith(INCOMPLETE) for pool in status.pools)
