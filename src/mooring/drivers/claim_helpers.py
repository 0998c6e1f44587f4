"""What drivers share when they prepare claims."""

from __future__ import annotations

from collections.abc import Container, Iterable

from mooring.api.quantity import Quantity
from mooring.driver.driver import AllocatedDevice, Claim, PrepareError


def consumed(device: AllocatedDevice, name: str) -> Quantity | None:
    """Return how much of a capacity a claim consumes; the name may omit its domain."""
    for key in (name, name.rpartition("/")[2]):
        if key in device.consumed:
            return device.consumed[key]
    for key, value in device.consumed.items():
        if key.rpartition("/")[2] == name:
            return value
    return None


def devices_of_request(claim: Claim, request: str) -> tuple[AllocatedDevice, ...]:
    """Return the devices of one request, of which a container gets all or none."""
    return tuple(device for device in claim.devices if device.request == request)


def device_gone(device: AllocatedDevice) -> PrepareError:
    """Return the error for a device that was published and has disappeared."""
    return PrepareError(f"device {device.name}: there is no such device here now")


def check_present(claim: Claim, present: Container[str]) -> None:
    """Raise PrepareError unless all devices of a claim are present."""
    for device in claim.devices:
        if device.name not in present:
            raise device_gone(device)


def join_unique(values: Iterable[str]) -> str:
    """Join distinct values by commas, for an environment variable."""
    return ",".join(dict.fromkeys(values))
