"""The assume cache: the cluster by the watch, with decisions that the watch does not report yet.

Each change is put into a `Cluster`, and the cluster events that follow are gathered for the queue.

    # in flight: a pod that was given a node here and is being bound
    # being undone: a pod that could not be bound, while what was written for it is taken back
    # assumed: a pod that was bound here, and that the watch does not report with its node yet
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from moorage.api.core.namespace import Namespace
from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.api.policy import PodDisruptionBudget
from moorage.api.resource.v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceSlice,
)
from moorage.api.scheduling import CompositePodGroup, PodGroup
from moorage.claims.pod_claims import claim_names, group_name
from moorage.claims.reservations import is_group_consumer
from moorage.kit.bulkhead import FAULTS
from moorage.scheduler.cluster import FINISHED, Cluster
from moorage.scheduler.group_forest import AnyGroup, key_of
from moorage.scheduler.live import queueing_hints as hints
from moorage.scheduler.live.claim_assume_cache import ClaimAssumeCache, is_newer
from moorage.scheduler.live.double_allocation import DoubleAllocations
from moorage.scheduler.live.queueing_hints import ClusterEvent
from moorage.scheduler.node_info import node_essence
from moorage.scheduler.plugins.claim_needs import ClaimKey, claim_key
from moorage.scheduler.plugins.registry import NODE_READERS
from moorage.scheduler.pod_signature import PodInfo, pod_key
from moorage.scheduler.reservation import IdSource, Reservation, release, reserve
from moorage.scheduler.scheduling_cycle import Placed
from moorage.scheduler.topology_spread import SELECTOR_OWNERS
from moorage.scheduler.volume_binding import VOLUME_KINDS, VolumeObject


class _EventHandler(NamedTuple):
    """The handlers for an added, updated or deleted object."""

    put: Callable[[Any], object]
    remove: Callable[[Any], object]


class AssumeCache:
    """All that the live scheduler knows of the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.claims = ClaimAssumeCache(cluster)
        self.double_allocations = DoubleAllocations(cluster.inventory.slices_of, self._is_used)
        self.pods: dict[str, Pod] = {}
        self.in_flight: dict[str, Reservation] = {}
        self.being_undone: set[str] = set()
        self.assumed: set[str] = set()
        self.members: dict[ClaimKey, dict[str, Pod]] = {}  # the pods of each group
        self._nodes: dict[str, Node] = {}
        self._fired: set[ClusterEvent] = set()
        self._vanished: set[str] = set()  # names of what is gone, or has nothing more to give
        self._watched: list[tuple[ResourceClaim | ClaimKey, bool]] = []  # and whether in a list
        self._handlers = self._make_handlers()
        cluster.nominated.released = self._fire_left

    def _make_handlers(self) -> dict[type[Any], _EventHandler]:
        cluster, devices, classes = self.cluster, hints.DEVICES_CHANGED, hints.CLASS_CHANGED

        def simple(
            put: Callable[[Any], None], remove: Callable[[str], None], *events: ClusterEvent
        ) -> _EventHandler:
            """Return a handler that fires the same events however an object changes."""

            def do_put(value: Any) -> None:
                put(value)
                self._fired.update(events)

            def do_remove(value: Any) -> None:
                remove(value.metadata.name)
                self._vanished.add(value.metadata.name)
                self._fired.update(events)

            return _EventHandler(do_put, do_remove)

        cluster.volumes.is_followed = True
        selectors = _EventHandler(cluster.default_selectors.put, cluster.default_selectors.remove)
        return {
            Namespace: _EventHandler(self._put_namespace, self._remove_namespace),
            Node: _EventHandler(self._put_node, self._remove_node),
            # Without a class, a rule that selects by it taints no more; without a slice, the others
            # of its pool may be valid.
            DeviceClass: simple(cluster.put_class, cluster.remove_class, classes, devices),
            DeviceTaintRule: simple(cluster.put_taint_rule, cluster.remove_taint_rule, devices),
            ResourceSlice: _EventHandler(self._put_slice, self._remove_slice),
            PodGroup: _EventHandler(self._put_group, self._remove_group),
            CompositePodGroup: _EventHandler(self._put_group, self._remove_group),
            ResourceClaim: _EventHandler(self.put_claim, self.remove_claim),
            Pod: _EventHandler(self._put_pod, self._remove_pod),
            PodDisruptionBudget: _EventHandler(
                cluster.disruption_budgets.put, cluster.disruption_budgets.remove
            ),
            **dict.fromkeys(SELECTOR_OWNERS, selectors),
            **dict.fromkeys(VOLUME_KINDS, _EventHandler(self._put_volume, self._remove_volume)),
        }

    def put(self, value: Any, *, is_listed: bool = False) -> None:
        """Add an object, or its newer version."""
        if isinstance(value, ResourceClaim):
            self._watched.append((value, is_listed))
        self._handlers[type(value)].put(value)

    def remove(self, value: Any) -> None:
        """Remove an object."""
        if isinstance(value, ResourceClaim):
            self._watched.append((claim_key(value), False))
        self._handlers[type(value)].remove(value)

    def _put_slice(self, slice_: ResourceSlice) -> None:
        self._vanished |= self._devices_of(slice_) - _device_names(slice_)
        self.cluster.put_slice(slice_)
        self._fired.add(hints.DEVICES_CHANGED)

    def _remove_slice(self, slice_: ResourceSlice) -> None:
        self._vanished |= {slice_.metadata.name, *self._devices_of(slice_)}
        self.cluster.remove_slice(slice_.metadata.name)
        self._fired.add(hints.DEVICES_CHANGED)

    def _devices_of(self, slice_: ResourceSlice) -> set[str]:
        """Return the names of the devices that a slice has had until now."""
        before = self.cluster.slices.get(slice_.metadata.name)
        return set() if before is None else _device_names(before)

    def _put_volume(self, value: VolumeObject) -> None:
        self.cluster.volumes.put(value)
        self._fired.add(hints.VOLUME_CHANGED)

    def _remove_volume(self, value: VolumeObject) -> None:
        self.cluster.volumes.remove(value)
        self._fired.add(hints.VOLUME_CHANGED)

    def catch_up(self) -> None:
        """Record who has which devices, by the claims that the watch reported.

        All of a list has arrived by now; amid it, who was first may still be to come.
        """
        watched, self._watched = self._watched, []
        for claim, is_listed in watched:
            key = claim_key(claim) if isinstance(claim, ResourceClaim) else claim
            with FAULTS.guard("who has which devices", f"ResourceClaim {key[0]}/{key[1]}"):
                if isinstance(claim, ResourceClaim):
                    self.double_allocations.put(claim, is_listed=is_listed)
                else:
                    self.double_allocations.remove(claim)
            self._fired.add(hints.claim_watched(key))
        self.double_allocations.end_list()

    def take_events(self) -> set[ClusterEvent]:
        """Return the events since this was last called."""
        fired = self._fired
        if fired:
            self._fired = set()
        return fired

    def take_vanished(self) -> set[str]:
        """Return the names of what is gone since this was last called.

        So is what waits for nobody any more: a claim without devices, a pod without a claim.
        """
        vanished = self._vanished
        if vanished:
            self._vanished = set()
        return vanished

    # --- pods -------------------------------------------------------------------------------------

    def is_unscheduled(self, key: str) -> bool:
        """Return whether a pod needs a node, and none was decided for it."""
        pod = self.pods.get(key)
        return (
            pod is not None
            and not pod.spec.node_name
            and pod.metadata.deletion_timestamp is None
            and pod.status.phase not in FINISHED
            and key not in self.in_flight
            and key not in self.being_undone
            and key not in self.assumed
        )

    def wake(self, key: str) -> None:
        """Wake a waiting pod, so that it is tried again."""
        self._fired.add(hints.of_pod(key))

    def is_alive(self, key: str) -> bool:
        """Return whether a pod exists and is not being deleted."""
        pod = self.pods.get(key)
        return pod is not None and pod.metadata.deletion_timestamp is None

    def has_node(self, key: str) -> bool:
        """Return whether a pod is on a node, or will be."""
        pod = self.pods.get(key)
        is_here = pod is not None and bool(pod.spec.node_name)
        return is_here or key in self.in_flight or key in self.assumed

    def _put_pod(self, pod: Pod) -> None:
        key = pod_key(pod)
        old = self.pods.get(key)
        if not is_newer(pod, old):
            return
        self.pods[key] = pod
        held = self.cluster.nominated.node_of(key)
        self.cluster.note_nomination(old, pod)
        if (group := group_name(pod)) is not None:
            self.members.setdefault((pod.metadata.namespace, group), {})[key] = pod
        if pod.spec.node_name:
            self.assumed.discard(key)
        if key not in self.in_flight and key not in self.assumed:
            self._place(key, pod)
        is_nominated = self.cluster.nominated.node_of(key) not in (None, held)  # by others
        if old is not None and (is_nominated or hints.is_pod_news(pod, old)):
            self._fired.add(hints.of_pod(key))

    def _remove_pod(self, pod: Pod) -> None:
        key = pod_key(pod)
        self.pods.pop(key, None)
        self._vanished.add(pod.metadata.name)
        self.cluster.nominated.discard(key)
        self.assumed.discard(key)
        if (group := group_name(pod)) is not None:
            group_key = (pod.metadata.namespace, group)
            members = self.members.get(group_key, {})
            members.pop(key, None)
            if not members:
                self.members.pop(group_key, None)
        self._fired.add(hints.of_pod(key))
        if key not in self.in_flight:  # else its binding cycle releases its reservations
            self._displace(key, pod)

    def _place(self, key: str, pod: Pod) -> None:
        """Put a pod where the server has it."""
        node = pod.spec.node_name
        if not node or pod.status.phase in FINISHED:
            self._displace(key, pod)
            return
        place = self.cluster.snapshot.node_of(key)
        if place is not None:
            there = self.cluster.snapshot.nodes[place].pods[key]
            info = self.cluster.signatures.pod_info(pod)
            is_alike = place == node and _requests_the_same(there, info)
            if is_alike and there.is_terminating == info.is_terminating:
                if info != there:
                    self.cluster.snapshot.update_pod(info)
                return
            if not is_alike:  # a pod that is leaving still needs its place, but spreads no more
                self._fire_left(place)
        self.cluster.put_pod(pod)
        self._fired.add(hints.POD_CAME)

    def _displace(self, key: str, pod: Pod) -> None:
        place = self.cluster.snapshot.node_of(key)
        self.cluster.remove_pod(pod)
        if place is not None:
            self._fire_left(place)

    def _fire_left(self, node: str) -> None:
        self._fired |= {hints.POD_LEFT, hints.pod_left(node)}

    # --- decisions --------------------------------------------------------------------------------

    def reserve(self, placed: Placed, ids: IdSource) -> Reservation:
        """Apply a decision."""
        return self.assume(reserve(self.cluster, placed, ids))

    def assume(self, reservation: Reservation) -> Reservation:
        """Record a decision that was applied to the cluster."""
        key = pod_key(reservation.pod)
        self.in_flight[key] = reservation
        self.cluster.nominated.discard(key, reservation.node)
        self._fired.add(hints.POD_CAME)
        for claim, before in zip(reservation.claims, reservation.before, strict=True):
            if before is None:
                self.claims.assume_new(claim, key)
            self._fire_claim(before, claim)
        return reservation

    def finish_binding(self, reservation: Reservation) -> None:
        """Record that a pod was bound as decided."""
        key = pod_key(reservation.pod)
        self.in_flight.pop(key, None)
        pod = self.pods.get(key)
        if pod is None:
            self._displace(key, reservation.pod)
        elif pod.spec.node_name:
            self._place(key, pod)
        else:
            self.assumed.add(key)

    def forget(self, reservation: Reservation) -> None:
        """Take a decision back: everything is as the server has it."""
        key = pod_key(reservation.pod)
        self.in_flight.pop(key, None)
        before = [self.cluster.find_claim(*claim_key(claim)) for claim in reservation.claims]
        release(self.cluster, reservation)
        for claim, old in zip(reservation.claims, before, strict=True):
            self.claims.restore(claim_key(claim))
            self._fire_claim(old, self.cluster.find_claim(*claim_key(claim)))
        self._fire_left(reservation.node)
        if (pod := self.pods.get(key)) is not None:
            self._place(key, pod)

    # --- claims and groups ------------------------------------------------------------------------

    def put_claim(self, claim: ResourceClaim) -> None:
        """Add a claim from the watch or a response."""
        before = self.cluster.claims.get(claim_key(claim))
        if self.claims.put(claim):
            self._fire_claim(before, self.cluster.claims[claim_key(claim)])

    def remove_claim(self, claim: ResourceClaim) -> None:
        """Remove a claim."""
        before = self.cluster.claims.get(claim_key(claim))
        if self.claims.remove(claim):
            self._fire_claim(before, None)

    def _is_used(self, key: ClaimKey) -> bool:
        """Return whether a claim is reserved for a pod that is on a node."""
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

    def first_owner(self, key: ClaimKey) -> ClaimKey | None:
        """Return a claim that may have been first with devices that this one has, too."""
        stored = self.claims.stored.get(key)
        has_devices = stored is not None and stored.status.allocation is not None
        return self.double_allocations.first_owner(key) if has_devices else None

    def holder_of(self, claim: ResourceClaim, pod: Pod) -> str:
        """Return the uid that a claim may be reserved for on behalf of a pod without a node.

        It is the pod's own, or its group's as long as no other pod of that uses the claim.
        """
        for consumer in claim.status.reserved_for:
            if is_group_consumer(consumer) and consumer.name == group_name(pod):
                key = (pod.metadata.namespace, consumer.name)
                members = self.members.get(key, {}).items()
                name = claim.metadata.name
                users = (each for each, member in members if name in claim_names(member))
                if not any(self.has_node(each) for each in users):
                    return consumer.uid
        return pod.metadata.uid

    def _fire_claim(self, before: ResourceClaim | None, claim: ResourceClaim | None) -> None:
        some = claim or before
        if some is None or (before is not None and claim is not None and _is_alike(before, claim)):
            return
        self._fired.update(hints.events_of_claim(some))
        self._vanished.update(_released(before, claim))
        had = before.status.allocation if before is not None else None
        has = claim.status.allocation if claim is not None else None
        if had == has:
            return
        if has is not None:
            self._fired.add(hints.DEVICES_TAKEN)
        if had is not None or self.cluster.inventory.may_gain_by_taking:
            self._fired.add(hints.DEVICES_CHANGED)

    def _put_group(self, group: AnyGroup) -> None:
        old = self.cluster.forest.get(key_of(group))
        self.cluster.put_group(group)
        if hints.is_group_news(group, old):
            self._fired.update(hints.of_tree(self.cluster.forest, group))

    def _remove_group(self, group: AnyGroup) -> None:
        self._fired.update(hints.of_tree(self.cluster.forest, group))
        self._vanished.add(group.metadata.name)
        self.cluster.remove_group(group)

    # --- nodes and namespaces ---------------------------------------------------------------------

    def _put_node(self, node: Node) -> None:
        old = self._nodes.get(node.metadata.name)
        self._nodes[node.metadata.name] = node
        if old is None or node_essence(old, NODE_READERS) != node_essence(node, NODE_READERS):
            self.cluster.put_node(node)
            self._fired.add(hints.NODE_CHANGED)

    def _remove_node(self, node: Node) -> None:
        if self._nodes.pop(node.metadata.name, None) is not None:
            self.cluster.remove_node(node.metadata.name)
            self._vanished.add(node.metadata.name)
            self._fired.add(hints.NODE_CHANGED)

    def _put_namespace(self, namespace: Namespace) -> None:
        metadata = namespace.metadata
        self.cluster.snapshot.put_namespace(metadata.name, metadata.labels)
        self._fired.add(hints.POD_CAME)

    def _remove_namespace(self, namespace: Namespace) -> None:
        self.cluster.snapshot.remove_namespace(namespace.metadata.name)


def _device_names(slice_: ResourceSlice) -> set[str]:
    return {each.name for each in slice_.spec.devices or ()}


def _released(before: ResourceClaim | None, claim: ResourceClaim | None) -> Iterator[str]:
    """Yield the names of a claim that has no devices any more, and of those it was for."""
    if before is None:
        return
    status = ResourceClaimStatus() if claim is None else claim.status
    if claim is None or (before.status.allocation is not None and status.allocation is None):
        yield before.metadata.name
    yield from (each.name for each in before.status.reserved_for if each not in status.reserved_for)


def _requests_the_same(one: PodInfo, other: PodInfo) -> bool:
    """Return whether a pod on a node is the same to plugins, unless it is leaving now."""
    is_alike = (one.priority, one.group) == (other.priority, other.group)
    return one.signature is other.signature and is_alike


def _is_alike(one: ResourceClaim, other: ResourceClaim) -> bool:
    a, b = one.metadata, other.metadata
    return (
        one.status == other.status
        and a.uid == b.uid
        and (a.deletion_timestamp is None) == (b.deletion_timestamp is None)
        and a.owner_references == b.owner_references
    )
