"""The ledger: which devices are taken, by which claims, and how much of them.

It is rebuilt from allocated claims, and kept by putting and removing them: `put` and `remove`
of one claim are exactly inverse. Results with admin access take nothing. A result with a share
is one owner among several; without consumable capacity it is the owner of the whole device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple

from mooring.api.resource.v1 import DeviceRequestAllocationResult, ResourceClaim

ClaimKey = tuple[str, str]  # namespace, name
DeviceKey = tuple[str, str, str]  # driver, pool, device
PoolKey = tuple[str, str]


class Entry(NamedTuple):
    """A device, or a share of one, that a claim has."""

    claim: ClaimKey
    result: DeviceRequestAllocationResult


_share_id = attrgetter("result.share_id")

NOTHING: Mapping[str, list[Entry]] = {}


class Ledger:
    """What is taken. It changes only through `put` and `remove`."""

    def __init__(self, *, shares_are_whole: bool = False) -> None:
        self._shares_are_whole = shares_are_whole
        self._claims: dict[ClaimKey, tuple[DeviceRequestAllocationResult, ...]] = {}
        self._taken: dict[PoolKey, dict[str, list[Entry]]] = {}
        self._versions: dict[PoolKey, int] = {}
        self.changes = 0  # how often something was taken or given back

    def put(self, claim: ResourceClaim) -> None:
        """Enter what a claim has; what it had before is given back first."""
        key = (claim.metadata.namespace, claim.metadata.name)
        if key in self._claims:
            self.remove(*key)
        allocation = claim.status.allocation
        if allocation is None:
            return
        results = allocation.devices.results
        self._claims[key] = results
        self.changes += 1
        for result in results:
            if not result.admin_access:
                pool = (result.driver, result.pool)
                self._versions[pool] = self._versions.get(pool, 0) + 1
                devices = self._taken.setdefault(pool, {})
                devices.setdefault(result.device, []).append(Entry(key, result))

    def remove(self, namespace: str, name: str) -> None:
        """Give back what a claim has; it may have nothing."""
        key = (namespace, name)
        self.changes += 1
        for result in self._claims.pop(key, ()):
            if not result.admin_access:
                pool = (result.driver, result.pool)
                self._versions[pool] += 1
                devices = self._taken[pool]
                devices[result.device].remove(Entry(key, result))
                if not devices[result.device]:
                    del devices[result.device]
                    if not devices:
                        del self._taken[pool]

    def version(self, pool: PoolKey) -> int:
        """Return a number that changes whenever something in the pool is taken or given back."""
        return self._versions.get(pool, 0)

    def taken(self, pool: PoolKey) -> Mapping[str, list[Entry]]:
        """Return what is taken of a pool, by device."""
        return self._taken.get(pool, NOTHING)

    def results(self, claim: ClaimKey) -> tuple[DeviceRequestAllocationResult, ...]:
        """Return what a claim has, devices with admin access included."""
        return self._claims.get(claim, ())

    def has_owner(self, entries: Iterable[Entry]) -> bool:
        """Return whether one of the entries of a device is for the whole of it."""
        if self._shares_are_whole:
            return True
        return None in map(_share_id, entries)

    def has_shares(self, entries: Iterable[Entry]) -> bool:
        """Return whether one of the entries of a device is for a share."""
        if self._shares_are_whole:
            return False
        return any(entry.result.share_id is not None for entry in entries)

    def conflicts(self) -> Iterator[DeviceKey]:
        """Return the devices that claims have at once although none can share them."""
        for (driver, pool), devices in self._taken.items():
            for device, entries in devices.items():
                if len(entries) > 1 and self.has_owner(entries):
                    yield driver, pool, device

    @property
    def is_clean(self) -> bool:
        """Whether nothing is taken."""
        return not self._taken

    def __iter__(self) -> Iterator[DeviceKey]:
        for (driver, pool), devices in self._taken.items():
            for device in devices:
                yield driver, pool, device


def consumed_by_shares(entries: Iterable[Entry]) -> dict[str, int]:
    """Return what the shares of a device take of each capacity, in nano."""
    total: dict[str, int] = {}
    for _, result in entries:
        if result.share_id is not None and result.consumed_capacity:
            for name, amount in result.consumed_capacity.items():
                total[name] = total.get(name, 0) + amount.nano
    return total
