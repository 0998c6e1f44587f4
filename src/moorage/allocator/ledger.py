"""The ledger: which devices are allocated, to which claims, and how much of them.

It is rebuilt from allocated claims, and kept by putting and removing them: `put` and `remove` of
one claim are exactly inverse. Results with admin access take nothing. A result with a share is one
owner among several; without consumable capacity it owns the whole device.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple

from moorage.api.resource.v1 import DeviceRequestAllocationResult, ResourceClaim

ClaimKey = tuple[str, str]  # namespace, name
DeviceKey = tuple[str, str, str]  # driver, pool, device
PoolKey = tuple[str, str]


class LedgerEntry(NamedTuple):
    """A device, or a share of one, that is allocated to a claim."""

    claim: ClaimKey
    result: DeviceRequestAllocationResult


class DeviceEntries:
    """The entries of one device, and how much of each capacity its shares consume, in nano."""

    __slots__ = ("_consumed", "listed")

    def __init__(self) -> None:
        self.listed: list[LedgerEntry] = []
        self._consumed: dict[str, int] | None = None  # summed up when somebody asks

    def __iter__(self) -> Iterator[LedgerEntry]:
        return iter(self.listed)

    def __len__(self) -> int:
        return len(self.listed)

    @property
    def consumed(self) -> Mapping[str, int]:
        """How much of each capacity the shares consume, in nano."""
        if self._consumed is None:
            self._consumed = consumed_by_shares(self.listed)
        return self._consumed

    def put(self, entry: LedgerEntry) -> None:
        """Add an entry."""
        self.listed.append(entry)
        if self._consumed is not None:
            self._count(entry.result, 1)

    def take_back(self, entry: LedgerEntry) -> None:
        """Remove an entry."""
        self.listed.remove(entry)
        if self._consumed is not None:
            self._count(entry.result, -1)

    def _count(self, result: DeviceRequestAllocationResult, sign: int) -> None:
        assert self._consumed is not None
        if result.share_id is None or not result.consumed_capacity:
            return
        total = dict(self._consumed)  # States of nodes hold the one before.
        for name, amount in result.consumed_capacity.items():
            total[name] = total.get(name, 0) + sign * amount.nano
        self._consumed = total


class _PoolEntries:
    """The entries of a pool by device, how often they changed, and which did at last."""

    __slots__ = ("_changed", "devices", "version")

    def __init__(self) -> None:
        self.version = 0
        self.devices: dict[str, DeviceEntries] = {}
        self._changed: list[str] = []  # newest last

    def note(self, device: str) -> None:
        """Count a change of a device's entries."""
        self.version += 1
        self._changed.append(device)
        if len(self._changed) > 2 * CHANGES_KEPT:
            del self._changed[:-CHANGES_KEPT]

    def changed_since(self, version: int) -> Collection[str] | None:
        """Return the devices that changed since a version; None if they are not known any more."""
        count = self.version - version
        if count > len(self._changed):
            return None
        return self._changed[-count:] if count else ()


_share_id = attrgetter("result.share_id")

CHANGES_KEPT = 8  # of a pool, at least

NOTHING: Mapping[str, DeviceEntries] = {}


class Ledger:
    """The allocated devices. It only changes through `put` and `remove`."""

    def __init__(self, *, shares_are_whole: bool = False) -> None:
        self._shares_are_whole = shares_are_whole
        self._claims: dict[ClaimKey, tuple[DeviceRequestAllocationResult, ...]] = {}
        self._pools: dict[PoolKey, _PoolEntries] = {}
        self.changes = 0  # how often something was allocated or released

    def put(self, claim: ResourceClaim) -> None:
        """Record the allocation of a claim, instead of an earlier one."""
        metadata = claim.metadata
        key = (metadata.namespace, metadata.name)
        if key in self._claims:
            self.remove(*key)
        allocation = claim.status.allocation
        if allocation is None:
            return
        results = allocation.devices.results
        self._claims[key] = results
        self.changes += 1
        for result in results:
            if result.admin_access:
                continue
            pool_key = (result.driver, result.pool)
            pool = self._pools.get(pool_key)
            if pool is None:
                pool = self._pools[pool_key] = _PoolEntries()
            pool.note(result.device)
            entries = pool.devices.get(result.device)
            if entries is None:
                entries = pool.devices[result.device] = DeviceEntries()
            entries.put(LedgerEntry(key, result))

    def remove(self, namespace: str, name: str) -> None:
        """Release the devices of a claim; it may have none."""
        key = (namespace, name)
        self.changes += 1
        for result in self._claims.pop(key, ()):
            if not result.admin_access:
                pool = self._pools[result.driver, result.pool]
                pool.note(result.device)
                entries = pool.devices[result.device]
                entries.take_back(LedgerEntry(key, result))
                if not entries.listed:
                    del pool.devices[result.device]

    def version(self, pool: PoolKey) -> int:
        """Return a number that changes whenever a device of the pool is allocated or released."""
        found = self._pools.get(pool)
        return 0 if found is None else found.version

    def taken(self, pool: PoolKey) -> Mapping[str, DeviceEntries]:
        """Return the entries of a pool, by device."""
        found = self._pools.get(pool)
        return NOTHING if found is None else found.devices

    def changed_since(self, pool: PoolKey, version: int) -> Collection[str] | None:
        """Return the devices that changed since a version of the pool; None if not known."""
        found = self._pools.get(pool)
        return () if found is None else found.changed_since(version)

    def results(self, claim: ClaimKey) -> tuple[DeviceRequestAllocationResult, ...]:
        """Return the devices of a claim, including those with admin access."""
        return self._claims.get(claim, ())

    def has_owner(self, entries: DeviceEntries) -> bool:
        """Return whether one of the entries of a device is for the whole of it."""
        if self._shares_are_whole:
            return True
        return None in map(_share_id, entries.listed)

    def has_shares(self, entries: DeviceEntries) -> bool:
        """Return whether one of the entries of a device is for a share."""
        if self._shares_are_whole:
            return False
        return any(entry.result.share_id is not None for entry in entries.listed)

    def conflicts(self) -> Iterator[DeviceKey]:
        """Yield the devices that are allocated twice although they cannot be shared."""
        for (driver, pool), found in self._pools.items():
            for device, entries in found.devices.items():
                if len(entries.listed) > 1 and self.has_owner(entries):
                    yield driver, pool, device

    @property
    def is_clean(self) -> bool:
        """Whether no device is allocated."""
        return not any(found.devices for found in self._pools.values())

    def __iter__(self) -> Iterator[DeviceKey]:
        for (driver, pool), found in self._pools.items():
            for device in found.devices:
                yield driver, pool, device


def consumed_by_shares(entries: Iterable[LedgerEntry]) -> dict[str, int]:
    """Return how much of each capacity the shares of a device consume, in nano."""
    total: dict[str, int] = {}
    for _, result in entries:
        if result.share_id is not None and result.consumed_capacity:
            for name, amount in result.consumed_capacity.items():
                total[name] = total.get(name, 0) + amount.nano
    return total
