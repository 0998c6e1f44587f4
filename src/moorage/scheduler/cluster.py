"""The cluster as the scheduler sees it: nodes, pods, devices, classes, claims and pod groups.

Objects are put and removed one by one, in any order, and everything that follows from them is kept
up to date: the node snapshot, the inventory, which claims exist, and the rankings of nodes for the
kinds of pods that were scheduled.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from moorage.allocator import Inventory
from moorage.allocator.allocation import BUDGET
from moorage.allocator.taints import AffectedSlices, TaintRules
from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.api.meta import object_text
from moorage.api.resource.v1 import (
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from moorage.api.scheduling import CompositePodGroup, PodGroup
from moorage.cel.device import CelFeatures, DeviceCompiler
from moorage.claims import DeviceClassIndex, implicit_name
from moorage.claims.extended_resources import is_special_for
from moorage.kit.bulkhead import FAULTS
from moorage.kit.lru import LRU
from moorage.scheduler.disruption_budgets import DisruptionBudgets
from moorage.scheduler.features import ALL_FEATURES, Features
from moorage.scheduler.framework import RankingWork
from moorage.scheduler.group_forest import GROUP, GroupForest
from moorage.scheduler.node_ranking import NodeRanking
from moorage.scheduler.node_snapshot import NodeSnapshot, NominatedPods
from moorage.scheduler.plugins.claim_needs import AssumedClaim, ClaimKey, OwnedClaims, claim_key
from moorage.scheduler.plugins.registry import DEFAULT_PROFILE, NODE_READERS, POD_READERS, Profile
from moorage.scheduler.plugins.resource_scores import device_totals
from moorage.scheduler.pod_signature import (
    DEFAULT_SETTINGS,
    PodInfo,
    PodSignature,
    ReadingSettings,
    pod_key,
)
from moorage.scheduler.signature_cache import SignatureCache
from moorage.scheduler.topology_spread import DefaultSelectors
from moorage.scheduler.volume_binding import VolumeIndex

RANKINGS_MAX = 256
RANKINGS_BYTES_MAX = 4 * 2**20  # of the fields that their signatures are made of
FINISHED = ("Succeeded", "Failed")

RankingKey = tuple[PodSignature, Hashable]


class Cluster:
    """Everything that scheduling reads; only put and remove change it."""

    def __init__(
        self,
        features: Features = ALL_FEATURES,
        *,
        settings: ReadingSettings = DEFAULT_SETTINGS,
        profiles: tuple[Profile, ...] = (DEFAULT_PROFILE,),
        now: datetime | None = None,
        extensions: bool = True,
    ) -> None:
        compiler = DeviceCompiler(CelFeatures(list_attributes=True), extensions=extensions)
        self.features = features
        self.now = now
        self.budget = BUDGET  # of each search for devices
        self.snapshot = NodeSnapshot(NODE_READERS)
        counts = settings.counts_claims and features.node_allocatable
        readings = tuple(profile.reading for profile in profiles)
        settings = replace(settings, counts_claims=counts, readings=readings)
        self.signatures = SignatureCache(settings, POD_READERS)
        self.profiles: Mapping[str, Profile] = {each.name: each for each in profiles}
        self.inventory = Inventory(features.allocator, compiler=compiler)
        self.index = DeviceClassIndex()
        self.forest = GroupForest(has_composites=features.composite_groups)
        self.nominated = NominatedPods(self.snapshot)
        self.default_selectors = DefaultSelectors()
        self.disruption_budgets = DisruptionBudgets()
        self.volumes = VolumeIndex()
        self.assumed_claims: dict[ClaimKey, AssumedClaim] = {}  # what `release` may undo
        # Pods on nodes that do not exist: by node, and the node of each pod.
        self._orphans: dict[str, dict[str, PodInfo]] = {}
        self._node_of_orphan: dict[str, str] = {}
        self._claims: dict[ClaimKey, ResourceClaim] = {}
        self._owned = OwnedClaims()
        self._class_names: set[str] = set()
        self._slices: dict[str, ResourceSlice] = {}  # as published, without taints of rules
        self._rules = TaintRules(compiler)
        # Not a method of the cluster: the snapshot must not refer to what has it.
        totals = partial(_device_totals, self.snapshot.objects, self.inventory, self.index)
        self.snapshot.inputs.device_totals = totals
        self.work = RankingWork()
        self._rankings: LRU[RankingKey, NodeRanking] = LRU(RANKINGS_MAX, RANKINGS_BYTES_MAX)
        self.changes = 0  # grows whenever anything changes that a decision may depend on

    # --- nodes and pods -------------------------------------------------------------------------

    def put_node(self, node: Node) -> None:
        """Add a node, or its newer version; pods that are on it count from now on."""
        name = node.metadata.name
        self.changes += 1
        self.snapshot.put_node(node)
        for key, pod_info in self._orphans.pop(name, {}).items():
            del self._node_of_orphan[key]
            self.snapshot.add_pod(pod_info, name)

    def remove_node(self, name: str) -> None:
        """Remove a node; pods on it count again once it is back."""
        pods = self.snapshot.nodes[name].pods
        self.changes += 1
        self.snapshot.remove_node(name)
        for pod_info in pods.values():
            self._await(pod_info, name)
        self.inventory.drop_node(name)

    def node(self, name: str) -> Node:
        """Return a node."""
        return self.snapshot.node(name)

    def signature(self, pod: Pod) -> PodSignature:
        """Return the signature of a pod without a node."""
        selector = self.default_selectors.selector_of(pod)
        resolved = self.volumes.resolve(pod)
        if isinstance(resolved, Pod):
            return self.signatures.of(resolved, spread_selector=selector)
        signature = self.signatures.of(pod, spread_selector=selector)
        return replace(signature, pre_filter_status=resolved)

    def profile_of(self, signature: PodSignature) -> Profile:
        """Return the profile of pods of a signature."""
        return self.profiles[signature.reading.scheduler_name]

    def profile_for(self, pod: Pod) -> Profile:
        """Return the profile of a pod."""
        return self.profiles[self.signatures.settings.reading_of(pod).scheduler_name]

    def put_pod(self, pod: Pod) -> None:
        """Add a pod, or its newer version: it counts if it has a node and has not finished."""
        self.remove_pod(pod)
        node = pod.spec.node_name
        if not node or pod.status.phase in FINISHED:
            self.note_nomination(None, pod)
            return
        self.changes += 1
        self.volumes.put_user(pod)
        pod_info = self.signatures.pod_info(pod)
        if node in self.snapshot.nodes:
            self.snapshot.add_pod(pod_info, node)
        else:
            self._await(pod_info, node)

    def note_nomination(self, old: Pod | None, pod: Pod) -> None:
        """Hold room for a pod without a node where it is nominated.

        If neither version has a nomination, one that is about to be written stays.
        """
        key, node = pod_key(pod), pod.status.nominated_node_name
        if pod.spec.node_name or pod.status.phase in FINISHED:
            self.nominated.discard(key, pod.spec.node_name)
        elif node:
            self.nominate(pod, node)
        elif old is not None and old.status.nominated_node_name:
            self.nominated.discard(key)

    def nominate(self, pod: Pod, node: str) -> None:
        """Hold room for a pod on a node."""
        self.nominated.put(self.signatures.pod_info(pod), node)

    def remove_pod(self, pod: Pod) -> None:
        """Remove a pod."""
        key = pod_key(pod)
        self.volumes.remove_user(pod)
        if self.snapshot.node_of(key) is not None:
            self.changes += 1
            self.snapshot.remove_pod(key)
        node = self._node_of_orphan.pop(key, None)
        if node is not None:
            del self._orphans[node][key]
            if not self._orphans[node]:
                del self._orphans[node]

    def priority_of(self, pod_info: PodInfo) -> int:
        """Return the priority for preemption: that of the root above the pod's group, if any."""
        priority = pod_info.priority
        if pod_info.group is not None and self.features.pod_groups:
            key = (GROUP, pod_info.signature.namespace, pod_info.group)
            for group in self.forest.upwards(key):
                priority = group.spec.priority or 0
        return priority

    def _await(self, pod_info: PodInfo, node: str) -> None:
        """Keep a pod until its node exists."""
        self._orphans.setdefault(node, {})[pod_info.key] = pod_info
        self._node_of_orphan[pod_info.key] = node

    # --- devices and classes --------------------------------------------------------------------

    @property
    def slices(self) -> Mapping[str, ResourceSlice]:
        """All slices as published, by name: without taints of rules."""
        return self._slices

    @property
    def classes(self) -> Mapping[str, DeviceClass]:
        """All classes, by name."""
        return self._rules.classes

    @property
    def taint_rules(self) -> Mapping[str, DeviceTaintRule]:
        """All rules that taint devices, by name."""
        return self._rules.rules

    def put_slice(self, slice_: ResourceSlice) -> None:
        """Add a slice, or replace the one of the same name."""
        name = slice_.metadata.name
        self.changes += 1
        if name in self._slices:
            self._touch_slice(self._slices[name])
        self._slices[name] = slice_
        self.inventory.put_slice(self._rules.apply(slice_))
        self._touch_slice(slice_)

    def remove_slice(self, name: str) -> None:
        """Remove a slice."""
        slice_ = self._slices.pop(name)
        self.changes += 1
        self._touch_slice(slice_)
        self.inventory.remove_slice(name)

    def put_class(self, device_class: DeviceClass) -> None:
        """Add a class, or replace the one of the same name."""
        self.index.put_class(device_class)
        self.inventory.put_class(device_class)
        self._class_names.add(device_class.metadata.name)
        self._note_classes()
        self._apply_rules(self._rules.put_class(device_class))

    def remove_class(self, name: str) -> None:
        """Remove a class."""
        self.index.remove_class(name)
        self.inventory.remove_class(name)
        self._class_names.discard(name)
        self._note_classes()
        self._apply_rules(self._rules.remove_class(name))

    def put_taint_rule(self, rule: DeviceTaintRule) -> None:
        """Add a rule, or replace the one of the same name: devices that it selects are tainted."""
        if self.features.taint_rules:
            self.changes += 1
            self._apply_rules(self._rules.put(rule))

    def remove_taint_rule(self, name: str) -> None:
        """Remove a rule."""
        self.changes += 1
        self._apply_rules(self._rules.remove(name))

    def _apply_rules(self, reach: AffectedSlices) -> None:
        for slice_ in tuple(self._slices.values()):
            with FAULTS.guard("taints of devices", partial(object_text, slice_)):
                if reach.covers(slice_):
                    self.put_slice(slice_)

    def _note_classes(self) -> None:
        """Set the resources that classes provide; all rankings may be wrong now."""
        self.changes += 1
        self._rankings = LRU(RANKINGS_MAX, RANKINGS_BYTES_MAX)
        if not self.features.extended_resources:
            return
        names = [self.index.explicit_name(name) for name in self._class_names]
        resources = [name for name in names if name is not None]
        resources += map(implicit_name, self._class_names)
        self.snapshot.set_class_resources(resources)

    def _touch_slice(self, slice_: ResourceSlice) -> None:
        """Touch the nodes that may see a change of the slice's pool."""
        nodes = self.inventory.nodes_of(slice_.spec.driver, slice_.spec.pool.name)
        if nodes is None or not slice_.spec.node_name:
            self.snapshot.touch_devices()
        else:
            self._touch({*nodes, slice_.spec.node_name})

    def _touch(self, nodes: Iterable[str], *, has_less: bool = False) -> None:
        for name in nodes:
            self.snapshot.touch(name, has_less=has_less)

    # --- claims and groups ----------------------------------------------------------------------

    @property
    def claims(self) -> Mapping[ClaimKey, ResourceClaim]:
        """All claims, by namespace and name."""
        return self._claims

    def find_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return a claim."""
        return self._claims.get((namespace, name))

    def special_claims(self, pod: Pod) -> Iterator[ResourceClaim]:
        """Yield the special claims of the pod that are left over, by name."""
        for key in sorted(self._owned.of(pod.metadata.uid)):
            if is_special_for(self._claims[key], pod):
                yield self._claims[key]

    def put_claim(self, claim: ResourceClaim) -> None:
        """Add a claim with its devices, or replace it: whatever was assumed of it is forgotten."""
        key = claim_key(claim)
        self.changes += 1
        self.assumed_claims.pop(key, None)
        before = self._claims.get(key)
        self._claims[key] = claim
        if before is None or before.metadata.owner_references != claim.metadata.owner_references:
            self._owned.replace(before, claim)
        had = before.status.allocation if before is not None else None
        has = claim.status.allocation
        if had != has:
            self.inventory.put_claim(claim)
            self._touch_devices(had)
            self._touch_devices(has, are_taken=True)

    def remove_claim(self, namespace: str, name: str) -> None:
        """Remove a claim and free its devices."""
        self.assumed_claims.pop((namespace, name), None)
        claim = self._claims.pop((namespace, name), None)
        if claim is not None:
            self.changes += 1
            self._owned.replace(claim, None)
            self.inventory.remove_claim(namespace, name)
            self._touch_devices(claim.status.allocation)

    @property
    def groups(self) -> Mapping[ClaimKey, PodGroup]:
        """All pod groups, by namespace and name."""
        return self.forest.groups

    def put_group(self, group: PodGroup | CompositePodGroup) -> None:
        """Add a group or composite group, or its newer version."""
        self.changes += 1
        self.forest.put(group)

    def remove_group(self, group: PodGroup | CompositePodGroup) -> None:
        """Remove a group or composite group."""
        self.changes += 1
        self.forest.remove(group)

    def _touch_devices(
        self, allocation: AllocationResult | None, *, are_taken: bool = False
    ) -> None:
        """Touch the nodes that see devices which were freed, or taken."""
        if allocation is None:
            return
        has_less = are_taken and not self.inventory.may_gain_by_taking
        for driver, pool in {(r.driver, r.pool) for r in allocation.devices.results}:
            nodes = self.inventory.nodes_of(driver, pool)
            if nodes is None:
                self.snapshot.touch_devices()
            else:
                self._touch(nodes, has_less=has_less)

    # --- rankings -------------------------------------------------------------------------------

    def mark_full(self, name: str) -> None:
        """Remember that a node has no free device, until it gets some back."""
        self.snapshot.mark_full(name)

    def ranking(
        self,
        signature: PodSignature,
        claims: Hashable,
        *,
        has_alternatives: bool,
        needs_free_device: bool = False,
    ) -> NodeRanking:
        """Return the ranking of all nodes for pods of a signature with such claims."""
        key = (signature, claims)
        ranking = self._rankings.get(key)
        if ranking is None:
            ranking = NodeRanking(
                self.snapshot,
                signature,
                self.work,
                profile=self.profile_of(signature),
                has_alternatives=has_alternatives,
                needs_free_device=needs_free_device,
            )
            self._rankings.put(key, ranking, signature.text_bytes)
        return ranking


def _device_totals(
    nodes: Mapping[str, Node],
    inventory: Inventory,
    index: DeviceClassIndex,
    node: str,
    resource: str,
) -> tuple[int, int]:
    """Return how many devices of a node stand for a resource, and how many are in use."""
    return device_totals(inventory, nodes[node], index.class_for(resource))
