"""Double allocation: claims with more than there is, and which of them was first.

No server refuses to store a device in two claims, so two schedulers can give it away twice. But the
watch reports all changes of claims in one order, to everyone the same. So of claims that cannot all
have their devices, the ones that the watch reported first have them, and all schedulers agree. A
pod is bound only after the watch has reported the allocation of its claims, and only if there is
enough besides what was reported first; else the devices are deallocated.

A list hides the order: the version of a claim says when it was written last, not when it got its
devices. That was after all that was reported before, and not after this version. A claim that is
not certain to be first gives way. Two may give way to each other; then both start again.

    # watched: reported by the watch, not only returned by our own write
    # since: when a claim got its devices, if known
    # whole: a device that a claim has for itself alone; else it has a share of it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any, NamedTuple

from moorage.api.resource.v1 import (
    Counter,
    Device,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.scheduler.live.claim_assume_cache import version_of
from moorage.scheduler.plugins.claim_needs import ClaimKey, claim_key

DeviceKey = tuple[str, str, str]  # driver, pool, device
AllocationResults = tuple[DeviceRequestAllocationResult, ...]
SlicesOf = Callable[[str, str], Iterable[ResourceSlice]]  # by driver and pool
NanoAmounts = dict[str, int]


class AllocatedSince(NamedTuple):
    """The versions between which a claim got its devices, both included."""

    earliest: int
    latest: int


class DoubleAllocations:
    """Which claims have which devices by the watch, and since when."""

    def __init__(
        self,
        slices_of: SlicesOf = lambda *_: (),
        is_used: Callable[[ClaimKey], bool] = lambda _: False,
    ) -> None:
        self._slices_of = slices_of
        self._is_used = is_used  # whether a pod on a node uses a claim: then it came first
        self._results: dict[ClaimKey, AllocationResults] = {}
        self._since: dict[ClaimKey, AllocatedSince] = {}
        self._versions: dict[ClaimKey, int] = {}  # of claims with devices, as last watched
        self._owners: dict[DeviceKey, dict[ClaimKey, None]] = {}
        self._pools: dict[tuple[str, str], dict[ClaimKey, None]] = {}  # with whole devices
        self._numbers = count(1)  # instead of versions, for servers whose versions are no numbers
        self._complete = 0  # everything up to this version was watched
        self._newest = 0

    def put(self, claim: ResourceClaim, *, is_listed: bool = False) -> None:
        """Record a claim that the watch reported, as a change or in a list."""
        key = claim_key(claim)
        results = results_of(claim)
        version = version_of(claim)
        version = next(self._numbers) if version is None else version
        self._newest = max(self._newest, version)
        is_same = results == self._results.get(key, ())
        since = (
            AllocatedSince(self._complete + 1, version)
            if is_listed
            else AllocatedSince(version, version)
        )
        if is_same and results:
            # A list may hide that the devices were deallocated, and allocated again.
            since = (
                AllocatedSince(self._since[key].earliest, version)
                if is_listed
                else self._since[key]
            )
        else:
            self.remove(key)
        if results:
            self._since[key], self._versions[key] = since, version
            if not is_same:
                self._add(key, results)

    def end_list(self) -> None:
        """Record that a list is over, if there was one: everything before it was watched."""
        self._complete = self._newest

    def remove(self, key: ClaimKey) -> None:
        """Record that a claim was deleted, or deallocated."""
        self._since.pop(key, None)
        self._versions.pop(key, None)
        for result in self._results.pop(key, ()):
            device = _device_key(result)
            _discard(self._owners, device, key)
            _discard(self._pools, device[:2], key)

    def has_watched(self, claim: ResourceClaim, version: int | None) -> bool:
        """Return whether the watch reported a claim with its devices, in this version."""
        key = claim_key(claim)
        if self._results.get(key, ()) != results_of(claim):
            return False
        return version is None or self._versions.get(key, version) >= version

    def first_owner(self, key: ClaimKey) -> ClaimKey | None:
        """Return a claim that may have been first with something that this one lacks now."""
        for result in self._results.get(key, ()):
            device = _device_key(result)
            earlier = self._earlier(key, self._owners[device])
            if earlier and (result.share_id is None or self._is_short(device, key, earlier)):
                return earlier[-1]
        for pool in {_device_key(result)[:2]: None for result in self._results.get(key, ())}:
            slices = self._slices(pool)
            if not any(slice_.shared_counters for slice_ in slices):
                continue  # as in most pools, of which many claims may have devices
            earlier = self._earlier(key, self._pools.get(pool, ()))
            if earlier and self._lacks_counters(pool, slices, key, earlier):
                return earlier[-1]
        return None

    def _add(self, key: ClaimKey, results: AllocationResults) -> None:
        self._results[key] = results
        for result in results:
            device = _device_key(result)
            self._owners.setdefault(device, {})[key] = None
            if result.share_id is None:
                self._pools.setdefault(device[:2], {})[key] = None

    def _earlier(self, key: ClaimKey, others: Iterable[ClaimKey]) -> list[ClaimKey]:
        return [each for each in others if each != key and self._may_precede(each, key)]

    def _may_precede(self, other: ClaimKey, key: ClaimKey) -> bool:
        """Return whether another claim may have got its devices first."""
        is_used = self._is_used(other)
        if is_used != self._is_used(key):
            return is_used
        return self._since[other].earliest < self._since[key].latest

    # --- shares ---------------------------------------------------------------------------------

    def _is_short(self, device: DeviceKey, key: ClaimKey, earlier: list[ClaimKey]) -> bool:
        """Return whether a device may have too little for a claim's shares beside earlier ones."""
        found = self._find(device)
        if found is None:  # It is not published any more, so nobody knows.
            return not self._is_used(key)
        total: NanoAmounts = {}
        for each in (*earlier, key):
            for result in self._results[each]:
                if _device_key(result) == device and result.consumed_capacity:
                    _add_to(total, {n: a.nano for n, a in result.consumed_capacity.items()})
        has = {name: capacity.value.nano for name, capacity in found.capacity.items()}
        return any(amount > has.get(name, amount) for name, amount in total.items())

    def _find(self, device: DeviceKey) -> Device | None:
        there = (each for slice_ in self._slices(device[:2]) for each in slice_.devices or ())
        return next((each for each in there if each.name == device[2]), None)

    # --- counters -------------------------------------------------------------------------------

    def _lacks_counters(
        self,
        pool: tuple[str, str],
        slices: list[ResourceSliceSpec],
        key: ClaimKey,
        earlier: list[ClaimKey],
    ) -> bool:
        """Return whether the counters of a pool are too low for a claim beside earlier ones."""
        has: dict[str, NanoAmounts] = {
            each.name: _nano(each.counters)
            for slice_ in slices
            for each in slice_.shared_counters or ()
        }
        devices = {each.name: each for slice_ in slices for each in slice_.devices or ()}
        total: dict[str, NanoAmounts] = {name: {} for name in has}
        for each in (*earlier, key):
            for consumed in self._consumption(pool, each, devices):
                for name, amounts in consumed.items():
                    _add_to(total.setdefault(name, {}), amounts)
        return any(
            amount > has.get(name, {}).get(counter, amount)
            for consumed in self._consumption(pool, key, devices)
            for name in consumed
            for counter, amount in total[name].items()
        )

    def _consumption(
        self, pool: tuple[str, str], key: ClaimKey, devices: dict[str, Device]
    ) -> Iterator[dict[str, NanoAmounts]]:
        for result in self._results[key]:
            device = devices.get(result.device)
            if _device_key(result)[:2] == pool and device is not None:
                yield {each.counter_set: _nano(each.counters) for each in device.consumes_counters}

    def _slices(self, pool: tuple[str, str]) -> list[ResourceSliceSpec]:
        specs = [slice_.spec for slice_ in self._slices_of(*pool)]
        newest = max((spec.pool.generation for spec in specs), default=0)
        return [spec for spec in specs if spec.pool.generation == newest]


def _discard(owners: dict[Any, dict[ClaimKey, None]], place: Any, key: ClaimKey) -> None:
    there = owners.get(place, {})
    there.pop(key, None)
    if not there:
        owners.pop(place, None)


def results_of(claim: ResourceClaim) -> AllocationResults:
    """Return the devices and shares that a claim has, and that others cannot have."""
    allocation = claim.status.allocation
    if allocation is None:
        return ()
    return tuple([result for result in allocation.devices.results if not result.admin_access])


def _device_key(result: DeviceRequestAllocationResult) -> DeviceKey:
    return result.driver, result.pool, result.device


def _nano(counters: dict[str, Counter]) -> NanoAmounts:
    return {name: counter.value.nano for name, counter in counters.items()}


def _add_to(total: NanoAmounts, amounts: NanoAmounts) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount
