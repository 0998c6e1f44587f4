"""The device usage of all pools, updated as objects change.

After a change, only affected pools are evaluated again: those of changed slices, claims and nodes,
and all that use node selectors, because an invalid selector affects all pools of a node. Changed
classes and taint rules affect all pools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from moorage.allocator.pools import PoolId
from moorage.api.core.node import Node
from moorage.api.resource.v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.insight.devices import DeviceUsage, devices_in
from moorage.insight.devices.changed_pools import only_pools, pool_of, pools_of, selects_nodes
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.snapshot.unread import NOTHING_UNREAD, Unread
from moorage.validation.strategy import Context

ClaimKey = tuple[str, str]
Pools = set[PoolId]


class Evaluated(NamedTuple):
    """The devices of the evaluated pools, and whether the fleet still has the same devices."""

    devices: tuple[DeviceUsage, ...]
    are_same: bool


class PoolUsages:
    """The devices of a cluster with their states, by pool."""

    def __init__(self, context: Context, unread: Unread = NOTHING_UNREAD) -> None:
        self._context, self._unread = context, unread
        self.nodes: dict[str, Node] = {}
        self._classes: dict[str, DeviceClass] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self._slices: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._claims: dict[PoolId, dict[ClaimKey, ResourceClaim]] = {}
        self._on_node: dict[str, Pools] = {}
        self._selecting: Pools = set()
        self._usages: dict[PoolId, tuple[DeviceUsage, ...]] = {}
        self._concerned: Pools = set()
        self._are_all_concerned = False

    def copy(self) -> PoolUsages:
        """Return a copy."""
        found = PoolUsages(self._context, self._unread)
        found.nodes, found._classes, found._rules = (
            dict(self.nodes),
            dict(self._classes),
            dict(self._rules),
        )
        found._slices = {pool: dict(slices) for pool, slices in self._slices.items()}
        found._claims = {pool: dict(claims) for pool, claims in self._claims.items()}
        found._on_node = {node: set(pools) for node, pools in self._on_node.items()}
        found._selecting, found._usages = set(self._selecting), dict(self._usages)
        return found

    def devices(self) -> Iterator[DeviceUsage]:
        """Yield all devices."""
        return chain.from_iterable(self._usages.values())

    # --- changes ------------------------------------------------------------------------------

    def note(self, old: Any, new: Any) -> None:
        """Record a changed object; `None` before or after means that it did not exist."""
        match new if new is not None else old:
            case ResourceClaim():
                self._note_claim(old, new)
            case ResourceSlice():
                self._note_slice(old, new)
            case Node():
                self._note_node(old, new)
            case DeviceClass():
                self._are_all_concerned |= _noted(self._classes, old, new)
            case DeviceTaintRule():
                self._are_all_concerned |= _noted(self._rules, old, new)

    def _note_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        before = set() if old is None else set(pools_of(old))
        after = set() if new is None else set(pools_of(new))
        metadata = (old or new).metadata  # type: ignore[union-attr]  # one of them is there
        key = (metadata.namespace, metadata.name)
        for pool in before - after:
            self._claims[pool].pop(key, None)
        for pool in after:
            assert new is not None
            self._claims.setdefault(pool, {})[key] = new
        is_same = old is not None and new is not None and old.status == new.status
        if not is_same:
            self._concerned |= before | after

    def _note_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        for each in (old, new):
            if each is not None:
                self._concerned.add(pool_of(each))
        if old is not None:
            self._slices[pool_of(old)].pop(old.metadata.name, None)
        if new is not None:
            pool = pool_of(new)
            self._slices.setdefault(pool, {})[new.metadata.name] = new
            if new.spec.node_name:
                self._on_node.setdefault(new.spec.node_name, set()).add(pool)
            else:
                self._selecting.add(pool)

    def _note_node(self, old: Node | None, new: Node | None) -> None:
        name = (old or new).metadata.name  # type: ignore[union-attr]  # one of them is there
        were_known = bool(self.nodes)
        if new is None:
            self.nodes.pop(name, None)
        else:
            self.nodes[name] = new
        if _facts(old) != _facts(new):
            self._concerned |= self._on_node.get(name, set())
            self._are_all_concerned |= were_known != bool(self.nodes)

    # --- evaluation ---------------------------------------------------------------------------

    def evaluate(self) -> Evaluated:
        """Evaluate the pools that changes since the last evaluation affect."""
        pools = self._concerned
        if self._are_all_concerned:
            pools = {*self._slices, *self._claims, *self._usages}
        self._concerned, self._are_all_concerned = set(), False
        if not pools:
            return Evaluated((), are_same=True)
        pools |= {pool for pool in self._selecting if self._slices.get(pool)}
        found: dict[PoolId, list[DeviceUsage]] = {pool: [] for pool in pools}
        for usage in devices_in(self._part(pools), self._context):
            found[PoolId(usage.id.driver, usage.id.pool)].append(usage)
        are_same = all(
            _ids(usages) == _ids(self._usages.get(pool, ())) for pool, usages in found.items()
        )
        for pool, usages in found.items():
            if usages:
                self._usages[pool] = tuple(usages)
            else:
                self._usages.pop(pool, None)
        return Evaluated(tuple(chain.from_iterable(found.values())), are_same)

    def _part(self, pools: Pools) -> Snapshot:
        """Return everything that the states of the devices of some pools depend on."""
        slices = [each for pool in pools for each in self._slices.get(pool, {}).values()]
        claims = {key: claim for pool in pools for key, claim in self._claims.get(pool, {}).items()}
        part = Snapshot(
            nodes=tuple(self._nodes_for(slices)),
            classes=tuple(self._classes.values()),
            taint_rules=tuple(self._rules.values()),
            slices=tuple(slices),
            claims=tuple(claims[key] for key in sorted(claims)),
            unread=self._unread,
        )
        return only_pools(part, pools)

    def _nodes_for(self, slices: Iterable[ResourceSlice]) -> Iterable[Node]:
        """Return the relevant nodes: only those that are named, if nothing selects nodes."""
        names = {each.spec.node_name for each in slices}
        if None in names or any(map(selects_nodes, slices)):
            return self.nodes.values()
        found = [self.nodes[name] for name in names if name in self.nodes]
        # With no nodes at all, every device would be evaluated as if its node existed.
        return found or list(self.nodes.values())[:1]


def _noted(known: dict[str, Any], old: Any, new: Any) -> bool:
    """Record an object with a spec; return whether the spec changed."""
    name = (new if new is not None else old).metadata.name
    if new is None:
        known.pop(name, None)
    else:
        known[name] = new
    return old is None or new is None or old.spec != new.spec


def _facts(node: Node | None) -> Any:
    """Return the facts of a node that its devices depend on."""
    if node is None:
        return None
    return node.metadata.labels or {}, node.status.declared_features


def _ids(usages: Iterable[DeviceUsage]) -> list[Any]:
    return [usage.id for usage in usages]
