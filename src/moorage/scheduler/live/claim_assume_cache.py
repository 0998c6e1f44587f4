"""The assume cache of claims: as the server has them, and as the scheduler must see them.

The last version to arrive is not always the newest: responses to our own writes come before the
watch reports them, and watch events can be late. The higher resource version wins. A claim that was
deleted stays deleted, whatever response comes late.

Between a decision and its write, a claim has devices for the scheduler and none for the server. A
newer version without devices does not take these back: it goes beneath them.

    # stored: the newest version that the server is known to have
    # waiting: pods that wait for a claim to be reserved; one write reserves it for all of them
    # ours: of these, for whom a write of ours reserved it; other schedulers write, too
    # allocated: the devices that a write of ours gave to a claim, as long as it has them
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from moorage.api.codec import decode_tree
from moorage.api.errors import ApiError
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from moorage.kit.lru import LRU
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.plugins.claim_needs import AssumedClaim, ClaimKey, claim_key

DELETED_MAX = 8192
CONSUMERS_MAX = 256


def version_of(value: Any) -> int | None:
    """Return the resource version as a number, if it is one."""
    text: str = value.metadata.resource_version
    return int(text) if text.isascii() and text.isdigit() else None


def is_newer(value: Any, old: Any | None) -> bool:
    """Return whether an object is neither the old one nor older."""
    if old is None:
        return True
    new_version, old_version = version_of(value), version_of(old)
    if new_version is None or old_version is None:
        return value is not old
    return new_version > old_version


class ClaimAssumeCache:
    """The claims of a cluster, with decisions that are not written yet."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.stored: dict[ClaimKey, ResourceClaim] = {}
        self._waiting: dict[ClaimKey, dict[str, ResourceClaimConsumerReference]] = {}
        self._ours: dict[ClaimKey, set[str]] = {}
        self._allocated: dict[ClaimKey, AllocationResult] = {}
        self._deleted_uids: LRU[str, bool] = LRU(DELETED_MAX)

    def put(self, claim: ResourceClaim) -> bool:
        """Add a version from the watch or a response; False if it is not news."""
        key = claim_key(claim)
        if claim.metadata.uid in self._deleted_uids or not is_newer(claim, self.stored.get(key)):
            return False
        self.stored[key] = claim
        if key in self._allocated and claim.status.allocation != self._allocated[key]:
            del self._allocated[key]
        assumed = self._cluster.assumed_claims.get(key)
        if assumed is None or not _is_beneath(claim, assumed):
            self._cluster.put_claim(claim)
        else:
            mine = self._cluster.claims[key]
            status = replace(mine.status, devices=claim.status.devices)
            self._cluster.put_claim(replace(claim, status=status))
            self._cluster.assumed_claims[key] = AssumedClaim(claim, assumed.pods)
        return True

    def remove(self, claim: ResourceClaim) -> bool:
        """Remove a claim that the server has no more; False if that is not news."""
        key, uid = claim_key(claim), claim.metadata.uid
        self._deleted_uids.put(uid, True)
        stored = self.stored.get(key)
        if stored is None or stored.metadata.uid != uid:
            return False
        del self.stored[key]
        self._allocated.pop(key, None)
        self._cluster.remove_claim(*key)
        return True

    def assume_new(self, claim: ResourceClaim, pod: str) -> None:
        """Assume a claim that was generated for a pod and is not created yet."""
        before = replace(claim, status=ResourceClaimStatus())
        self._cluster.assumed_claims[claim_key(claim)] = AssumedClaim(before, frozenset((pod,)))

    def restore(self, key: ClaimKey) -> None:
        """Show the scheduler the stored claim, unless something is assumed about it."""
        stored = self.stored.get(key)
        if stored is not None and key not in self._cluster.assumed_claims:
            self._cluster.put_claim(stored)

    def is_assumed(self, key: ClaimKey) -> bool:
        """Return whether devices were decided for a claim that has none at the server."""
        assumed = self._cluster.assumed_claims.get(key)
        return assumed is not None and assumed.before.status.allocation is None

    # --- pods that are being bound ----------------------------------------------------------------

    def add_waiting(
        self, key: ClaimKey, pod: str, consumer: ResourceClaimConsumerReference
    ) -> None:
        """Record that a pod waits for a claim to be reserved."""
        self._waiting.setdefault(key, {})[pod] = consumer

    def has_waiting(self, key: ClaimKey) -> bool:
        """Return whether a pod that is being bound uses a claim."""
        return key in self._waiting

    def remove_waiting(self, key: ClaimKey, pod: str) -> bool:
        """Record that a pod waits no more; return whether we reserved the claim for it."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.pop(pod, None)
            if not waiting:
                del self._waiting[key]
        ours = self._ours.get(key, set())
        is_ours = pod in ours
        ours.discard(pod)
        if not ours:
            self._ours.pop(key, None)
        return is_ours

    def allocated_by_us(self, key: ClaimKey) -> AllocationResult | None:
        """Return the devices that a write of ours gave to a claim, if it still has them."""
        return self._allocated.get(key)

    def record_write(self, base: ResourceClaim, claim: ResourceClaim) -> None:
        """Record that a write of ours reserved a claim for those who wait, perhaps with devices.

        The devices are ours if the version that the write was made from had none. What is stored
        now does not tell: the watch has nearly always reported the write before its response.
        """
        key, reserved = claim_key(claim), {*claim.status.reserved_for}
        if base.status.allocation is None and claim.status.allocation and self._has_still(claim):
            self._allocated[key] = claim.status.allocation
        waiting = self._waiting.get(key, {})
        pods = [pod for pod, consumer in waiting.items() if consumer in reserved]
        self._ours.setdefault(key, set()).update(pods)

    def _has_still(self, claim: ResourceClaim) -> bool:
        """Return whether no newer version is known to have other devices than a claim."""
        stored = self.stored.get(claim_key(claim))
        if stored is None or is_newer(claim, stored):
            return claim.metadata.uid not in self._deleted_uids
        return stored.status.allocation == claim.status.allocation

    def consumers(
        self, claim: ResourceClaim, first: ResourceClaimConsumerReference
    ) -> tuple[ResourceClaimConsumerReference, ...]:
        """Return who the claim is reserved for with the next write: one, and all who wait."""
        return tuple(self._consumers(claim, first))[:CONSUMERS_MAX]

    def _consumers(
        self, claim: ResourceClaim, first: ResourceClaimConsumerReference
    ) -> Iterator[ResourceClaimConsumerReference]:
        known = {*claim.status.reserved_for}
        yield from claim.status.reserved_for
        for each in (first, *self._waiting.get(claim_key(claim), {}).values()):
            if each not in known:
                known.add(each)
                yield each


def _is_beneath(claim: ResourceClaim, assumed: AssumedClaim) -> bool:
    """Return whether the assumptions about a claim still hold for its newer version."""
    before = assumed.before
    had_none = before.status.allocation is None and claim.status.allocation is None
    is_new = not before.metadata.resource_version  # it was not at the server before
    return had_none and (is_new or before.metadata.uid == claim.metadata.uid)


# --- claims that cannot be read -------------------------------------------------------------------


def held_claim(metadata: ObjectMeta, text: bytes) -> ResourceClaim | None:
    """Return a claim with the devices that an unreadable one names in its status, if any.

    A scheduler that starts has no earlier version of it. Without this it would give the devices
    away again, while a pod uses them.
    """
    try:
        tree = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    status = tree.get("status") if isinstance(tree, dict) else None
    results = {(each.driver, each.pool, each.device, each.share_id): each for each in _held(status)}
    if not results:
        return None
    devices = DeviceAllocationResult(results=tuple(results.values()))
    allocation = AllocationResult(devices=devices)
    return ResourceClaim(metadata=metadata, status=ResourceClaimStatus(allocation=allocation))


def _held(tree: Any) -> Iterator[DeviceRequestAllocationResult]:
    """Yield whatever in a tree names a device; as a whole, unless the rest can be read, too."""
    waiting = [tree]
    while waiting:
        here = waiting.pop()
        if isinstance(here, list):
            waiting += here
        elif isinstance(here, dict):
            waiting += here.values()
            names = [here.get(name) for name in ("driver", "pool", "device")]
            if all(isinstance(each, str) and each for each in names):
                yield _result(here)


def _result(tree: dict[str, Any]) -> DeviceRequestAllocationResult:
    try:
        return decode_tree(tree, DeviceRequestAllocationResult).value
    except ApiError:
        return DeviceRequestAllocationResult(
            driver=tree["driver"], pool=tree["pool"], device=tree["device"]
        )
