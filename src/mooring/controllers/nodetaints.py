"""Pods leave nodes whose NoExecute taints they do not tolerate, or no longer.

A pod that tolerates a taint for some time leaves that long after it was set, by the shortest of the
tolerations that cover it. Of nodes that are not ready, or not heard of, every pod leaves after five
minutes unless it says otherwise: a server of Kubernetes writes that into pods, ours need not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import ClassVar

from mooring.api.codec import to_tree
from mooring.api.core import Node, Pod, PodCondition, Toleration
from mooring.api.core.placement import NO_EXECUTE, Taint
from mooring.api.core.podstatus import DISRUPTION_TARGET
from mooring.api.timestamp import Timestamp
from mooring.api.tolerations import Tolerations
from mooring.client.objects import Key, Objects, key_of
from mooring.client.writes import Delete, LookAgain, Patch, Target, Tell
from mooring.controllers.conditions import with_condition
from mooring.controllers.controller import Answers, Change, Controller, Step
from mooring.controllers.nodelifecycle import NODE, NOT_READY, UNREACHABLE
from mooring.controllers.podstates import is_over

PATIENCE_S = 300
_PATIENT = tuple(
    Toleration(key=key, operator="Exists", effect=NO_EXECUTE, toleration_seconds=PATIENCE_S)
    for key in (NOT_READY, UNREACHABLE)
)


class NodeTaintEvictions(Controller):
    """Evicts pods from tainted nodes."""

    name: ClassVar[str] = "taint-eviction-controller"
    kinds = (Pod, Node)

    def prepare(self, objects: Objects) -> None:
        """Keep pods by their node."""
        objects.index(Pod, NODE, lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())

    def keys(self, objects: Objects, change: Change) -> Iterable[Key]:
        """Give the pods that a change of taints, or of themselves, is about."""
        match change.value:
            case Node(metadata=metadata) as node:
                old = () if change.old is None else change.old.spec.taints
                if change.new is not None and node.spec.taints != old:
                    yield from map(key_of, objects.by(Pod, NODE, metadata.name))
            case Pod(spec=spec) as pod:
                place = objects.find(Node, "", spec.node_name) if spec.node_name else None
                if change.new is not None and place is not None and _evicting(place):
                    yield key_of(pod)

    def plan(self, objects: Objects, key: Key, now: Timestamp, answers: Answers) -> Iterable[Step]:  # noqa: ARG002
        """Say when a pod is to leave, and have it leave."""
        pod = objects.find(Pod, *key)
        node = None if pod is None else objects.find(Node, "", pod.spec.node_name)
        if pod is None or node is None or pod.metadata.deletion_timestamp is not None:
            return
        left_s = _time_left(pod, _evicting(node), now)
        if left_s is None or is_over(pod):
            return
        if left_s > 0:
            yield LookAgain(key, left_s)
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
    generation = pod.metadata.generation
    told = PodCondition(
        type=DISRUPTION_TARGET,
        status="True",
        last_transition_time=now.truncated(),
        observed_generation=generation,
        reason="DeletionByTaintManager",
        message="Taint manager: deleting due to NoExecute taint",
    )
    conditions = [to_tree(each) for each in with_condition(pod.status.conditions, told)]
    only = {"resourceVersion": pod.metadata.resource_version}  # the list is replaced as a whole
    yield Patch(Target.of(pod), {"metadata": only, "status": {"conditions": conditions}}, "status")
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    yield Tell(pod, "TaintManagerEviction", f"Marking for deletion Pod {where}")
    yield Delete(Target.of(pod))
