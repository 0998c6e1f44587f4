"""The cluster as the scheduler knows it: nodes, pods, devices, classes, claims and groups.

Objects are put and removed one by one, in any order, and everything that follows from them is
kept up to date: the fleet, the inventory, which claims there are, and the rankings of nodes for
the kinds of pods that were asked about.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import datetime

from msgspec.structs import replace

from mooring.allocator import Inventory
from mooring.allocator.allocation import BUDGET
from mooring.allocator.taintrules import Reach, TaintRules
from mooring.api.core.node import Node
from mooring.api.core.pod import Pod
from mooring.api.resource.v1 import (
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from mooring.api.scheduling import PodGroup
from mooring.cel.device import DeviceCompiler
from mooring.cel.device import Features as CelFeatures
from mooring.claims import ClassIndex, implicit_name
from mooring.claims.owners import controller_of
from mooring.claims.specialclaim import is_special_for
from mooring.scheduler.bindingconditions import BINDING_TIMEOUT_S
from mooring.scheduler.features import ALL_FEATURES, Features
from mooring.scheduler.fleet import Fleet
from mooring.scheduler.holds import Hold
from mooring.scheduler.ranking import Ranking, Work
from mooring.scheduler.shape import DEFAULT_SETTINGS, Occupant, PodShape, Settings
from mooring.scheduler.shapes import Shapes, key_of
from mooring.scheduler.spreading import DefaultSpreading

RANKINGS_MAX = 256
FINISHED = ("Succeeded", "Failed")

ClaimKey = tuple[str, str]  # namespace, name
RankingKey = tuple[PodShape, Hashable]


class Cluster:
    """All that scheduling must know; it changes only through what is put and removed."""

    def __init__(
        self,
        features: Features = ALL_FEATURES,
        *,
        settings: Settings = DEFAULT_SETTINGS,
        now: datetime | None = None,
        extensions: bool = True,
    ) -> None:
        compiler = DeviceCompiler(CelFeatures(list_attributes=True), extensions=extensions)
        self.features = features
        self.now = now
        self.binding_timeout_s: float = BINDING_TIMEOUT_S
        self.budget = BUDGET  # of each search for devices
        self.fleet = Fleet()
        counts = settings.counts_claims and features.node_allocatable
        self.shapes = Shapes(replace(settings, counts_claims=counts))
        self.inventory = Inventory(features.allocator, compiler=compiler)
        self.index = ClassIndex()
        self.groups: dict[ClaimKey, PodGroup] = {}
        self.default_spreading = DefaultSpreading()
        self.holds: dict[ClaimKey, Hold] = {}  # what `reserve` has written and `release` may undo
        # Pods on nodes that are not there: by node, and which node a pod is on.
        self._homeless: dict[str, dict[str, Occupant]] = {}
        self._home_of: dict[str, str] = {}
        self._claims: dict[ClaimKey, ResourceClaim] = {}
        self._claims_of: dict[str, set[ClaimKey]] = {}  # by the uid of the controller
        self._class_names: set[str] = set()
        self._slices: dict[str, ResourceSlice] = {}  # as published, without taints of rules
        self._rules = TaintRules(compiler)
        self.work = Work()
        self._rankings: OrderedDict[RankingKey, Ranking] = OrderedDict()

    # --- nodes and pods -------------------------------------------------------------------------

    def put_node(self, node: Node) -> None:
        """Take in a node, or its newer version; pods that are on it count from now on."""
        name = node.metadata.name
        self.fleet.put_node(node)
        for key, occupant in self._homeless.pop(name, {}).items():
            del self._home_of[key]
            self.fleet.place(occupant, name)

    def remove_node(self, name: str) -> None:
        """Take away a node; pods on it count again once it is back."""
        pods = self.fleet.nodes[name].pods
        self.fleet.remove_node(name)
        for occupant in pods.values():
            self._await(occupant, name)
        self.inventory.forget_node(name)

    def node(self, name: str) -> Node:
        """Return a node."""
        return self.fleet.node(name)

    def shape(self, pod: Pod) -> PodShape:
        """Return the shape of a pod that looks for a node."""
        return self.shapes.of(pod, spread_selector=self.default_spreading.selector_of(pod))

    def put_pod(self, pod: Pod) -> None:
        """Note a pod, or its newer version: it holds something if it has a node and runs on."""
        self.remove_pod(pod)
        node = pod.spec.node_name
        if not node or pod.status.phase in FINISHED:
            return
        occupant = self.shapes.occupant(pod)
        if node in self.fleet.nodes:
            self.fleet.place(occupant, node)
        else:
            self._await(occupant, node)

    def remove_pod(self, pod: Pod) -> None:
        """Forget a pod."""
        key = key_of(pod)
        if self.fleet.node_of(key) is not None:
            self.fleet.displace(key)
        node = self._home_of.pop(key, None)
        if node is not None:
            del self._homeless[node][key]
            if not self._homeless[node]:
                del self._homeless[node]

    def priority_of(self, occupant: Occupant) -> int:
        """Return the priority that decides who gives way: that of the pod's group, if any."""
        if occupant.group is not None and self.features.pod_groups:
            group = self.groups.get((occupant.shape.namespace, occupant.group))
            if group is not None:
                return group.spec.priority or 0
        return occupant.priority

    def _await(self, occupant: Occupant, node: str) -> None:
        """Keep a pod until its node comes."""
        self._homeless.setdefault(node, {})[occupant.key] = occupant
        self._home_of[occupant.key] = node

    # --- devices and classes --------------------------------------------------------------------

    def put_slice(self, slice_: ResourceSlice) -> None:
        """Take in a slice, instead of one of the same name."""
        name = slice_.metadata.name
        if name in self._slices:
            self._touch_slice(self._slices[name])
        self._slices[name] = slice_
        self.inventory.put_slice(self._rules.apply(slice_))
        self._touch_slice(slice_)

    def remove_slice(self, name: str) -> None:
        """Forget a slice."""
        slice_ = self._slices.pop(name)
        self._touch_slice(slice_)
        self.inventory.remove_slice(name)

    def put_class(self, device_class: DeviceClass) -> None:
        """Take in a class, instead of one of the same name."""
        self.index.put_class(device_class)
        self.inventory.put_class(device_class)
        self._class_names.add(device_class.metadata.name)
        self._note_classes()
        self._apply_rules(self._rules.put_class(device_class))

    def remove_class(self, name: str) -> None:
        """Forget a class."""
        self.index.remove_class(name)
        self.inventory.remove_class(name)
        self._class_names.discard(name)
        self._note_classes()
        self._apply_rules(self._rules.remove_class(name))

    def put_taint_rule(self, rule: DeviceTaintRule) -> None:
        """Take in a rule, instead of one of the same name: devices that it means are tainted."""
        if self.features.taint_rules:
            self._apply_rules(self._rules.put(rule))

    def remove_taint_rule(self, name: str) -> None:
        """Forget a rule."""
        self._apply_rules(self._rules.remove(name))

    def _apply_rules(self, reach: Reach) -> None:
        for slice_ in [each for each in self._slices.values() if reach.covers(each)]:
            self.put_slice(slice_)

    def _note_classes(self) -> None:
        """Tell what classes provide; whatever was found out about pods may be wrong now."""
        self._rankings.clear()
        if not self.features.extended_resources:
            return
        explicit = (self.index.explicit_name(name) for name in self._class_names)
        implicit = map(implicit_name, self._class_names)
        self.fleet.delegate([*(name for name in explicit if name is not None), *implicit])

    def _touch_slice(self, slice_: ResourceSlice) -> None:
        """Touch the nodes that may see a change of the slice's pool."""
        nodes = self.inventory.nodes_of(slice_.spec.driver, slice_.spec.pool.name)
        if nodes is None or not slice_.spec.node_name:
            self.fleet.touch_devices()
        else:
            self._touch({*nodes, slice_.spec.node_name})

    def _touch(self, nodes: Iterable[str], *, has_less: bool = False) -> None:
        for name in nodes:
            self.fleet.touch(name, has_less=has_less)

    # --- claims and groups ----------------------------------------------------------------------

    @property
    def claims(self) -> Mapping[ClaimKey, ResourceClaim]:
        """All claims, by namespace and name."""
        return self._claims

    def find_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return a claim."""
        return self._claims.get((namespace, name))

    def special_claims(self, pod: Pod) -> Iterator[ResourceClaim]:
        """Give the claims for extended resources of the pod that are left over, by name."""
        for key in sorted(self._claims_of.get(pod.metadata.uid, ())):
            if is_special_for(self._claims[key], pod):
                yield self._claims[key]

    def put_claim(self, claim: ResourceClaim) -> None:
        """Take in a claim, with the devices that it has: that is how it is, whatever was held."""
        key = (claim.metadata.namespace, claim.metadata.name)
        self.holds.pop(key, None)
        before = self._claims.get(key)
        self._claims[key] = claim
        if before is None or before.metadata.owner_references != claim.metadata.owner_references:
            self._own(before, claim)
        had = before.status.allocation if before is not None else None
        has = claim.status.allocation
        if had != has:
            self.inventory.put_claim(claim)
            self._touch_devices(had)
            self._touch_devices(has, are_taken=True)

    def remove_claim(self, namespace: str, name: str) -> None:
        """Forget a claim and give back what it has."""
        self.holds.pop((namespace, name), None)
        claim = self._claims.pop((namespace, name), None)
        if claim is not None:
            self._own(claim, None)
            self.inventory.remove_claim(namespace, name)
            self._touch_devices(claim.status.allocation)

    def put_group(self, group: PodGroup) -> None:
        """Take in a group."""
        self.groups[group.metadata.namespace, group.metadata.name] = group

    def remove_group(self, namespace: str, name: str) -> None:
        """Forget a group."""
        self.groups.pop((namespace, name), None)

    def _own(self, before: ResourceClaim | None, claim: ResourceClaim | None) -> None:
        """Keep in mind whose a claim is."""
        if before is not None and (owner := controller_of(before.metadata)) is not None:
            owned = self._claims_of[owner.uid]
            owned.discard((before.metadata.namespace, before.metadata.name))
            if not owned:
                del self._claims_of[owner.uid]
        if claim is not None and (owner := controller_of(claim.metadata)) is not None:
            owned = self._claims_of.setdefault(owner.uid, set())
            owned.add((claim.metadata.namespace, claim.metadata.name))

    def _touch_devices(
        self, allocation: AllocationResult | None, *, are_taken: bool = False
    ) -> None:
        """Touch the nodes that see devices which were given back, or taken."""
        if allocation is None:
            return
        has_less = are_taken and not self.inventory.may_gain_by_taking
        for driver, pool in {(r.driver, r.pool) for r in allocation.devices.results}:
            nodes = self.inventory.nodes_of(driver, pool)
            if nodes is None:
                self.fleet.touch_devices()
            else:
                self._touch(nodes, has_less=has_less)

    # --- rankings -------------------------------------------------------------------------------

    def note_full(self, name: str) -> None:
        """Keep in mind that a node has no free device, until it gets some back."""
        self.fleet.full.add(name)

    def ranking(
        self,
        shape: PodShape,
        claims: Hashable,
        *,
        has_alternatives: bool,
        needs_free_device: bool = False,
    ) -> Ranking:
        """Return what is known of all nodes for pods of a shape with such claims."""
        key = (shape, claims)
        ranking = self._rankings.pop(key, None)
        if ranking is None:
            ranking = Ranking(
                self.fleet,
                shape,
                self.work,
                has_alternatives=has_alternatives,
                needs_free_device=needs_free_device,
            )
            if len(self._rankings) >= RANKINGS_MAX:
                self._rankings.popitem(last=False)
        self._rankings[key] = ranking
        return ranking
