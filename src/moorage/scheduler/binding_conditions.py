"""Binding conditions: whether the devices of an allocated claim are ready for the pod.

A device may need preparation after it was allocated. Its binding conditions say when that is done,
its failure conditions when it never will be; both are reported in the claim's status.
"""

from __future__ import annotations

from datetime import datetime

from moorage.api.meta import Condition
from moorage.api.resource.v1 import (
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    ResourceClaim,
)

BINDING_TIMEOUT_S = 600


def must_be_reallocated(
    claim: ResourceClaim, now: datetime | None, *, timeout_s: float = BINDING_TIMEOUT_S
) -> bool:
    """Return whether the devices have failed, or are not ready and their time is up."""
    for result in _waiting(claim):
        status = _status_of(claim, result)
        if status is not None and _has_failed(result, status):
            return True
        if status is None or not _is_ready(result, status):
            return _is_late(claim, now, timeout_s)
    return False


def is_ready(claim: ResourceClaim) -> bool:
    """Return whether pods that use the claim can be bound: all its devices are ready."""
    for result in _waiting(claim):
        status = _status_of(claim, result)
        if status is None or _has_failed(result, status) or not _is_ready(result, status):
            return False
    return True


def _waiting(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return tuple(result for result in results if result.binding_conditions)


def _status_of(
    claim: ResourceClaim, result: DeviceRequestAllocationResult
) -> AllocatedDeviceStatus | None:
    device = (result.driver, result.pool, result.device)
    for status in claim.status.devices:
        if (status.driver, status.pool, status.device) == device:
            return status
    return None


def _true_conditions(status: AllocatedDeviceStatus) -> set[str]:
    return {each.type for each in status.conditions or () if each.status == "True"}


def _is_ready(result: DeviceRequestAllocationResult, status: AllocatedDeviceStatus) -> bool:
    return _true_conditions(status).issuperset(result.binding_conditions)


def _has_failed(result: DeviceRequestAllocationResult, status: AllocatedDeviceStatus) -> bool:
    return not _true_conditions(status).isdisjoint(result.binding_failure_conditions)


def _is_late(claim: ResourceClaim, now: datetime | None, timeout_s: float) -> bool:
    allocation = claim.status.allocation
    if now is None or allocation is None or allocation.allocation_timestamp is None:
        return False
    return allocation.allocation_timestamp.after(timeout_s).instant < now


def failure(claim: ResourceClaim) -> Condition | None:
    """Return the first condition by which a device will never be ready."""
    for result in _waiting(claim):
        status = _status_of(claim, result)
        if status is not None:
            for each in status.conditions or ():
                if each.status == "True" and each.type in result.binding_failure_conditions:
                    return each
    return None


def has_conditions(claim: ResourceClaim) -> bool:
    """Return whether a device of the claim has binding conditions."""
    return bool(_waiting(claim))


def time_left_s(claim: ResourceClaim, now: datetime, *, timeout_s: float) -> float:
    """Return how long the devices may still take to get ready."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return timeout_s
    return timeout_s - (now - allocation.allocation_timestamp.instant).total_seconds()
