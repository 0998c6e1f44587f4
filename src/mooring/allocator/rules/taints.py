"""Taints: a device that is tainted is kept from requests that do not tolerate it."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.resource.v1 import Device, DeviceTaint, DeviceToleration

BLOCKING = ("NoSchedule", "NoExecute")


def blocking_taint(device: Device, tolerations: Iterable[DeviceToleration]) -> DeviceTaint | None:
    """Return the first taint that keeps the device from a request with these tolerations."""
    for taint in device.taints:
        if taint.effect in BLOCKING and not any(tolerates(t, taint) for t in tolerations):
            return taint
    return None


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Return whether a toleration covers a taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
    return False
