"""Taints: a device that is tainted is kept from requests that do not tolerate it."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.devicetaints import NO_EXECUTE, NO_SCHEDULE
from mooring.api.devicetaints import tolerates as tolerates
from mooring.api.resource.v1 import Device, DeviceTaint, DeviceToleration

BLOCKING = (NO_SCHEDULE, NO_EXECUTE)


def blocking_taint(device: Device, tolerations: Iterable[DeviceToleration]) -> DeviceTaint | None:
    """Return the first taint that keeps the device from a request with these tolerations."""
    for taint in device.taints:
        if taint.effect in BLOCKING and not any(tolerates(t, taint) for t in tolerations):
            return taint
    return None
