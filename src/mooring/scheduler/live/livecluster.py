"""The cluster kept up to date by what is told of it, with what was decided and is not told yet.

Each change is put into a `Cluster`, and the topics that it fires are gathered for the queue.

    # in flight: a pod that was given a node here and is being bound
    # taking back: a pod that could not be bound, while what was written for it is taken back
    # assumed: a pod that was bound here, and is not told with its node yet
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.api.core.namespace import Namespace
from mooring.api.core.node import Node
from mooring.api.core.pod import Pod
from mooring.api.resource.v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from mooring.api.scheduling import PodGroup
from mooring.claims.consumers import is_group_consumer
from mooring.claims.owners import group_name
from mooring.claims.references import claim_names
from mooring.scheduler.cluster import FINISHED, ClaimKey, Cluster
from mooring.scheduler.cycle import Placed
from mooring.scheduler.features import Features
from mooring.scheduler.live import hints
from mooring.scheduler.live.claimcache import ClaimCache, is_newer, key_of
from mooring.scheduler.live.hints import Topic
from mooring.scheduler.live.rivals import Rivals
from mooring.scheduler.reserving import Fresh, Reservation, release, reserve
from mooring.scheduler.shape import Occupant
from mooring.scheduler.shapes import key_of as pod_key_of
from mooring.scheduler.spreading import SPREADERS

KINDS: tuple[type[Any], ...] = (
    Namespace,
    Node,
    DeviceClass,
    DeviceTaintRule,
    ResourceSlice,
    PodGroup,
    ResourceClaim,
    *SPREADERS,
    Pod,
)


def kinds_of(features: Features) -> tuple[type[Any], ...]:
    """Return the kinds that the features need.

    A scheduler may not read the others: its role has them only where the feature is on.
    """
    without = (
        *(() if features.taint_rules else (DeviceTaintRule,)),
        *(() if features.pod_groups else (PodGroup,)),
    )
    return tuple(kind for kind in KINDS if kind not in without)


class LiveCluster:
    """All that the live scheduler knows of the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.claims = ClaimCache(cluster)
        self.rivals = Rivals(cluster.inventory.slices_of, self._is_used)
        self.pods: dict[str, Pod] = {}
        self.in_flight: dict[str, Reservation] = {}
        self.taking_back: set[str] = set()
        self.assumed: set[str] = set()
        self.members: dict[ClaimKey, dict[str, Pod]] = {}  # the pods of each group
        self._nodes: dict[str, Node] = {}
        self._fired: set[Topic] = set()
        self._told: list[tuple[ResourceClaim | ClaimKey, bool]] = []  # and whether in a list
        self._put: dict[type[Any], Callable[[Any], None]] = {
            Namespace: self._put_namespace,
            Node: self._put_node,
            DeviceClass: self._put_class,
            DeviceTaintRule: self._put_rule,
            ResourceSlice: self._put_slice,
            PodGroup: self._put_group,
            ResourceClaim: self.put_claim,
            Pod: self._put_pod,
            **dict.fromkeys(SPREADERS, cluster.default_spreading.put),
        }
        self._remove: dict[type[Any], Callable[[Any], None]] = {
            Namespace: self._remove_namespace,
            Node: self._remove_node,
            DeviceClass: self._remove_class,
            DeviceTaintRule: self._remove_rule,
            ResourceSlice: self._remove_slice,
            PodGroup: self._remove_group,
            ResourceClaim: self.remove_claim,
            Pod: self._remove_pod,
            **dict.fromkeys(SPREADERS, cluster.default_spreading.remove),
        }

    def put(self, value: Any, *, is_listed: bool = False) -> None:
        """Take in an object, or its newer version."""
        if isinstance(value, ResourceClaim):
            self._told.append((value, is_listed))
        self._put[type(value)](value)

    def remove(self, value: Any) -> None:
        """Take in that an object is gone."""
        if isinstance(value, ResourceClaim):
            self._told.append((key_of(value), False))
        self._remove[type(value)](value)

    def catch_up(self) -> None:
        """Take in who has which devices by what was told of claims.

        Of a list all are told by now; in the midst of it, who was first may still be to come.
        """
        told, self._told = self._told, []
        for claim, is_listed in told:
            if isinstance(claim, ResourceClaim):
                self.rivals.told(claim, is_listed=is_listed)
                self._fired.add(hints.told(key_of(claim)))
            else:
                self.rivals.gone(claim)
                self._fired.add(hints.told(claim))
        self.rivals.caught_up()

    def fired(self) -> set[Topic]:
        """Return the topics that were fired since this was last asked."""
        fired, self._fired = self._fired, set()
        return fired

    # --- pods -------------------------------------------------------------------------------------

    def is_waiting(self, key: str) -> bool:
        """Tell whether a pod looks for a node, and none was decided for it."""
        pod = self.pods.get(key)
        return (
            pod is not None
            and not pod.spec.node_name
            and pod.metadata.deletion_timestamp is None
            and pod.status.phase not in FINISHED
            and key not in self.in_flight
            and key not in self.taking_back
            and key not in self.assumed
        )

    def wake(self, key: str) -> None:
        """Have a pod tried again that waits."""
        self._fired.add(hints.of_pod(key))

    def is_wanted(self, key: str) -> bool:
        """Tell whether a pod is still there to be bound."""
        pod = self.pods.get(key)
        return pod is not None and pod.metadata.deletion_timestamp is None

    def has_node(self, key: str) -> bool:
        """Tell whether a pod is on a node, or will be."""
        pod = self.pods.get(key)
        is_here = pod is not None and bool(pod.spec.node_name)
        return is_here or key in self.in_flight or key in self.assumed

    def _put_pod(self, pod: Pod) -> None:
        key = pod_key_of(pod)
        old = self.pods.get(key)
        if not is_newer(pod, old):
            return
        self.pods[key] = pod
        if (group := group_name(pod)) is not None:
            self.members.setdefault((pod.metadata.namespace, group), {})[key] = pod
        if pod.spec.node_name:
            self.assumed.discard(key)
        if key not in self.in_flight and key not in self.assumed:
            self._settle(key, pod)
        if old is not None and _is_another(pod, old):
            self._fired.add(hints.of_pod(key))

    def _remove_pod(self, pod: Pod) -> None:
        key = pod_key_of(pod)
        self.pods.pop(key, None)
        self.assumed.discard(key)
        if (group := group_name(pod)) is not None:
            group_key = (pod.metadata.namespace, group)
            members = self.members.get(group_key, {})
            members.pop(key, None)
            if not members:
                self.members.pop(group_key, None)
        self._fired.add(hints.of_pod(key))
        if key not in self.in_flight:  # else what binds it takes back what it got
            self._displace(key, pod)

    def _settle(self, key: str, pod: Pod) -> None:
        """Put a pod where the server has it."""
        node = pod.spec.node_name
        if not node or pod.status.phase in FINISHED:
            self._displace(key, pod)
            return
        place = self.cluster.fleet.node_of(key)
        if place is not None:
            there = self.cluster.fleet.nodes[place].pods[key]
            if place == node and _is_same(there, self.cluster.shapes.occupant(pod)):
                return
            self._fired |= {hints.ROOM, hints.room_on(place)}
        self.cluster.put_pod(pod)
        self._fired.add(hints.COMPANY)

    def _displace(self, key: str, pod: Pod) -> None:
        place = self.cluster.fleet.node_of(key)
        self.cluster.remove_pod(pod)
        if place is not None:
            self._fired |= {hints.ROOM, hints.room_on(place)}

    # --- decisions --------------------------------------------------------------------------------

    def reserve(self, placed: Placed, fresh: Fresh) -> Reservation:
        """Write a decision down."""
        return self.took(reserve(self.cluster, placed, fresh))

    def took(self, reservation: Reservation) -> Reservation:
        """Note a decision that is written down in the cluster."""
        self.in_flight[pod_key_of(reservation.pod)] = reservation
        self._fired.add(hints.COMPANY)
        for claim, before in zip(reservation.claims, reservation.before, strict=True):
            if before is None:
                self.claims.made(claim, pod_key_of(reservation.pod))
            self._note_claim(before, claim)
        return reservation

    def bound(self, reservation: Reservation) -> None:
        """Note that a pod was bound as decided."""
        key = pod_key_of(reservation.pod)
        self.in_flight.pop(key, None)
        pod = self.pods.get(key)
        if pod is None:
            self._displace(key, reservation.pod)
        elif pod.spec.node_name:
            self._settle(key, pod)
        else:
            self.assumed.add(key)

    def unreserve(self, reservation: Reservation) -> None:
        """Take a decision back: everything is as the server has it."""
        key = pod_key_of(reservation.pod)
        self.in_flight.pop(key, None)
        before = [self.cluster.find_claim(*key_of(claim)) for claim in reservation.claims]
        release(self.cluster, reservation)
        for claim, old in zip(reservation.claims, before, strict=True):
            self.claims.restore(key_of(claim))
            self._note_claim(old, self.cluster.find_claim(*key_of(claim)))
        self._fired |= {hints.ROOM, hints.room_on(reservation.node)}
        if (pod := self.pods.get(key)) is not None:
            self._settle(key, pod)

    # --- claims and groups ------------------------------------------------------------------------

    def put_claim(self, claim: ResourceClaim) -> None:
        """Take in a claim, told or answered."""
        before = self.cluster.claims.get(key_of(claim))
        if self.claims.seen(claim):
            self._note_claim(before, self.cluster.claims[key_of(claim)])

    def _is_used(self, key: ClaimKey) -> bool:
        """Tell whether a claim is reserved for a pod that is on a node."""
        stored = self.claims.stored.get(key)
        consumers = () if stored is None else stored.status.reserved_for
        for each in consumers:
            if is_group_consumer(each):
                members = self.members.get((key[0], each.name), {}).values()
                if any(pod.spec.node_name and key[1] in claim_names(pod) for pod in members):
                    return True
            elif (pod := self.pods.get(each.uid)) is not None and pod.spec.node_name:
                return True
        return False

    def rival_of(self, key: ClaimKey) -> ClaimKey | None:
        """Return a claim that may have been first with devices that this one has, too."""
        stored = self.claims.stored.get(key)
        has_devices = stored is not None and stored.status.allocation is not None
        return self.rivals.first(key) if has_devices else None

    def holder_of(self, claim: ResourceClaim, pod: Pod) -> str:
        """Return whose uid holds a claim back for a pod without a node: its own, or its group's.

        That is the group's only as long as no other pod of it uses the claim.
        """
        for consumer in claim.status.reserved_for:
            if is_group_consumer(consumer) and consumer.name == group_name(pod):
                key = (pod.metadata.namespace, consumer.name)
                members = self.members.get(key, {}).items()
                users = (each for each, member in members if _uses(member, claim))
                if not any(self.has_node(each) for each in users):
                    return consumer.uid
        return pod.metadata.uid

    def remove_claim(self, claim: ResourceClaim) -> None:
        """Take in that a claim is gone."""
        before = self.cluster.claims.get(key_of(claim))
        if self.claims.removed(claim):
            self._note_claim(before, None)

    def _note_claim(self, before: ResourceClaim | None, claim: ResourceClaim | None) -> None:
        some = claim or before
        if some is None or (before is not None and claim is not None and _is_alike(before, claim)):
            return
        self._fired.update(hints.fired_by_claim(some))
        had = before.status.allocation if before is not None else None
        has = claim.status.allocation if claim is not None else None
        if had == has:
            return
        if has is not None:
            self._fired.add(hints.TAKEN)
        if had is not None or self.cluster.inventory.may_gain_by_taking:
            self._fired.add(hints.DEVICES)

    def _put_group(self, group: PodGroup) -> None:
        self.cluster.put_group(group)
        self._fired.add(hints.of_group(group.metadata.namespace, group.metadata.name))

    def _remove_group(self, group: PodGroup) -> None:
        self.cluster.remove_group(group.metadata.namespace, group.metadata.name)
        self._fired.add(hints.of_group(group.metadata.namespace, group.metadata.name))

    # --- nodes, devices and classes ---------------------------------------------------------------

    def _put_node(self, node: Node) -> None:
        old = self._nodes.get(node.metadata.name)
        self._nodes[node.metadata.name] = node
        if old is None or _essence(old) != _essence(node):
            self.cluster.put_node(node)
            self._fired.add(hints.NODES)

    def _remove_node(self, node: Node) -> None:
        if self._nodes.pop(node.metadata.name, None) is not None:
            self.cluster.remove_node(node.metadata.name)
            self._fired.add(hints.NODES)

    def _put_namespace(self, namespace: Namespace) -> None:
        metadata = namespace.metadata
        self.cluster.fleet.put_namespace(metadata.name, metadata.labels)
        self._fired.add(hints.COMPANY)

    def _remove_namespace(self, namespace: Namespace) -> None:
        self.cluster.fleet.remove_namespace(namespace.metadata.name)

    def _put_slice(self, slice_: ResourceSlice) -> None:
        self.cluster.put_slice(slice_)
        self._fired.add(hints.DEVICES)

    def _remove_slice(self, slice_: ResourceSlice) -> None:
        self.cluster.remove_slice(slice_.metadata.name)
        self._fired.add(hints.DEVICES)  # what is left may be valid now

    def _put_class(self, device_class: DeviceClass) -> None:
        self.cluster.put_class(device_class)
        self._fired |= {hints.CLASSES, hints.DEVICES}

    def _remove_class(self, device_class: DeviceClass) -> None:
        self.cluster.remove_class(device_class.metadata.name)
        self._fired |= {hints.CLASSES, hints.DEVICES}  # a rule that selects by it taints no more

    def _put_rule(self, rule: DeviceTaintRule) -> None:
        self.cluster.put_taint_rule(rule)
        self._fired.add(hints.DEVICES)

    def _remove_rule(self, rule: DeviceTaintRule) -> None:
        self.cluster.remove_taint_rule(rule.metadata.name)
        self._fired.add(hints.DEVICES)


def _essence(node: Node) -> tuple[object, ...]:
    """Return what of a node can decide something; its heartbeats cannot."""
    status = node.status
    return (
        node.metadata.labels,
        node.spec,
        status.allocatable,
        status.declared_features,
        status.images,
    )


def _is_another(pod: Pod, old: Pod) -> bool:
    """Tell whether a pod that looks for a node may be answered otherwise than before."""
    return (
        pod.spec != old.spec
        or pod.metadata.labels != old.metadata.labels
        or pod.status.resource_claim_statuses != old.status.resource_claim_statuses
    )


def _is_same(one: Occupant, other: Occupant) -> bool:
    """Tell whether a pod on a node means the same to all rules as before."""
    return one.shape is other.shape and (one.is_terminating, one.priority, one.group) == (
        other.is_terminating,
        other.priority,
        other.group,
    )


def _uses(pod: Pod, claim: ResourceClaim) -> bool:
    return claim.metadata.name in claim_names(pod)


def _is_alike(one: ResourceClaim, other: ResourceClaim) -> bool:
    a, b = one.metadata, other.metadata
    return (
        one.status == other.status
        and a.uid == b.uid
        and (a.deletion_timestamp is None) == (b.deletion_timestamp is None)
        and a.owner_references == b.owner_references
    )
