"""Claims as the server has them, and as the scheduler must see them.

What is told last is not always newest: our own writes are answered before they are told as
changes, and changes can be late. The higher resource version wins. A claim that is gone stays
gone, whatever answer comes late.

Between a decision and its write, a claim has devices for the scheduler and none for the server.
A newer version without devices does not take these back: it is put beneath them.

    # stored: the newest version that the server is known to have
    # wanting: who waits for a claim to be reserved; one write reserves it for all of them
    # ours: of these, for whom a write of ours reserved it; other schedulers write, too
    # given: the devices that a write of ours gave to a claim, as long as it has them
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from mooring.api.resource.v1 import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from mooring.scheduler.cluster import ClaimKey, Cluster
from mooring.scheduler.holds import Hold

GONE_MAX = 8192
CONSUMERS_MAX = 256


def version_of(value: Any) -> int | None:
    """Return the resource version as a number, if it is one."""
    text: str = value.metadata.resource_version
    return int(text) if text.isascii() and text.isdigit() else None


def is_newer(value: Any, known: Any | None) -> bool:
    """Tell whether an object is not what is known already, nor older."""
    if known is None:
        return True
    new, old = version_of(value), version_of(known)
    if new is None or old is None:
        return value is not known
    return new > old


class ClaimCache:
    """The claims of a cluster, with what was decided and is not written yet."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.stored: dict[ClaimKey, ResourceClaim] = {}
        self._wanting: dict[ClaimKey, dict[str, ResourceClaimConsumerReference]] = {}
        self._ours: dict[ClaimKey, set[str]] = {}
        self._given: dict[ClaimKey, AllocationResult] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()  # uids

    def seen(self, claim: ResourceClaim) -> bool:
        """Take in what the server has, told or answered; False if it is not news."""
        key = key_of(claim)
        if claim.metadata.uid in self._gone or not is_newer(claim, self.stored.get(key)):
            return False
        self.stored[key] = claim
        if key in self._given and claim.status.allocation != self._given[key]:
            del self._given[key]
        hold = self._cluster.holds.get(key)
        if hold is None or not self._is_beneath(claim, hold):
            self._cluster.put_claim(claim)
        else:
            mine = self._cluster.claims[key]
            status = replace(mine.status, devices=claim.status.devices)
            self._cluster.put_claim(replace(claim, status=status))
            self._cluster.holds[key] = Hold(claim, hold.pods)
        return True

    def removed(self, claim: ResourceClaim) -> bool:
        """Take in that the server has a claim no more; False if that is not news."""
        key, uid = key_of(claim), claim.metadata.uid
        self._gone[uid] = None
        if len(self._gone) > GONE_MAX:
            self._gone.popitem(last=False)
        known = self.stored.get(key)
        if known is None or known.metadata.uid != uid:
            return False
        del self.stored[key]
        self._given.pop(key, None)
        self._cluster.remove_claim(*key)
        return True

    def made(self, claim: ResourceClaim, pod: str) -> None:
        """Note a claim that was made for a pod and is to be created."""
        before = replace(claim, status=ResourceClaimStatus())
        self._cluster.holds[key_of(claim)] = Hold(before, frozenset((pod,)))

    def restore(self, key: ClaimKey) -> None:
        """Let the scheduler see a claim as it is stored, unless something is decided about it."""
        stored = self.stored.get(key)
        if stored is not None and key not in self._cluster.holds:
            self._cluster.put_claim(stored)

    def is_decided(self, key: ClaimKey) -> bool:
        """Tell whether devices were decided for a claim that has none at the server."""
        hold = self._cluster.holds.get(key)
        return hold is not None and hold.before.status.allocation is None

    def want(self, key: ClaimKey, pod: str, consumer: ResourceClaimConsumerReference) -> None:
        """Note that a pod waits for a claim to be reserved."""
        self._wanting.setdefault(key, {})[pod] = consumer

    def is_wanted(self, key: ClaimKey) -> bool:
        """Tell whether a pod that is being bound uses a claim."""
        return key in self._wanting

    def given(self, key: ClaimKey) -> AllocationResult | None:
        """Return the devices that a write of ours gave to a claim, if it still has them."""
        return self._given.get(key)

    def wrote(self, claim: ResourceClaim) -> None:
        """Note that a write of ours reserved a claim for those who wait, perhaps with devices."""
        reserved = {*claim.status.reserved_for}
        stored = self.stored.get(key_of(claim))
        if (stored is None or stored.status.allocation is None) and claim.status.allocation:
            self._given[key_of(claim)] = claim.status.allocation
        waiting = self._wanting.get(key_of(claim), {})
        pods = [pod for pod, consumer in waiting.items() if consumer in reserved]
        self._ours.setdefault(key_of(claim), set()).update(pods)

    def unwant(self, key: ClaimKey, pod: str) -> bool:
        """Note that a pod waits no more; tell whether we reserved the claim for it."""
        wanting = self._wanting.get(key)
        if wanting is not None:
            wanting.pop(pod, None)
            if not wanting:
                del self._wanting[key]
        ours = self._ours.get(key, set())
        is_ours = pod in ours
        ours.discard(pod)
        if not ours:
            self._ours.pop(key, None)
        return is_ours

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
        for each in (first, *self._wanting.get(key_of(claim), {}).values()):
            if each not in known:
                known.add(each)
                yield each

    @staticmethod
    def _is_beneath(claim: ResourceClaim, hold: Hold) -> bool:
        before = hold.before
        had_none = before.status.allocation is None and claim.status.allocation is None
        is_new = not before.metadata.resource_version  # it was not at the server before
        return had_none and (is_new or before.metadata.uid == claim.metadata.uid)


def key_of(claim: ResourceClaim) -> ClaimKey:
    """Return the namespace and name of a claim."""
    return claim.metadata.namespace, claim.metadata.name
