"""What drivers have in common when they give devices to claims."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.quantity import Quantity
from mooring.driver.driver import AllocatedDevice, Claim, PrepareError


def consumed(device: AllocatedDevice, name: str) -> Quantity | None:
    """Return how much of a capacity a claim takes; the name may have its domain or not."""
    for key in (name, name.rpartition("/")[2]):
        if key in device.consumed:
            return device.consumed[key]
    for key, value in device.consumed.items():
        if key.rpartition("/")[2] == name:
            return value
    return None


def devices_of_request(claim: Claim, request: str) -> tuple[AllocatedDevice, ...]:
    """Return the devices of one request: a container gets all of them, or none."""
    return tuple(device for device in claim.devices if device.request == request)


def device_gone(device: AllocatedDevice) -> PrepareError:
    """Return the error for a device that was published and is not there any more."""
    return PrepareError(f"device {device.name}: there is no such device here now")


def join_unique(values: Iterable[str]) -> str:
    """Return values as one variable has them, each once."""
    return ",".join(dict.fromkeys(values))
