"""What drivers report of devices that must get ready before a pod is bound."""

from __future__ import annotations

from msgspec.structs import replace

from moorage.api.meta import Condition
from moorage.api.resource.v1 import AllocatedDeviceStatus, ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.scheduler.binding_conditions import failure, is_ready
from soak._live.pools import BROKEN, READY


def is_waited_for(claim: ResourceClaim) -> bool:
    """Return whether nothing was reported yet of a device of the claim."""
    return not is_ready(claim) and failure(claim) is None


def reported(claim: ResourceClaim, now: Timestamp, *, is_broken: bool) -> ResourceClaim:
    """Return the claim with what its driver reports."""
    assert claim.status.allocation is not None
    condition = Condition(
        type=BROKEN if is_broken else READY,
        status="True",
        last_transition_time=now,
        reason="Looked",
        message="so it is",
    )
    devices = tuple(
        AllocatedDeviceStatus(
            driver=each.driver, pool=each.pool, device=each.device, conditions=(condition,)
        )
        for each in claim.status.allocation.devices.results
        if each.binding_conditions
    )
    return replace(claim, status=replace(claim.status, devices=devices))
