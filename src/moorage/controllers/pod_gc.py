"""Pod garbage collection and TTL after finished: pods that nobody will end, and finished jobs.

Every reason is checked at the pod or node when it changes, so that nothing is searched for. A node
counts as gone after a while and after a lookup: its kubelet may only have registered it again. Keys
are `("pod", …)` and `("node", name)`; terminated pods are counted under `("ended", "")`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, ClassVar

from moorage.api.batch import Job
from moorage.api.core import Node, Pod, PodCondition
from moorage.api.core.pod import FAILED
from moorage.api.timestamp import NO_TIME, Timestamp
from moorage.client.indexer import Indexer, ObjectKey
from moorage.client.writes import Delete, RequeueAfter, Target
from moorage.controllers.controller import Answers, Controller, Lookup, ObjectChange, Step
from moorage.controllers.job_tracking import ENDS
from moorage.controllers.pod_control import (
    NODE,
    READY,
    disruption_target,
    index_by_node,
    is_over,
    is_true,
    status_patch,
)

ENDED_MAX = 12_500  # as kube-controller-manager's --terminated-pod-gc-threshold
QUARANTINE_S = 40.0
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"

ENDED = "ended"  # the index of pods that are over
_ENDED_KEY: ObjectKey = ("ended", "")


class PodGCController(Controller):
    """Ends and deletes pods that nobody else will."""

    name: ClassVar[str] = "pod-garbage-collector-controller"
    kinds = (Pod, Node)
    has_independent_steps = True

    def __init__(self, *, ended_max: int = ENDED_MAX) -> None:
        self._ended_max = ended_max
        self._missing: dict[str, Timestamp] = {}  # nodes, and since when they are missed

    def add_indexes(self, objects: Indexer) -> None:
        """Index pods by their node, and those that are over."""
        index_by_node(objects)
        objects.index(Pod, ENDED, lambda pod: ("",) if is_over(pod) else ())

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the keys of objects that a change may make superfluous."""
        value = change.value
        if isinstance(value, Node):
            return (("node", value.metadata.name),)
        if change.new is None:
            return ()
        found = [_ENDED_KEY] if is_over(value) else []
        name = value.spec.node_name
        if name and ((node := objects.get(Node, "", name)) is None or _is_out_of_service(node)):
            found.append(("node", name))
        if not name and value.metadata.deletion_timestamp is not None:
            found.append(("pod", f"{value.metadata.namespace}/{value.metadata.name}"))
        return found

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield the pods that are to go."""
        match key:
            case ("node", name):
                yield from self._of_node(objects, name, now, answers)
            case ("pod", name):
                pod = objects.get(Pod, *name.split("/", 1))
                is_leaving = pod is not None and pod.metadata.deletion_timestamp is not None
                if pod is not None and is_leaving and not pod.spec.node_name:
                    yield from _ended(pod)
            case _:
                yield from too_many(objects, self._ended_max)

    def _of_node(
        self, objects: Indexer, name: str, now: Timestamp, answers: Answers
    ) -> Iterator[Step]:
        node = objects.get(Node, "", name)
        pods = sorted(objects.by_index(Pod, NODE, name), key=_order)
        if node is not None or not pods:
            self._missing.pop(name, None)
            if node is not None and _is_out_of_service(node):
                for pod in pods:
                    if pod.metadata.deletion_timestamp is not None:
                        yield from _ended(pod)
            return
        since = self._missing.setdefault(name, now)
        left_s = QUARANTINE_S - (now.instant - since.instant) / timedelta(seconds=1)
        ask = Lookup(Node, "", name)
        if left_s > 0:
            yield RequeueAfter(("node", name), left_s)
        elif ask not in answers:
            yield ask
        elif answers[ask] is None:
            for pod in pods:
                message = "PodGC: node no longer exists"
                yield from _ended(pod, disruption_target(pod, "DeletionByPodGC", message, now))


def too_many(objects: Indexer, ended_max: int) -> Iterator[Step]:
    """Delete the oldest of the pods that are over, evicted ones first, down to a number."""
    ended = objects.by_index(Pod, ENDED, "")
    surplus = len(ended) - ended_max
    if ended_max > 0 and surplus > 0:
        for pod in sorted(ended, key=_order)[:surplus]:
            yield from _ended(pod)


def _order(pod: Pod) -> Any:
    is_evicted = pod.status.phase == FAILED and pod.status.reason == "Evicted"
    born = pod.metadata.creation_timestamp or NO_TIME
    return not is_evicted, born.instant, pod.metadata.namespace, pod.metadata.name


def _is_out_of_service(node: Node) -> bool:
    is_marked = any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
    return is_marked and not is_true(node.status.conditions, READY)


def _ended(pod: Pod, *conditions: PodCondition) -> Iterator[Step]:
    """Delete a pod without grace; before, say that it failed, since nobody else will."""
    metadata = pod.metadata
    if not is_over(pod):
        status = {"phase": FAILED, "observedGeneration": metadata.generation}
        yield status_patch(pod, *conditions, **status)
    if metadata.deletion_timestamp is None or not metadata.finalizers:
        yield Delete(Target.of(pod), grace_s=0)


class TTLAfterFinishedController(Controller):
    """Deletes jobs that have been over for long enough."""

    name: ClassVar[str] = "ttl-after-finished-controller"
    kinds = (Job,)

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield the deletion of a job; a fresh look decides, for its time may just have changed."""
        job = objects.get(Job, *key)
        left_s = None if job is None else _ttl_left_s(job, now)
        ask = Lookup(Job, *key)
        if left_s is None:
            return
        if left_s > 0:
            yield RequeueAfter(key, left_s)
        elif ask not in answers:
            yield ask
        elif (fresh := answers[ask]) is not None:
            left_s = _ttl_left_s(fresh, now)
            if left_s is not None and left_s <= 0:
                yield Delete(Target.of(fresh), propagation="Foreground")


def finished_at(job: Job) -> Timestamp | None:
    """Return when a job finished, or None."""
    for condition in job.status.conditions:
        if condition.type in ENDS and condition.status == "True":
            return condition.last_transition_time
    return None


def _ttl_left_s(job: Job, now: Timestamp) -> float | None:
    kept_s, end = job.spec.ttl_seconds_after_finished, finished_at(job)
    if kept_s is None or end is None or job.metadata.deletion_timestamp is not None:
        return None
    return (end.after(kept_s).instant - now.instant).total_seconds()
