"""Table printers of resource.k8s.io."""

from __future__ import annotations

from moorage.api.meta import Condition
from moorage.api.resource.v1 import DeviceTaintRule, ResourceClaim
from moorage.api.resource.v1alpha3 import (
    PoolStatus,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestStatus,
)
from moorage.api.timestamp import Timestamp
from moorage.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    Cell,
    Printer,
    age,
    named_and_aged,
    number,
    text,
)


def _states(claim: ResourceClaim) -> list[str]:
    is_deleted = claim.metadata.deletion_timestamp is not None
    states = ["deleted"] if is_deleted else []
    if claim.status.allocation is None:
        return states or ["pending"]
    reserved = ["reserved"] if claim.status.reserved_for else []
    return [*states, "allocated", *reserved]


RESOURCE_CLAIM = named_and_aged(
    (text("State", "Whether the claim has devices, and whether pods may use them."),),
    lambda claim: [",".join(_states(claim))],
)

RESOURCE_SLICE = named_and_aged(
    (
        text("Node", "Node that the devices belong to, if it is one."),
        text("Driver", "Driver that publishes the devices."),
        text("Pool", "Pool that the devices are part of."),
    ),
    lambda value: [value.spec.node_name or "", value.spec.driver, value.spec.pool.name],
)


def _taint_rule(rule: DeviceTaintRule, now: Timestamp) -> list[Cell]:
    taint = rule.spec.taint
    return [
        rule.metadata.name,
        taint.key,
        taint.value,
        taint.effect,
        "" if taint.time_added is None else age(taint.time_added, now),
        age(rule.metadata.creation_timestamp, now),
    ]


DEVICE_TAINT_RULE = Printer(
    (
        NAME,
        text("Key", "Key of the taint."),
        text("Value", "Value of the taint."),
        text("Effect", "What the taint does to claims and pods that do not tolerate it."),
        text("TimeAdded", "Time since the taint was added."),
        AGE,
    ),
    _taint_rule,
)


def _pool_status_request(request: ResourcePoolStatusRequest, now: Timestamp) -> list[Cell]:
    status = request.status
    ending = None if status is None else _ending(status)
    pool_count = 0 if status is None else status.pool_count or 0
    is_complete = ending is not None and ending.type == "Complete"
    return [
        request.metadata.name,
        request.spec.driver,
        *_sums(status, ending),
        pool_count,
        _progress(status, ending, pool_count),
        age(ending.last_transition_time, now) if is_complete and ending is not None else NONE,
    ]


def _ending(status: ResourcePoolStatusRequestStatus) -> Condition | None:
    """Return the condition that ended the request."""
    endings = (c for c in status.conditions if c.type in ("Complete", "Failed"))
    return next((c for c in endings if c.status == "True"), None)


def _sums(
    status: ResourcePoolStatusRequestStatus | None, ending: Condition | None
) -> tuple[str, ...]:
    """Return the devices of all pools: all, available, allocated, unavailable; and the errors."""
    if status is None or (ending is not None and ending.type == "Failed"):
        return ("-",) * 5
    return tuple(str(sum(column)) for column in zip(*map(_counts, status.pools), strict=True)) or (
        ("0",) * 5
    )


def _counts(pool: PoolStatus) -> tuple[int, ...]:
    return (
        pool.total_devices or 0,
        pool.available_devices or 0,
        pool.allocated_devices or 0,
        pool.unavailable_devices or 0,
        int(pool.validation_error is not None),
    )


def _progress(
    status: ResourcePoolStatusRequestStatus | None, ending: Condition | None, pool_count: int
) -> str:
    if status is None or ending is None:
        return "Pending"
    shown = len(status.pools)
    if ending.type == "Complete" and pool_count > shown:
        return f"Complete ({shown}/{pool_count} pools)"
    return ending.type


RESOURCE_POOL_STATUS_REQUEST = Printer(
    (
        NAME,
        text("Driver", "Driver whose pools are asked about."),
        text("Total", "Devices in the pools."),
        text("Available", "Devices that could be allocated."),
        text("Allocated", "Devices that are allocated."),
        text("Unavailable", "Devices that cannot be allocated."),
        text("Errors", "Pools with an error."),
        number("Pools", "Pools that were found."),
        text("Status", "How far the answer is."),
        text("Completed", "Time since the answer was given."),
    ),
    _pool_status_request,
)
