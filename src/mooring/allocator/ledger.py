"""The ledger: which devices are taken, by which claims, and how much of them.

It is rebuilt from allocated claims, and kept by putting and removing them: `put` and `remove`
of one claim are exactly inverse. Results with admin access take nothing. A result with a share
is one owner among several; without consumable capacity it is the owner of the whole device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar

from mooring.api.resource.v1 import DeviceRequestAllocationResult, ResourceClaim

ClaimKey = tuple[str, str]  # namespace, name
DeviceKey = tuple[str, str, str]  # driver, pool, device
PoolKey = tuple[str, str]

T = TypeVar("T")


class Share(NamedTuple):
    """A part of a device that is taken."""

    claim: ClaimKey
    share_id: str
    consumed: Mapping[str, int]  # by capacity, in nano


class Ledger:
    """What is taken. Positions change only through `put` and `remove`."""

    def __init__(self, *, shares_are_whole: bool = False) -> None:
        self._shares_are_whole = shares_are_whole
        self._claims: dict[ClaimKey, tuple[DeviceRequestAllocationResult, ...]] = {}
        self._owners: dict[PoolKey, dict[str, list[ClaimKey]]] = {}
        self._shares: dict[PoolKey, dict[str, list[Share]]] = {}
        self._versions: dict[PoolKey, int] = {}

    def put(self, claim: ResourceClaim) -> None:
        """Enter what a claim has; what it had before is given back first."""
        metadata = claim.metadata
        key = (metadata.namespace, metadata.name)
        if key in self._claims:
            self.remove(*key)
        allocation = claim.status.allocation
        if allocation is None:
            return
        results = tuple(r for r in allocation.devices.results if not r.admin_access)
        if results:
            self._claims[key] = results
        for result in results:
            self._enter(key, result)

    def remove(self, namespace: str, name: str) -> None:
        """Give back what a claim has; it may have nothing."""
        key = (namespace, name)
        for result in self._claims.pop(key, ()):
            self._strike(key, result)

    def version(self, driver: str, pool: str) -> int:
        """Return a number that changes whenever something in the pool is taken or given back."""
        return self._versions.get((driver, pool), 0)

    def owners(self, driver: str, pool: str) -> Mapping[str, list[ClaimKey]]:
        """Return the claims that own devices of a pool wholly, by device."""
        return self._owners.get((driver, pool), {})

    def shares(self, driver: str, pool: str) -> Mapping[str, list[Share]]:
        """Return the shares of devices of a pool, by device."""
        return self._shares.get((driver, pool), {})

    def holders(self, driver: str, pool: str, device: str) -> tuple[ClaimKey, ...]:
        """Return the claims that have the device or a share of it."""
        whole = self.owners(driver, pool).get(device, [])
        shares = self.shares(driver, pool).get(device, [])
        return (*whole, *(share.claim for share in shares))

    @property
    def is_clean(self) -> bool:
        """Whether nothing is taken."""
        return not (self._claims or self._owners or self._shares)

    def __iter__(self) -> Iterator[DeviceKey]:
        for taken in (self._owners, self._shares):
            for (driver, pool), devices in taken.items():
                for device in devices:
                    yield driver, pool, device

    def _enter(self, key: ClaimKey, result: DeviceRequestAllocationResult) -> None:
        pool = (result.driver, result.pool)
        self._versions[pool] = self._versions.get(pool, 0) + 1
        if result.share_id is None or self._shares_are_whole:
            self._owners.setdefault(pool, {}).setdefault(result.device, []).append(key)
        else:
            share = Share(key, result.share_id, _in_nano(result))
            self._shares.setdefault(pool, {}).setdefault(result.device, []).append(share)

    def _strike(self, key: ClaimKey, result: DeviceRequestAllocationResult) -> None:
        pool = (result.driver, result.pool)
        self._versions[pool] += 1
        if result.share_id is None or self._shares_are_whole:
            owners = self._owners[pool]
            owners[result.device].remove(key)
            _drop_empty(self._owners, pool, result.device)
        else:
            shares = self._shares[pool][result.device]
            shares.remove(Share(key, result.share_id, _in_nano(result)))
            _drop_empty(self._shares, pool, result.device)


def _in_nano(result: DeviceRequestAllocationResult) -> dict[str, int]:
    return {name: amount.nano for name, amount in (result.consumed_capacity or {}).items()}


def _drop_empty(taken: dict[PoolKey, dict[str, list[T]]], pool: PoolKey, device: str) -> None:
    if not taken[pool][device]:
        del taken[pool][device]
        if not taken[pool]:
            del taken[pool]
