"""The inventory: slices, classes and allocations, ready for the next allocation.

Objects are put and removed one by one. Everything derived from them (pools, candidates, results of
expressions, free devices) is computed on demand, and again only for what changed: a slice
invalidates its pool, a claim the pools of its devices, a class nothing but itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter

from moorage.allocator.errors import BudgetError
from moorage.allocator.features import ALL_FEATURES, Features
from moorage.allocator.ledger import Ledger
from moorage.allocator.node_view import NodeView
from moorage.allocator.pool_facts import PoolFacts
from moorage.allocator.pool_slices import PoolSlices
from moorage.allocator.pools import Pool, PoolId
from moorage.allocator.problem import Problem
from moorage.allocator.requests import RequestPlan, content_of, plan_of
from moorage.allocator.rules.constraints import PublishedTables
from moorage.allocator.rules.consumption import PublishedCounters, amounts_of
from moorage.api.core.node import Node
from moorage.api.resource.v1 import Device, DeviceClass, ResourceClaim, ResourceSlice
from moorage.cel.device import CelFeatures, DeviceCompiler
from moorage.cel.lang.metering import Interrupted

PLANS_MAX = 1024
PROBLEMS_MAX = 8  # of one node
HOPELESS_MAX = 256  # of one node
NO_POOLS: Mapping[str, PoolSlices] = {}


class Inventory:
    """Everything that allocation depends on besides the claims and the node."""

    def __init__(
        self, features: Features = ALL_FEATURES, *, compiler: DeviceCompiler | None = None
    ) -> None:
        self.features = features
        self.ledger = Ledger(shares_are_whole=not features.consumable_capacity)
        self._classes: dict[str, DeviceClass] = {}
        self._plans: dict[tuple[bytes, ...], RequestPlan] = {}
        self._slices: dict[str, ResourceSlice] = {}
        self._pools: dict[tuple[str, str], PoolSlices] = {}
        self._pools_of_node: dict[str, dict[str, PoolSlices]] = {}  # by slice that is for the node
        self._shared_pools: dict[PoolId, PoolSlices] = {}
        self._shared_version = 0
        self._changes = 0  # how often a slice was put or removed
        self._unusual = UnusualSlices()
        self._views: dict[str, NodeView] = {}
        self._problems: dict[str, dict[RequestPlan, Problem]] = {}  # by node, of its view
        self._published = PublishedTables(with_lists=features.list_type_attributes)
        self._counters = PublishedCounters()
        self.compiler = compiler or DeviceCompiler(
            CelFeatures(list_attributes=True), extensions=False
        )

    # --- changing -------------------------------------------------------------------------------

    def put_slice(self, slice_: ResourceSlice, *, key: str | None = None) -> None:
        """Add a slice, or replace the one of the same name (or key)."""
        key = slice_.metadata.name if key is None else key
        if key in self._slices:
            self.remove_slice(key)
        self._slices[key] = slice_
        spec = slice_.spec
        pool_id = (spec.driver, spec.pool.name)
        pool = self._pools.get(pool_id)
        if pool is None:
            pool = self._pools[pool_id] = PoolSlices(PoolId(*pool_id), self.features)
        self._changes += 1
        pool.put(key, slice_, self._changes)
        self._unusual.put(key, slice_)
        if spec.node_name:
            pools = self._pools_of_node.get(spec.node_name)
            if pools is None:
                self._pools_of_node[spec.node_name] = {key: pool}
            else:
                pools[key] = pool
        if pool.shared_count:
            self._shared_version = self._changes
            self._shared_pools[pool.id] = pool

    def remove_slice(self, key: str) -> None:
        """Remove a slice."""
        slice_ = self._slices.pop(key)
        spec = slice_.spec
        pool = self._pools[spec.driver, spec.pool.name]
        self._changes += 1
        pool.remove(key, self._changes)
        self._unusual.remove(key, slice_)
        if spec.node_name:
            pools = self._pools_of_node[spec.node_name]
            del pools[key]
            if not pools:
                del self._pools_of_node[spec.node_name]
        if pool.shared_count or not spec.node_name:
            self._shared_version = self._changes
            if not pool.shared_count:
                del self._shared_pools[pool.id]
        if pool.is_empty:
            del self._pools[pool.id]

    def put_class(self, device_class: DeviceClass) -> None:
        """Add a class, or replace the one of the same name."""
        self._classes[device_class.metadata.name] = device_class
        self._plans.clear()

    def remove_class(self, name: str) -> None:
        """Remove a class."""
        del self._classes[name]
        self._plans.clear()

    def put_claim(self, claim: ResourceClaim) -> None:
        """Record the allocation of a claim, instead of an earlier one."""
        self.ledger.put(claim)

    def remove_claim(self, namespace: str, name: str) -> None:
        """Release the devices of a claim."""
        self.ledger.remove(namespace, name)

    def drop_node(self, name: str) -> None:
        """Drop the cached view of a node."""
        self._views.pop(name, None)
        self._problems.pop(name, None)

    # --- reading --------------------------------------------------------------------------------

    def device_class(self, name: str) -> DeviceClass | None:
        """Return the class of a name."""
        return self._classes.get(name)

    @property
    def has_node_resources(self) -> bool:
        """Whether some device maps to resources of its node."""
        return self._unusual.with_node_resources > 0

    @property
    def may_gain_by_taking(self) -> bool:
        """Whether allocating a device may leave more of a counter than before."""
        return self._unusual.with_gains > 0

    def nodes_of(self, driver: str, pool: str) -> Collection[str] | None:
        """Return the nodes that see a pool; None if any node may."""
        slices = self._pools.get((driver, pool))
        if slices is None:
            return ()
        return None if slices.is_shared else slices.node_names

    def slices_of(self, driver: str, pool: str, node: Node | None = None) -> list[ResourceSlice]:
        """Return the slices of a pool that a node sees; without a node, all of them."""
        slices = self._pools.get((driver, pool))
        if slices is None:
            return []
        return [*slices.slices] if node is None else [each for _, each in slices.relevant(node)]

    def slices_around(self, node_name: str) -> list[ResourceSlice]:
        """Return all slices, for whatever node, of the pools that a node may see."""
        pools = self._visible(node_name)
        return [slice_ for pool_id in sorted(pools) for slice_ in pools[pool_id].slices]

    @property
    def devices_count(self) -> int:
        """The number of devices in the newest slices of all pools."""
        return sum(pool.devices_count for pool in self._pools.values())

    def plan(self, claims: Sequence[ResourceClaim]) -> RequestPlan:
        """Return the plan of claims; claims with the same content have the same plan."""
        content = content_of(claims)
        plan = self._plans.get(content)
        if plan is None:
            plan = plan_of(claims, features=self.features, classes=self._classes.get)
            if not plan.is_faulty:
                if len(self._plans) >= PLANS_MAX:
                    self._plans.clear()
                self._plans[content] = plan
        return plan

    def view(self, node: Node) -> NodeView:
        """Return the view of a node; it is cached until something in it changes."""
        name = node.metadata.name
        view = self._views.get(name)
        if view is not None and view.node is node and view.changes == self._changes:
            return view
        if view is None or not view.shows(node, self._versions(name)):
            seen = [slices.seen_by(node) for slices in self._visible(name).values()]
            pools = [pool for pool in seen if pool is not None]
            pools.sort(key=lambda pool: pool.order)
            facts = [self._facts_of(pool) for pool in pools]
            view = NodeView(node, facts, self.features, self.ledger, self._versions(name))
            self._views[name] = view
            self._problems[name] = {}
        view.changes = self._changes
        return view

    def problem(self, node: Node, plan: RequestPlan) -> Problem:
        """Return a plan on a node, with all that can be known about its devices."""
        problem = self.open_problem(node, plan)
        try:
            problem.settle()
        except Interrupted as cause:
            raise BudgetError(f"filter operation aborted: {cause}") from None
        return problem

    def open_problem(self, node: Node, plan: RequestPlan) -> Problem:
        """Return a plan on a node; cached until an allocation there changes.

        Devices are asked for expensive expressions when a search reaches them.
        """
        view = self.view(node)
        problems = self._problems[node.metadata.name]
        before = problems.get(plan)
        allocated = view.allocated
        if before is not None and before.allocated is allocated:
            return before
        problem = None if before is None else before.renewed(allocated)
        if problem is None:
            problem = Problem(plan, view)
        if len(problems) >= PROBLEMS_MAX:
            problems.clear()
        problems[plan] = problem
        return problem

    def is_infeasible(self, node: Node, plan: RequestPlan) -> bool:
        """Return whether a plan is known to have no solution on the node in its present state."""
        view = self.view(node)
        return view.hopeless.get(plan) is view.allocated

    def is_full(self, node: Node) -> bool:
        """Return whether no device of the node is free.

        Then the search reaches none, so a plan that needs one has no solution, and no error.
        """
        view = self.view(node)
        return view.allocated.whole == view.all and not view.is_invalid

    def note_hopeless(self, problem: Problem) -> None:
        """Remember that a problem has no solution."""
        hopeless = problem.view.hopeless
        if len(hopeless) >= HOPELESS_MAX:
            hopeless.clear()
        hopeless[problem.plan] = problem.allocated

    def _visible(self, node_name: str) -> dict[PoolId, PoolSlices]:
        """Return the pools that may have devices for a node."""
        visible = dict(self._shared_pools)
        for pool in self._pools_of_node.get(node_name, NO_POOLS).values():
            visible[pool.id] = pool
        return visible

    def _versions(self, node_name: str) -> list[int]:
        """Return numbers that change whenever a slice of a pool that a node may see does."""
        local = self._pools_of_node.get(node_name, NO_POOLS)
        return [self._shared_version, *[pool.version for pool in local.values()]]

    def _facts_of(self, pool: Pool) -> PoolFacts:
        known = self._pools[pool.id].facts
        facts = known.get(pool)
        if facts is None:
            facts = PoolFacts(pool, self.features, self.compiler, self._published, self._counters)
            known[pool] = facts
        return facts


class UnusualSlices:
    """How many slices have devices of unusual kinds, counted when somebody asks."""

    __slots__ = ("_gaining", "_mapped", "_uncounted")

    def __init__(self) -> None:
        self._uncounted: dict[str, ResourceSlice] = {}
        self._mapped = 0
        self._gaining = 0

    def put(self, key: str, slice_: ResourceSlice) -> None:
        """Take in a slice."""
        self._uncounted[key] = slice_

    def remove(self, key: str, slice_: ResourceSlice) -> None:
        """Forget a slice that was taken in."""
        if self._uncounted.pop(key, None) is None:
            self._count(slice_, -1)

    @property
    def with_node_resources(self) -> int:
        """Slices with devices that map to resources of their node."""
        self._count_all()
        return self._mapped

    @property
    def with_gains(self) -> int:
        """Slices with devices that add to a counter."""
        self._count_all()
        return self._gaining

    def _count_all(self) -> None:
        if self._uncounted:
            for slice_ in self._uncounted.values():
                self._count(slice_, 1)
            self._uncounted.clear()

    def _count(self, slice_: ResourceSlice, sign: int) -> None:
        devices = slice_.spec.devices or ()
        if any(map(_node_resources, devices)):
            self._mapped += sign
        if any(map(_counters, devices)) and any(map(_gains, devices)):
            self._gaining += sign


_node_resources = attrgetter("node_allocatable_resources")
_counters = attrgetter("consumes_counters")


def _gains(device: Device) -> bool:
    """Return whether a device consumes a negative amount of some counter."""
    return any(amount < 0 for _, amount in amounts_of(device))
