"""Node lifecycle: silent nodes are tainted, and pods leave nodes with NoExecute taints.

1. A kubelet renews the lease of its node. When it has not for a while, its conditions become
   Unknown, and the pods there are not ready.
2. Taints follow the conditions of the node: pods stay away (NoSchedule), and leave (NoExecute).
3. A pod that tolerates a taint for some time leaves that long after it was set, by the shortest of
   the tolerations that cover it. Nodes that are not ready or unreachable lose every pod after five
   minutes unless the pod says otherwise: Kubernetes' server writes that into pods, ours need not.

A node that never had a lease is left alone: it is on paper, and no kubelet will ever renew one.
Silence is counted in looks, not by the clock: a clock that jumps, or a laptop that slept, is no
reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import ClassVar

from msgspec import Struct

from moorage.api.codec import to_tree
from moorage.api.coordination import Lease
from moorage.api.core import Node, NodeCondition, Pod, PodCondition, Toleration
from moorage.api.core.node import READY
from moorage.api.core.placement import NO_EXECUTE, NO_SCHEDULE, Taint
from moorage.api.timestamp import MicroTimestamp, Timestamp
from moorage.api.tolerations import Tolerations
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Delete, Patch, RecordEvent, RequeueAfter, Target
from moorage.controllers.controller import Answers, Controller, ObjectChange, Step
from moorage.controllers.pod_control import (
    NODE,
    condition_of,
    disruption_target,
    index_by_node,
    is_over,
    is_true,
    status_patch,
)

LEASES = "kube-node-lease"
LOOK_S = 10.0  # as often as agents renew
GRACE_S = 50.0  # kube-controller-manager's --node-monitor-grace-period

_PREFIX = "node.kubernetes.io/"
NOT_READY, UNREACHABLE = f"{_PREFIX}not-ready", f"{_PREFIX}unreachable"
_UNSCHEDULABLE = f"{_PREFIX}unschedulable"
# The condition, its bad status, and the resulting taint.
_TAINTS = (
    (READY, "False", NOT_READY),
    (READY, "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", f"{_PREFIX}memory-pressure"),
    ("DiskPressure", "True", f"{_PREFIX}disk-pressure"),
    ("PIDPressure", "True", f"{_PREFIX}pid-pressure"),
    ("NetworkUnavailable", "True", f"{_PREFIX}network-unavailable"),
)
_OWN_KEYS = {key for *_, key in _TAINTS} | {_UNSCHEDULABLE}
_REPORTED = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")  # by the agent
PATIENCE_S = 300
_PATIENT = tuple(
    Toleration(key=key, operator="Exists", effect=NO_EXECUTE, toleration_seconds=PATIENCE_S)
    for key in (NOT_READY, UNREACHABLE)
)


class LeaseSilence(Struct, frozen=True):
    """The last renewal of a lease, and for how long looks have found no other."""

    renewed: MicroTimestamp | None
    looked_at: Timestamp
    lasted_s: float = 0.0


class NodeLifecycleController(Controller):
    """Marks nodes whose agent is silent, and those that say that they are not well."""

    name: ClassVar[str] = "node-lifecycle-controller"
    source: ClassVar[str] = "node-controller"
    kinds = (Node, Lease, Pod)
    has_independent_steps = True

    def __init__(self) -> None:
        self._silences: dict[str, LeaseSilence] = {}

    def add_indexes(self, objects: Indexer) -> None:
        """Index pods by their node."""
        index_by_node(objects)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Yield the nodes that a change is about; renewed leases are seen at the next look."""
        match change.value:
            case Node(metadata=metadata):
                yield "", metadata.name
            case Lease(metadata=metadata):
                if change.old is None and metadata.namespace == LEASES:
                    yield "", metadata.name

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield the steps by which conditions follow the lease, and taints the conditions."""
        node = objects.get(Node, *key)
        if node is None:
            self._silences.pop(key[1], None)
            return
        lease = objects.get(Lease, LEASES, key[1])
        if lease is not None:
            yield RequeueAfter(key, LOOK_S)
            if self._is_silent(key[1], lease, now):
                yield from _pods_lost(objects, node, now)  # first: the rest may be refused
                if not _is_unknown(node):
                    yield from _lost(node, now)
                    return  # the taints follow once the informer has seen that
        taints = _taints(node, now)
        if taints != node.spec.taints:
            body = {
                "metadata": {"resourceVersion": node.metadata.resource_version},
                "spec": {"taints": [to_tree(each) for each in taints] or None},
            }
            yield Patch(Target.of(node), body)

    def _is_silent(self, name: str, lease: Lease, now: Timestamp) -> bool:
        last, renewed = self._silences.get(name), lease.spec.renew_time
        if last is None or last.renewed != renewed:
            self._silences[name] = LeaseSilence(renewed, now)
            return False
        passed_s = (now.instant - last.looked_at.instant) / timedelta(seconds=1)
        lasted_s = last.lasted_s + min(max(passed_s, 0.0), LOOK_S)
        self._silences[name] = LeaseSilence(renewed, now, lasted_s)
        return lasted_s >= GRACE_S


def _is_unknown(node: Node) -> bool:
    ready = condition_of(node.status.conditions, READY)
    return ready is not None and bool(ready.status == "Unknown")


def _pods_lost(objects: Indexer, node: Node, now: Timestamp) -> Iterator[Step]:
    """Set the pods of a node to not ready."""
    for pod in objects.by_index(Pod, NODE, node.metadata.name):
        if is_true(pod.status.conditions, READY):
            yield from _not_ready(pod, now)


def _lost(node: Node, now: Timestamp) -> Iterator[Step]:
    """Set the conditions that the agent reports to Unknown."""
    conditions = []
    for kind in _REPORTED:
        old = condition_of(node.status.conditions, kind)
        condition = NodeCondition(
            type=kind,
            status="Unknown",
            last_heartbeat_time=None if old is None else old.last_heartbeat_time,
            last_transition_time=now.truncated(),
            reason="NodeStatusUnknown" if old is not None else "NodeStatusNeverUpdated",
            message=f"Kubelet {'stopped posting' if old is not None else 'never posted'} "
            "node status.",
        )
        conditions.append(condition)
    yield status_patch(node, *conditions)
    name = node.metadata.name
    yield RecordEvent(node, "NodeNotReady", f"Node {name} status is now: NodeNotReady")


def _not_ready(pod: Pod, now: Timestamp) -> Iterator[Step]:
    condition = PodCondition(
        type=READY,
        status="False",
        last_transition_time=now.truncated(),
        observed_generation=pod.metadata.generation,
    )
    yield status_patch(pod, condition)
    yield RecordEvent(pod, "NodeNotReady", "Node is not ready", is_warning=True)


def _taints(node: Node, now: Timestamp) -> tuple[Taint, ...]:
    """Return the taints that a node should have: others' unchanged, ours by its conditions.

    One that pods leave by keeps the time at which it was first set.
    """
    had = {(each.key, each.effect) for each in node.spec.taints}
    wanted = list(_wanted(node))
    kept = [
        each for each in node.spec.taints if not _is_ours(each) or (each.key, each.effect) in wanted
    ]
    new = [
        Taint(key=key, effect=effect, time_added=now.truncated() if effect == NO_EXECUTE else None)
        for key, effect in wanted
        if (key, effect) not in had
    ]
    return (*kept, *new)


def _is_ours(taint: Taint) -> bool:
    """Return whether a taint is one that only this controller sets."""
    if taint.effect == NO_EXECUTE:
        return taint.key in (NOT_READY, UNREACHABLE)
    return taint.effect == NO_SCHEDULE and taint.key in _OWN_KEYS


def _wanted(node: Node) -> Iterator[tuple[str, str]]:
    for kind, status, key in _TAINTS:
        condition = condition_of(node.status.conditions, kind)
        if condition is not None and condition.status == status:
            yield key, NO_SCHEDULE
            if kind == READY:
                yield key, NO_EXECUTE
    if node.spec.unschedulable:
        yield _UNSCHEDULABLE, NO_SCHEDULE


class TaintEvictionController(Controller):
    """Evicts pods from tainted nodes."""

    name: ClassVar[str] = "taint-eviction-controller"
    kinds = (Pod, Node)

    def add_indexes(self, objects: Indexer) -> None:
        """Index pods by their node."""
        index_by_node(objects)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the pods that a change of taints, or of the pods themselves, affects."""
        value = change.value
        if isinstance(value, Pod):
            name = value.spec.node_name
            place = objects.get(Node, "", name) if name else None
            is_leaving = change.new is not None and place is not None and _evicting(place)
            return (object_key(value),) if is_leaving else ()
        old = () if change.old is None else change.old.spec.taints
        if change.new is None or value.spec.taints == old:
            return ()
        return map(object_key, objects.by_index(Pod, NODE, value.metadata.name))

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Evict a pod, or requeue it for when its tolerations end."""
        pod = objects.get(Pod, *key)
        node = None if pod is None else objects.get(Node, "", pod.spec.node_name)
        if pod is None or node is None or pod.metadata.deletion_timestamp is not None:
            return
        left_s = _time_left(pod, _evicting(node), now)
        if left_s is None or is_over(pod):
            return
        if left_s > 0:
            yield RequeueAfter(key, left_s)
        else:
            yield from _evicted(pod, now)


def _evicting(node: Node) -> list[Taint]:
    return [taint for taint in node.spec.taints if taint.effect == NO_EXECUTE]


def _time_left(pod: Pod, taints: Iterable[Taint], now: Timestamp) -> float | None:
    """Return the seconds until a pod has to leave; None if it need not."""
    left: list[float] = []
    for taint in taints:
        covering = _covering(pod.spec.tolerations, taint) or _covering(_PATIENT, taint)
        times = [each.toleration_seconds for each in covering]
        limits = [time for time in times if time is not None]
        if not covering:
            return 0.0
        if limits:
            since = (taint.time_added or now).instant
            passed_s = (now.instant - since) / timedelta(seconds=1)
            left.append(max(0, min(limits)) - max(passed_s, 0.0))
    return min(left, default=None)


def _covering(tolerations: Iterable[Toleration], taint: Taint) -> list[Toleration]:
    return [each for each in tolerations if Tolerations((each,), True).tolerate(taint)]


def _evicted(pod: Pod, now: Timestamp) -> Iterator[Step]:
    message = "Taint manager: deleting due to NoExecute taint"
    yield status_patch(pod, disruption_target(pod, "DeletionByTaintManager", message, now))
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    yield RecordEvent(pod, "TaintManagerEviction", f"Marking for deletion Pod {where}")
    yield Delete(Target.of(pod))
