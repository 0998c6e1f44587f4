"""Finds the pools whose devices may be in another state after a change of claims.

The state of a device depends on the slices of its pool, on the claims that have devices of the
pool, on taint rules, and on the names, labels and capabilities of nodes. If only claims changed,
all other pools stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from operator import is_
from typing import Any

from msgspec.structs import replace

from moorage.allocator.pools import PoolId
from moorage.api.resource.v1 import ResourceClaim, ResourceSlice
from moorage.insight.snapshot.snapshot import Snapshot


def changed_pools(before: Snapshot, after: Snapshot) -> Set[PoolId] | None:
    """Return the pools that may differ, or None if any may, because more than claims changed.

    An invalid selector affects all pools of a node, so pools with selectors always may differ.
    """
    facts = ("slices", "classes", "taint_rules")
    if not all(_are_same(getattr(before, name), getattr(after, name)) for name in facts):
        return None
    for part in ("metadata", "status"):  # The spec of a node matters for pods only.
        if not _are_same(*([getattr(n, part) for n in s.nodes] for s in (before, after))):
            return None
    found = {pool_of(slice_) for slice_ in after.slices if selects_nodes(slice_)}
    old, new = ({id(claim): claim for claim in each.claims} for each in (before, after))
    for differing in old.keys() ^ new.keys():
        found.update(pools_of(old.get(differing) or new[differing]))
    return found


def only_pools(snapshot: Snapshot, pools: Set[PoolId]) -> Snapshot:
    """Return the cluster with these pools alone, and with only their devices in claims."""
    return Snapshot(
        nodes=snapshot.nodes,
        classes=snapshot.classes,
        taint_rules=snapshot.taint_rules,
        slices=tuple(each for each in snapshot.slices if pool_of(each) in pools),
        claims=tuple(
            _only(claim, pools)
            for claim in snapshot.claims
            if not pools.isdisjoint(pools_of(claim))
        ),
        unread=snapshot.unread,
    )


def pool_of(slice_: ResourceSlice) -> PoolId:
    """Return the pool of a slice."""
    return PoolId(slice_.spec.driver, slice_.spec.pool.name)


def _are_same(before: Iterable[Any], after: Iterable[Any]) -> bool:
    old, new = list(before), list(after)
    return len(old) == len(new) and all(map(is_, old, new))


def selects_nodes(slice_: ResourceSlice) -> bool:
    """Return whether a selector chooses the nodes of a slice or of its devices."""
    return slice_.spec.node_selector is not None or bool(slice_.spec.per_device_node_selection)


def pools_of(claim: ResourceClaim) -> Iterator[PoolId]:
    """Yield the pools of the devices that a claim has."""
    allocation = claim.status.allocation
    if allocation is not None:
        yield from (PoolId(each.driver, each.pool) for each in allocation.devices.results)


def _only(claim: ResourceClaim, pools: Set[PoolId]) -> ResourceClaim:
    status, allocation = claim.status, claim.status.allocation
    assert allocation is not None
    results = tuple(
        each for each in allocation.devices.results if PoolId(each.driver, each.pool) in pools
    )
    devices = replace(allocation.devices, results=results)
    return replace(claim, status=replace(status, allocation=replace(allocation, devices=devices)))
