"""Claims with more than there is: who was first, so that a second scheduler does no harm.

No server refuses to store a device in two claims. But all changes of claims are told in one order,
to everyone the same. So of claims that cannot all have what they have, those that were told first
have it, and all schedulers that look see alike. A pod is bound only after the allocation of its
claims was told back, and only if there is enough besides what was told first; else they give back.

    # told: heard as a change, not only answered to our own write
    # whole: a device that a claim has for itself alone; else it has a share of it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count

from mooring.api.resource.v1 import (
    Counter,
    Device,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceSlice,
    ResourceSliceSpec,
)
from mooring.scheduler.cluster import ClaimKey
from mooring.scheduler.live.claimcache import version_of

DeviceKey = tuple[str, str, str]  # driver, pool, device
Given = tuple[DeviceRequestAllocationResult, ...]
SlicesOf = Callable[[str, str], Iterable[ResourceSlice]]  # by driver and pool
Amounts = dict[str, int]  # in nano


class Rivals:
    """Which claims have which devices as told, and since when."""

    def __init__(
        self,
        slices_of: SlicesOf = lambda *_: (),
        is_used: Callable[[ClaimKey], bool] = lambda _: False,
    ) -> None:
        self._slices_of = slices_of
        self._is_used = is_used  # whether a pod on a node uses a claim: then it came first
        self._given: dict[ClaimKey, Given] = {}
        self._orders: dict[ClaimKey, int] = {}
        self._owners: dict[DeviceKey, tuple[ClaimKey, ...]] = {}  # the first first
        self._pools: dict[tuple[str, str], dict[ClaimKey, None]] = {}  # with whole devices
        self._numbers = count()

    def told(self, claim: ResourceClaim) -> None:
        """Note a claim that was told."""
        key = (claim.metadata.namespace, claim.metadata.name)
        given = given_to(claim)
        if given == self._given.get(key, ()):
            return
        self.gone(key)
        if given:
            self._given[key] = given
            # The version is the order of changes, also of those that come at once in a list.
            version = version_of(claim)
            self._orders[key] = next(self._numbers) if version is None else version
            for result in given:
                device = _device_key(result)
                self._owners[device] = (*self._owners.get(device, ()), key)
                if result.share_id is None:
                    self._pools.setdefault(device[:2], {})[key] = None

    def gone(self, key: ClaimKey) -> None:
        """Note that a claim was told to be gone, or to have no devices."""
        self._orders.pop(key, None)
        for result in self._given.pop(key, ()):
            device = _device_key(result)
            owners = tuple(each for each in self._owners.get(device, ()) if each != key)
            if owners:
                self._owners[device] = owners
            else:
                self._owners.pop(device, None)
            claims = self._pools.get(device[:2], {})
            claims.pop(key, None)
            if not claims:
                self._pools.pop(device[:2], None)

    def has_told(self, claim: ResourceClaim) -> bool:
        """Return whether a claim was told with the devices that it has here."""
        key = (claim.metadata.namespace, claim.metadata.name)
        return self._given.get(key, ()) == given_to(claim)

    def first(self, key: ClaimKey) -> ClaimKey | None:
        """Return a claim that was told before this one with something that this one lacks now."""
        for result in self._given.get(key, ()):
            device = _device_key(result)
            earlier = self._earlier(key, self._owners[device])
            if earlier and (result.share_id is None or self._is_short(device, key, earlier)):
                return earlier[-1]
        for pool in {_device_key(result)[:2]: None for result in self._given.get(key, ())}:
            earlier = self._earlier(key, self._pools.get(pool, ()))
            if earlier and self._lacks_counters(pool, key, earlier):
                return earlier[-1]
        return None

    def _earlier(self, key: ClaimKey, others: Iterable[ClaimKey]) -> list[ClaimKey]:
        mine = self._place(key)
        return [each for each in others if each != key and self._place(each) < mine]

    def _place(self, key: ClaimKey) -> tuple[bool, int]:
        return not self._is_used(key), self._orders[key]

    # --- shares ---------------------------------------------------------------------------------

    def _is_short(self, device: DeviceKey, key: ClaimKey, earlier: list[ClaimKey]) -> bool:
        """Tell whether a device has too little for a claim's shares beside earlier ones."""
        found = self._find(device)
        if found is None:
            return False
        total: Amounts = {}
        for each in (*earlier, key):
            for result in self._given[each]:
                if _device_key(result) == device and result.consumed_capacity:
                    _add(total, {n: a.nano for n, a in result.consumed_capacity.items()})
        has = {name: capacity.value.nano for name, capacity in found.capacity.items()}
        return any(amount > has.get(name, amount) for name, amount in total.items())

    def _find(self, device: DeviceKey) -> Device | None:
        there = (each for slice_ in self._newest(device[:2]) for each in slice_.devices or ())
        return next((each for each in there if each.name == device[2]), None)

    # --- counters -------------------------------------------------------------------------------

    def _lacks_counters(
        self, pool: tuple[str, str], key: ClaimKey, earlier: list[ClaimKey]
    ) -> bool:
        """Tell whether the counters of a pool are too low for a claim beside earlier ones."""
        slices = self._newest(pool)
        has: dict[str, Amounts] = {
            each.name: _nano(each.counters)
            for slice_ in slices
            for each in slice_.shared_counters or ()
        }
        if not has:
            return False
        devices = {each.name: each for slice_ in slices for each in slice_.devices or ()}
        total: dict[str, Amounts] = {name: {} for name in has}
        for each in (*earlier, key):
            for consumed in self._consumption(pool, each, devices):
                for name, amounts in consumed.items():
                    _add(total.setdefault(name, {}), amounts)
        return any(
            amount > has.get(name, {}).get(counter, amount)
            for consumed in self._consumption(pool, key, devices)
            for name in consumed
            for counter, amount in total[name].items()
        )

    def _consumption(
        self, pool: tuple[str, str], key: ClaimKey, devices: dict[str, Device]
    ) -> Iterator[dict[str, Amounts]]:
        for result in self._given[key]:
            device = devices.get(result.device)
            if _device_key(result)[:2] == pool and device is not None:
                yield {each.counter_set: _nano(each.counters) for each in device.consumes_counters}

    def _newest(self, pool: tuple[str, str]) -> list[ResourceSliceSpec]:
        specs = [slice_.spec for slice_ in self._slices_of(*pool)]
        newest = max((spec.pool.generation for spec in specs), default=0)
        return [spec for spec in specs if spec.pool.generation == newest]


def given_to(claim: ResourceClaim) -> Given:
    """Return the devices and shares that a claim has, and that others cannot have."""
    allocation = claim.status.allocation
    if allocation is None:
        return ()
    return tuple([result for result in allocation.devices.results if not result.admin_access])


def _device_key(result: DeviceRequestAllocationResult) -> DeviceKey:
    return result.driver, result.pool, result.device


def _nano(counters: dict[str, Counter]) -> Amounts:
    return {name: counter.value.nano for name, counter in counters.items()}


def _add(total: Amounts, amounts: Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount
