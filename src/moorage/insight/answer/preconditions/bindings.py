"""Devices that never got ready for their pod: what their driver reports, and what to do.

A device with binding conditions is prepared after it was allocated: attached by a fabric, say. If
that fails, or takes too long, the scheduler takes the claim back and tries again, mostly with the
same device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.api.meta import Condition
from moorage.api.resource.v1 import (
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.answer.preconditions.references import claims_of
from moorage.insight.messages import fitting, listed
from moorage.scheduler.binding_conditions import BINDING_TIMEOUT_S, must_be_reallocated

TRUE: Final = "True"


def failed_bindings(case: Case) -> Iterator[Finding]:
    """Find claims whose devices have failed, or have not got ready in time."""
    for claim in claims_of(case):
        if not must_be_reallocated(claim, case.cluster.now):
            continue
        allocation = claim.status.allocation
        for result in () if allocation is None else allocation.devices.results:
            status = _status(claim, result)
            failure = None if status is None else _failure(result, status)
            if failure is not None:
                yield _failed(claim, result, failure)
            elif result.binding_conditions and not _is_ready(result, status):
                yield _late(claim, result, status)


def _failed(
    claim: ResourceClaim, result: DeviceRequestAllocationResult, failure: Condition
) -> Finding:
    device, name = result.device, claim.metadata.name
    what = f"device {device} of claim {name} cannot be bound"
    texts = [
        f"{what}: {failure.type}, {failure.reason}: {failure.message}",
        f"{what}: {failure.reason}: {failure.message}",
        f"{what}: {failure.type}, {failure.reason}",
        f"{what}: {failure.reason}",
    ]
    cause = fitting(*texts)
    return Finding(cause, (_repair(result, failure.reason), _other(claim, result)))


def _late(
    claim: ResourceClaim,
    result: DeviceRequestAllocationResult,
    status: AllocatedDeviceStatus | None,
) -> Finding:
    missing = sorted(set(result.binding_conditions) - _true(status))
    minutes = BINDING_TIMEOUT_S // 60
    cause = (
        f"device {result.device} of claim {claim.metadata.name} is not bound after {minutes} "
        f"minutes: {listed(missing, shown_max=1)} has not become true"
    )
    return Finding(cause, (_repair(result, missing[0]), _other(claim, result)))


def _repair(result: DeviceRequestAllocationResult, reason: str) -> Proposal:
    text = (
        f"see why driver {result.driver} cannot bind device {result.device} ({reason}), and have "
        "it repaired"
    )
    return Proposal(text, FixRank.GIVE)


def _other(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> Proposal:
    text = (
        f"taint device {result.device} by a DeviceTaintRule, so that claim {claim.metadata.name} "
        "gets another one (an administrator's change)"
    )
    return Proposal(text, FixRank.ADVICE)


# --- conditions -----------------------------------------------------------------------------


def _status(
    claim: ResourceClaim, result: DeviceRequestAllocationResult
) -> AllocatedDeviceStatus | None:
    device = (result.driver, result.pool, result.device)
    known = (each for each in claim.status.devices)
    return next((s for s in known if (s.driver, s.pool, s.device) == device), None)


def _failure(
    result: DeviceRequestAllocationResult, status: AllocatedDeviceStatus
) -> Condition | None:
    for each in status.conditions or ():
        if each.type in result.binding_failure_conditions and each.status == TRUE:
            return each
    return None


def _is_ready(result: DeviceRequestAllocationResult, status: AllocatedDeviceStatus | None) -> bool:
    return set(result.binding_conditions) <= _true(status)


def _true(status: AllocatedDeviceStatus | None) -> set[str]:
    conditions = () if status is None else status.conditions or ()
    return {each.type for each in conditions if each.status == TRUE}
