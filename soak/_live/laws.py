"""Laws that hold whatever happens, computed from the stored objects.

After each write:
1. no device is in two claims that pods on nodes use; with one scheduler, in no two claims at all;
   the same for shares beyond the capacity and for counters beyond their set;
2. a pod is bound only when each of its claims is there with devices, is reserved for it, and can be
   used on the node; devices that must get ready are; and with one scheduler the node has the cpus,
   and is in the zone of the pod's group, if that has to stay in one.
At rest:
3. no pod waits that the pure cycle would place in the stored cluster, nor groups that go together;
   nor any for which others would have to leave;
4. a pod on a node has its claims, with devices and reserved.
When all pods and groups are gone:
5. everything is free: no devices and reservations; no claim that was made for a pod. Claims that
   are deleted then are gone at once.

# meddled: claims that someone else has edited; their effect on pods on nodes breaks no law
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from moorage.api.core.node import Node
from moorage.api.core.pod import FAILED, SUCCEEDED, Pod
from moorage.api.resource.v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from moorage.api.scheduling import CompositePodGroup, PodGroup
from moorage.claims.pod_claims import (
    ALL_FEATURES,
    Named,
    NotNeeded,
    claim_names,
    group_name,
    reference_of,
)
from moorage.claims.reservations import is_reserved_for
from moorage.client.indexer import Indexer
from moorage.controllers.controller import ObjectChange, WriteRefused
from moorage.scheduler.binding_conditions import is_ready
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.features import ALL_FEATURES as EVERYTHING
from moorage.scheduler.group_forest import GROUP, GroupKey
from moorage.scheduler.plugins.registry import Profile
from moorage.scheduler.pod_groups import Gang, decide, unit_of
from moorage.scheduler.pod_signature import PodReading, ReadingSettings
from moorage.scheduler.preemption import Preemption
from moorage.scheduler.reservation import IdSource, Reservation
from moorage.scheduler.scheduling_cycle import Pending, Placed, schedule
from soak._live.pools import BANDWIDTH, MEMORY, MIG, NIC, PARTS
from soak._live.things import CPUS, RESOURCE, SCHEDULERS, ZONE

OVER = (SUCCEEDED, FAILED)


def allows(old: Any, new: Any) -> WriteRefused | None:
    """Refuse changes of claims that the API refuses."""
    if not isinstance(new, ResourceClaim) or old.status == new.status:
        return None
    had, has = old.status.allocation, new.status.allocation
    if had is not None and has is not None and had != has:
        return WriteRefused("Invalid", "status.allocation: field is immutable")
    if has is None and new.status.reserved_for:
        return WriteRefused(
            "Invalid", "status.reservedFor: may not be specified without allocation"
        )
    if new.metadata.deletion_timestamp is not None:
        added = {*new.status.reserved_for} - {*old.status.reserved_for}
        if (had is None and has is not None) or added:
            return WriteRefused("Invalid", "the claim is being deleted")
    return None


class Laws:
    """Watches the stored objects."""

    def __init__(self, objects: Indexer) -> None:
        self._objects = objects
        self.meddled: set[str] = set()  # uids of claims
        self.harmed: set[str] = set()  # uids of pods and groups whose claims were meddled with
        self.counts: Counter[str] = Counter()
        self.is_strict = True  # there was never more than one scheduler that could write
        self.is_fair = True  # nor two that could write about the same pods

    def note_meddled(self, claim: ResourceClaim) -> None:
        """Note that someone else is about to edit or delete a claim."""
        self.meddled.add(claim.metadata.uid)
        self.harmed.update(each.uid for each in claim.metadata.owner_references)
        for pod in self._objects.list(Pod):
            if claim.metadata.name in claim_names(pod):
                self.harmed.add(pod.metadata.uid)

    # --- after each write -----------------------------------------------------------------------

    def check(self, change: ObjectChange) -> None:
        """See that a change breaks no law."""
        match change.new:
            case ResourceClaim(status=status) if status.allocation is not None:
                if self.is_strict:
                    check_given(self._objects.list(ResourceClaim))
                check_given(self._used_claims())
            case Pod(spec=spec) if spec.node_name:
                if change.old is not None and not change.old.spec.node_name:
                    if self.is_fair:
                        self._check_claims(change.new, "was bound")
                        self._check_ready(change.new)
                    if self.is_strict:
                        self._check_room(spec.node_name)
                        self._check_zone(change.new)
                    check_given(self._used_claims())

    def _check_zone(self, pod: Pod) -> None:
        """Check that a group that must stay within one zone does."""
        name = group_name(pod)
        group = self._objects.get(PodGroup, "default", name) if name is not None else None
        if group is None or group.spec.scheduling_constraints is None:
            return
        members = [each for each in self._objects.list(Pod) if group_name(each) == name]
        nodes = [self._objects.get(Node, "", each.spec.node_name) for each in members]
        zones = {node.metadata.labels[ZONE] for node in nodes if node is not None}
        assert len(zones) <= 1, f"group {name} is in {sorted(zones)}"

    def _used_claims(self) -> list[ResourceClaim]:
        bound = {
            pod.metadata.uid
            for pod in self._objects.list(Pod)
            if pod.spec.node_name and pod.status.phase not in OVER
        }
        groups = {
            found.metadata.uid
            for pod in self._objects.list(Pod)
            if pod.spec.node_name
            and (name := group_name(pod)) is not None
            and (found := self._objects.get(PodGroup, "default", name)) is not None
        }
        users = bound | groups
        return [
            claim
            for claim in self._objects.list(ResourceClaim)
            if any(each.uid in users for each in claim.status.reserved_for)
        ]

    def _check_claims(self, pod: Pod, what: str) -> None:
        """Check that a pod on a node has its claims and devices."""
        name = f"pod {pod.metadata.name} {what}"
        if pod.metadata.uid in self.harmed:
            return
        for entry in pod.spec.resource_claims:
            reference = reference_of(pod, entry)
            if isinstance(reference, NotNeeded):
                continue
            assert isinstance(reference, Named), f"{name}: entry {entry.name} has no claim"
            self._check_claim(pod, reference.name, name)
        status = pod.status.extended_resource_claim_status
        if status is not None:
            self._check_claim(pod, status.resource_claim_name, name)

    def _check_claim(self, pod: Pod, claim_name: str, name: str) -> None:
        claim = self._objects.get(ResourceClaim, "default", claim_name)
        if claim is not None and claim.metadata.uid in self.meddled:
            return
        allocation = None if claim is None else claim.status.allocation
        if allocation is None and not self.is_fair:
            self.counts["without devices"] += 1
            return
        assert claim is not None, f"{name}: there is no claim {claim_name}"
        assert allocation is not None, f"{name}: claim {claim_name} has no devices"
        is_ours = is_reserved_for(claim, pod, ALL_FEATURES)
        assert is_ours, f"{name}: claim {claim_name} is not reserved for it"
        node, selector = pod.spec.node_name, allocation.node_selector
        if selector is not None:
            there = {
                value
                for term in selector.node_selector_terms or ()
                for field in term.match_fields
                for value in field.values
            }
            if node not in there and not self.is_fair:
                self.counts["without devices"] += 1
                return
            assert node in there, f"{name}: claim {claim_name} is for {there}, not {node}"

    def _check_ready(self, pod: Pod) -> None:
        """See that the devices of a pod which was bound had got ready."""
        for name in claim_names(pod):
            claim = self._objects.get(ResourceClaim, "default", name)
            if claim is not None and claim.metadata.uid not in self.meddled:
                is_so = claim.status.allocation is None or is_ready(claim)
                assert is_so, f"pod {pod.metadata.name} was bound before claim {name} was ready"

    def _check_room(self, node: str) -> None:
        """See that pods have no more cpus of a node than there are, by themselves or by devices."""
        there = [
            pod
            for pod in self._objects.list(Pod)
            if pod.spec.node_name == node and pod.status.phase not in OVER
        ]
        taken = sum(self._cpus(pod) for pod in there)
        assert taken <= CPUS, f"node {node} has given out {taken}/{CPUS} cpus"

    @staticmethod
    def _cpus(pod: Pod) -> float:
        (container,) = pod.spec.containers
        asked = container.resources.requests["cpu"].nano
        # As reported when the pod was bound: later the device may not be published any more.
        told = (
            each.quantity.nano
            for status in pod.status.node_allocatable_resource_claim_statuses or ()
            for each in status.mapping
            if each.quantity is not None
        )
        return (asked + sum(told)) / 1e9

    # --- at rest --------------------------------------------------------------------------------

    def check_rest(self, *, has_quota: bool = False) -> Counter[str]:
        """See that nobody waits in vain, and that everyone on a node has its claims.

        With a quota, a special claim may be refused, which the pure cycle does not know.
        """
        counts: Counter[str] = Counter()
        for pod in self._objects.list(Pod):
            if pod.status.phase in OVER or pod.metadata.deletion_timestamp is not None:
                continue
            if pod.spec.node_name:
                counts["on nodes"] += 1
                self._check_claims(pod, "is on a node")
            else:
                counts["waiting"] += 1
        check_given(self._objects.list(ResourceClaim))
        self._check_waiting(has_quota=has_quota)
        return counts

    def _check_waiting(self, *, has_quota: bool) -> None:
        groups: dict[GroupKey, list[Pod]] = defaultdict(list)
        forest = fresh_cluster(self._objects).forest
        for pod in self._objects.list(Pod):
            if pod.spec.node_name or pod.status.phase in OVER:
                continue
            if pod.metadata.deletion_timestamp is not None:
                continue
            if (name := group_name(pod)) is not None:
                groups[forest.root_of((GROUP, "default", name))].append(pod)
                continue
            if not (has_quota and RESOURCE in pod.spec.containers[0].resources.requests):
                self._check_waits(pod)
        for root, pods in groups.items():
            self._check_groups(root, pods)

    def _check_waits(self, pod: Pod) -> None:
        match schedule(fresh_cluster(self._objects), pod):
            case Placed(node=node):
                raise AssertionError(f"pod {pod.metadata.name} waits, but would get {node}")
            case Pending(preemption=Preemption(node=node)):
                text = f"pod {pod.metadata.name} waits, but could displace others on {node}"
                raise AssertionError(text)

    def _check_groups(self, root: GroupKey, waiting: list[Pod]) -> None:
        cluster = fresh_cluster(self._objects)
        unit = unit_of(cluster, root, lambda group: self._gang(group, waiting))
        if unit is None:
            return
        numbers = count(1)
        fresh = IdSource(
            lambda: f"share-{next(numbers)}", lambda prefix: f"{prefix}{next(numbers)}"
        )
        decision = decide(cluster, unit, fresh)
        placed = [each for each in decision.results if isinstance(each, Reservation)]
        text = ", ".join(f"{each.pod.metadata.name} would get {each.node}" for each in placed)
        assert not placed, f"group {root[2]} waits, but {text}"
        victims = () if decision.preemption is None else decision.preemption.victims
        assert not victims, f"group {root[2]} waits, but could displace {victims[0].name}"

    def _gang(self, group: PodGroup, waiting: list[Pod]) -> Gang:
        name = group.metadata.name
        members = [
            pod
            for pod in self._objects.list(Pod)
            if group_name(pod) == name and pod.status.phase not in OVER
        ]
        placed = tuple(pod for pod in members if pod.spec.node_name)
        nodes = tuple(pod.spec.node_name for pod in placed)
        own = tuple(pod for pod in waiting if group_name(pod) == name)
        return Gang(group, own, len(nodes), len(members), nodes=nodes, placed=placed)

    # --- when all is over -----------------------------------------------------------------------

    def check_empty(self) -> None:
        """See that no claim is held back from being deleted."""
        left = [claim.metadata.name for claim in self._objects.list(ResourceClaim)]
        assert not left, f"claims are not deleted: {left}"

    def check_free(self) -> None:
        """See that nothing is left of pods that are gone."""
        left: list[Any] = [*self._objects.list(Pod), *self._objects.list(PodGroup)]
        assert not left, f"still there: {[each.metadata.name for each in left]}"
        for claim in self._objects.list(ResourceClaim):
            name = f"claim {claim.metadata.name}"
            owners = [each.name for each in claim.metadata.owner_references]
            assert not owners, f"{name} of {owners} is left"
            assert not claim.status.reserved_for, f"{name} is left reserved"
            if claim.metadata.uid not in self.meddled:
                assert claim.status.allocation is None, f"{name} is left with devices"
            is_leaving = claim.metadata.deletion_timestamp is not None
            assert not is_leaving, f"{name} is being deleted for ever"


def check_given(claims: Iterable[ResourceClaim]) -> None:
    """See that claims have no more together than there is."""
    owners: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    memory: Counter[str] = Counter()
    bandwidth: Counter[tuple[str, str]] = Counter()
    for claim in claims:
        if claim.status.allocation is None:
            continue
        for result in claim.status.allocation.devices.results:
            if result.admin_access:
                continue
            if result.driver == NIC:
                consumed = result.consumed_capacity or {}
                amount = int(str(consumed["bandwidth"]))
                bandwidth[result.pool, result.device] += amount
                continue
            if result.driver == MIG:
                memory[result.pool] += PARTS[result.device]
            owners[result.driver, result.pool, result.device].append(claim.metadata.name)
    for device, names in owners.items():
        assert len(names) == 1, f"device {'/'.join(device)} has two claims: {', '.join(names)}"
    for pool, amount in memory.items():
        assert amount <= MEMORY, f"the counters of pool {pool} are given out {amount}/{MEMORY}"
    for share, amount in bandwidth.items():
        assert amount <= BANDWIDTH, f"{'/'.join(share)} is given out {amount}/{BANDWIDTH}"


def fresh_cluster(objects: Indexer) -> Cluster:
    """Return a new cluster made from the stored objects."""
    profiles = tuple(Profile(PodReading(name)) for name in SCHEDULERS)
    settings = ReadingSettings(is_admitted=True)
    cluster = Cluster(EVERYTHING, settings=settings, profiles=profiles)
    kinds: tuple[tuple[type[Any], Callable[[Any], None]], ...] = (
        (Node, cluster.put_node),
        (DeviceClass, cluster.put_class),
        (DeviceTaintRule, cluster.put_taint_rule),
        (ResourceSlice, cluster.put_slice),
        (ResourceClaim, cluster.put_claim),
        (CompositePodGroup, cluster.put_group),
        (PodGroup, cluster.put_group),
    )
    for struct, put in kinds:
        for value in objects.list(struct):
            put(value)
    for pod in objects.list(Pod):
        if pod.status.phase not in OVER:
            cluster.put_pod(pod)
    return cluster
