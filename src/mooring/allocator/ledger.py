"""The ledger: which devices are allocated, to which claims, and how much of them.

It is rebuilt from allocated claims, and kept by putting and removing them: `put` and `remove` of
one claim are exactly inverse. Results with admin access take nothing. A result with a share is one
owner among several; without consumable capacity it owns the whole device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple

from mooring.api.resource.v1 import DeviceRequestAllocationResult, ResourceClaim

ClaimKey = tuple[str, str]  # namespace, name
DeviceKey = tuple[str, str, str]  # driver, pool, device
PoolKey = tuple[str, str]


class LedgerEntry(NamedTuple):
    """A device, or a share of one, that is allocated to a claim."""

    claim: ClaimKey
    result: DeviceRequestAllocationResult


_share_id = attrgetter("result.share_id")

NOTHING: Mapping[str, list[LedgerEntry]] = {}


class Ledger:
    """The allocated devices. It only changes through `put` and `remove`."""

    def __init__(self, *, shares_are_whole: bool = False) -> None:
        self._shares_are_whole = shares_are_whole
        self._claims: dict[ClaimKey, tuple[DeviceRequestAllocationResult, ...]] = {}
        self._taken: dict[PoolKey, dict[str, list[LedgerEntry]]] = {}
        self._versions: dict[PoolKey, int] = {}
        self.changes = 0  # how often something was allocated or released

    def put(self, claim: ResourceClaim) -> None:
        """Record the allocation of a claim, instead of an earlier one."""
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
                devices.setdefault(result.device, []).append(LedgerEntry(key, result))

    def remove(self, namespace: str, name: str) -> None:
        """Release the devices of a claim; it may have none."""
        key = (namespace, name)
        self.changes += 1
        for result in self._claims.pop(key, ()):
            if not result.admin_access:
                pool = (result.driver, result.pool)
                self._versions[pool] += 1
                devices = self._taken[pool]
                devices[result.device].remove(LedgerEntry(key, result))
                if not devices[result.device]:
                    del devices[result.device]
                    if not devices:
                        del self._taken[pool]

    def version(self, pool: PoolKey) -> int:
        """Return a number that changes whenever a device of the pool is allocated or released."""
        return self._versions.get(pool, 0)

    def taken(self, pool: PoolKey) -> Mapping[str, list[LedgerEntry]]:
        """Return the entries of a pool, by device."""
        return self._taken.get(pool, NOTHING)

    def results(self, claim: ClaimKey) -> tuple[DeviceRequestAllocationResult, ...]:
        """Return the devices of a claim, including those with admin access."""
        return self._claims.get(claim, ())

    def has_owner(self, entries: Iterable[LedgerEntry]) -> bool:
        """Return whether one of the entries of a device is for the whole of it."""
        if self._shares_are_whole:
            return True
        return None in map(_share_id, entries)

    def has_shares(self, entries: Iterable[LedgerEntry]) -> bool:
        """Return whether one of the entries of a device is for a share."""
        if self._shares_are_whole:
            return False
        return any(entry.result.share_id is not None for entry in entries)

    def conflicts(self) -> Iterator[DeviceKey]:
        """Yield the devices that are allocated twice although they cannot be shared."""
        for (driver, pool), devices in self._taken.items():
            for device, entries in devices.items():
                if len(entries) > 1 and self.has_owner(entries):
                    yield driver, pool, device

    @property
    def is_clean(self) -> bool:
        """Whether no device is allocated."""
        return not self._taken

    def __iter__(self) -> Iterator[DeviceKey]:
        for (driver, pool), devices in self._taken.items():
            for device in devices:
                yield driver, pool, device


def consumed_by_shares(entries: Iterable[LedgerEntry]) -> dict[str, int]:
    """Return how much of each capacity the shares of a device consume, in nano."""
    total: dict[str, int] = {}
    for _, result in entries:
        if result.share_id is not None and result.consumed_capacity:
            for name, amount in result.consumed_capacity.items():
                total[name] = total.get(name, 0) + amount.nano
    return total
