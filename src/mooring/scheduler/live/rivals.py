"""Two claims with one device: who was first, so that a second scheduler does no harm.

No server refuses to store a device in two claims. But all changes of claims are told in one order,
to everyone the same. So of two claims with one device the one that was told first has it, and all
schedulers that look see alike. A pod is bound only after the allocation of its claims was told
back, and only if no other claim was told first with one of the devices; else it gives them back.

Shares of devices are not compared, nor are counters that partitions have in common.

    # told: heard as a change, not only answered to our own write
"""

from __future__ import annotations

from itertools import count

from mooring.api.resource.v1 import ResourceClaim
from mooring.scheduler.cluster import ClaimKey

DeviceKey = tuple[str, str, str]  # driver, pool, device


class Rivals:
    """Which claims have which devices as told, and since when."""

    def __init__(self) -> None:
        self._devices: dict[ClaimKey, tuple[DeviceKey, ...]] = {}
        self._orders: dict[ClaimKey, int] = {}
        self._owners: dict[DeviceKey, tuple[ClaimKey, ...]] = {}
        self._numbers = count()

    def told(self, claim: ResourceClaim) -> None:
        """Note a claim that was told."""
        key = (claim.metadata.namespace, claim.metadata.name)
        devices = whole_devices(claim)
        if devices == self._devices.get(key, ()):
            return
        self.gone(key)
        if devices:
            self._devices[key] = devices
            self._orders[key] = next(self._numbers)
            for device in devices:
                self._owners[device] = (*self._owners.get(device, ()), key)

    def gone(self, key: ClaimKey) -> None:
        """Note that a claim was told to be gone, or to have no devices."""
        self._orders.pop(key, None)
        for device in self._devices.pop(key, ()):
            owners = tuple(each for each in self._owners[device] if each != key)
            if owners:
                self._owners[device] = owners
            else:
                del self._owners[device]

    def has_told(self, claim: ResourceClaim) -> bool:
        """Return whether a claim was told with the devices that it has here."""
        key = (claim.metadata.namespace, claim.metadata.name)
        return self._devices.get(key, ()) == whole_devices(claim)

    def first(self, key: ClaimKey) -> ClaimKey | None:
        """Return a claim that was told before this one with one of its devices."""
        for device in self._devices.get(key, ()):
            for other in self._owners[device]:
                if self._orders[other] < self._orders[key]:
                    return other
        return None


def whole_devices(claim: ResourceClaim) -> tuple[DeviceKey, ...]:
    """Return the devices that a claim has for itself alone."""
    allocation = claim.status.allocation
    if allocation is None:
        return ()
    return tuple(
        [
            (result.driver, result.pool, result.device)
            for result in allocation.devices.results
            if result.share_id is None and not result.admin_access
        ]
    )
