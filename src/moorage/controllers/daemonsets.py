"""Daemon sets: one pod on every node that it may go to.

The pod is tied to its node by affinity, and the scheduler binds it. A pod of an older template is
replaced: with RollingUpdate as many at a time as may be unavailable, with OnDelete when somebody
deletes it. The label `controller-revision-hash`, a hash of the template, says which template a pod
is of; there are no ControllerRevisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, Final, NamedTuple

from msgspec.structs import replace

from moorage.api.apps import DaemonSet, DaemonSetStatus
from moorage.api.core import Node, Pod
from moorage.api.core.pod import FAILED, PodTemplateSpec
from moorage.api.labels import IN
from moorage.api.node_affinity import NAME_FIELD, read_need
from moorage.api.timestamp import NO_TIME, Timestamp
from moorage.api.tolerations import HARD_EFFECTS, Tolerations
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Create, RecordEvent, RequeueAfter, Update, Write
from moorage.controllers.controller import Answers, Controller, ObjectChange, Step, WriteRefused
from moorage.controllers.controller_ref_manager import (
    adopter_keys,
    claim,
    controller_keys,
    index_by_controller,
    index_by_namespace,
    selector_of,
)
from moorage.controllers.deployment_rollout import part_of
from moorage.controllers.pod_control import (
    BURST_MAX,
    PodToCreate,
    available_in_s,
    creation_refused,
    creations,
    daemon_tolerations,
    deletions,
    is_available,
    is_over,
    is_ready,
    template_hash,
    unused_names,
    with_status,
)

REVISION_HASH: Final = "controller-revision-hash"
FAILED_KEPT_S: Final = 1.0  # how long a pod that ended stays, so that a broken one does not spin


class DaemonSetController(Controller):
    """Keeps the pods of daemon sets."""

    name: ClassVar[str] = "daemonset-controller"
    kinds = (DaemonSet, Pod, Node)

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that the plan needs."""
        index_by_controller(objects, Pod)
        index_by_namespace(objects, DaemonSet)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the sets that a change affects; nodes matter only if labels or taints differ."""
        match change.value:
            case Pod():
                owners = controller_keys(change, "DaemonSet")
                return (*owners, *adopter_keys(objects, change, DaemonSet))
            case DaemonSet():
                return (object_key(change.value),)
            case Node() if change.old is None or change.new is None or _differs(change):
                return sorted(object_key(each) for each in objects.list(DaemonSet))
        return ()

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield the status, then deletions of surplus pods, then creations, then outdated pods."""
        owner = objects.get(DaemonSet, *key)
        selector = None if owner is None else selector_of(owner)
        if owner is None or selector is None:
            return
        pods, steps = claim(objects, Pod, owner, selector, answers)
        daemons = _daemons(objects, owner, pods)
        if (changed := with_status(owner, status_of(owner, daemons, now))) is not None:
            yield Update(changed, "status")
        yield from steps
        if owner.metadata.deletion_timestamp is None:
            yield from _manage(objects, owner, daemons, now)
        waits = [available_in_s(pod, owner.spec.min_ready_seconds, now) for pod in pods]
        if later := [seconds for seconds in waits if seconds]:
            yield RequeueAfter(key, min(later))

    def refused(
        self, objects: Indexer, key: ObjectKey, write: Write, refused: WriteRefused
    ) -> Iterable[Step]:
        """Record an event when a pod could not be created."""
        owner = objects.get(DaemonSet, *key)
        if isinstance(write, Create) and owner is not None and not refused.is_conflict:
            yield creation_refused(owner, refused.message)


def _differs(change: ObjectChange) -> bool:
    old, new = change.old, change.new
    assert old is not None
    assert new is not None
    return bool(old.metadata.labels != new.metadata.labels or old.spec.taints != new.spec.taints)


class Daemons(NamedTuple):
    """The pods of a set by their nodes, the oldest first; and the nodes that want one."""

    by_node: dict[str, list[Pod]]
    wanted: list[str]
    mark: str  # of the current template

    def is_current(self, pod: Pod) -> bool:
        """Return whether a pod is of the current template."""
        return pod.metadata.labels.get(REVISION_HASH) == self.mark


def _daemons(objects: Indexer, owner: DaemonSet, pods: list[Pod]) -> Daemons:
    by_node: dict[str, list[Pod]] = {}
    for pod in sorted(pods, key=_born):
        by_node.setdefault(node_of_daemon(pod), []).append(pod)
    nodes = sorted(objects.list(Node), key=object_key)
    return Daemons(
        by_node, list(nodes_for(owner.spec.template, nodes)), template_hash(owner.spec.template)
    )


def _born(pod: Pod) -> tuple[object, str]:
    return (pod.metadata.creation_timestamp or NO_TIME).instant, pod.metadata.name


# --- too many, too few, too old ----------------------------------------------------------------


def _manage(objects: Indexer, owner: DaemonSet, daemons: Daemons, now: Timestamp) -> Iterator[Step]:
    wanted = set(daemons.wanted)
    surplus: list[Pod] = []
    for node, pods in daemons.by_node.items():
        there = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        if node not in wanted:
            # On a node that only keeps new pods out, those that are there stay.
            surplus += [pod for pod in there if not _may_stay(objects, owner, node)]
        elif failed := [pod for pod in there if is_over(pod)]:
            yield from _replace_failed(owner, node, failed, now)
        else:
            surplus += there[1:]
    missing = [node for node in daemons.wanted if not daemons.by_node.get(node)]
    yield from deletions(owner, surplus[:BURST_MAX])
    yield from creations(owner, _wants(objects, owner, daemons, missing[:BURST_MAX]))
    if not surplus and not missing:
        yield from deletions(owner, _outdated(owner, daemons, now))


def _may_stay(objects: Indexer, owner: DaemonSet, node: str) -> bool:
    found = objects.get(Node, "", node)
    if found is None:
        return False  # Its pods are for those who look after lost nodes, too.
    hard = tuple(taint for taint in found.spec.taints if taint.effect == "NoExecute")
    calm = replace(found, spec=replace(found.spec, taints=hard))
    return any(True for _ in nodes_for(owner.spec.template, [calm]))


def _replace_failed(
    owner: DaemonSet, node: str, failed: list[Pod], now: Timestamp
) -> Iterator[Step]:
    """Delete pods that ended; a new one comes after that."""
    for pod in failed:
        ended = pod.status.start_time or pod.metadata.creation_timestamp or now
        wait = ended.after(FAILED_KEPT_S).instant - now.instant
        if wait.total_seconds() > 0:
            yield RequeueAfter(object_key(owner), wait.total_seconds())
            continue
        if pod.status.phase == FAILED:
            place = f"{pod.metadata.namespace}/{pod.metadata.name}"
            message = f"Found failed daemon pod {place} on node {node}, will try to kill it"
            yield RecordEvent(owner, "FailedDaemonPod", message, "Delete", is_warning=True)
        else:
            place = f"{pod.metadata.namespace}/{pod.metadata.name}"
            message = f"Found succeeded daemon pod {place} on node {node}, will try to delete it"
            yield RecordEvent(owner, "SucceededDaemonPod", message, "Delete")
        yield from deletions(owner, [pod])


def _wants(
    objects: Indexer, owner: DaemonSet, daemons: Daemons, nodes: list[str]
) -> Iterator[PodToCreate]:
    prefix = f"{owner.metadata.name}-"
    pods = [pod for each in daemons.by_node.values() for pod in each]
    names = unused_names(objects, owner, prefix, pods)
    for node, name in zip(nodes, names, strict=False):
        yield PodToCreate(name, {REVISION_HASH: daemons.mark}, node=node, generate_name=prefix)


def _outdated(owner: DaemonSet, daemons: Daemons, now: Timestamp) -> list[Pod]:
    """Return pods of older templates that may go: broken ones, and as many as may be missing."""
    if owner.spec.update_strategy.type == "OnDelete":
        return []
    old: list[Pod] = []
    missing = 0
    for node in daemons.wanted:
        pods = daemons.by_node.get(node, [])
        there = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        is_up = any(is_available(pod, owner.spec.min_ready_seconds, now) for pod in there)
        missing += not is_up
        old += [pod for pod in there if not daemons.is_current(pod)]
    said = owner.spec.update_strategy.rolling_update
    limit = said.get("maxUnavailable", 1) if isinstance(said, dict) else 1
    allowed = max(1, part_of(limit, len(daemons.wanted), rounds_up=True))
    down = [pod for pod in old if not is_available(pod, owner.spec.min_ready_seconds, now)]
    up = [pod for pod in old if pod not in down]
    return [*down, *up[: max(0, allowed - missing)]]


# --- status -----------------------------------------------------------------------------------


def status_of(owner: DaemonSet, daemons: Daemons, now: Timestamp) -> DaemonSetStatus:
    """Return on how many nodes there are pods, in which state."""
    wanted = set(daemons.wanted)
    first = {
        node: next((pod for pod in pods if pod.metadata.deletion_timestamp is None), None)
        for node, pods in daemons.by_node.items()
    }
    current = [pod for node, pod in first.items() if node in wanted and pod is not None]
    ready = [pod for pod in current if is_ready(pod)]
    min_ready_s = owner.spec.min_ready_seconds
    available = sum(is_available(pod, min_ready_s, now) for pod in ready)
    return replace(
        owner.status,
        observed_generation=owner.metadata.generation,
        desired_number_scheduled=len(wanted),
        current_number_scheduled=len(current),
        number_misscheduled=sum(
            1 for node, pod in first.items() if node not in wanted and pod is not None
        ),
        number_ready=len(ready),
        updated_number_scheduled=sum(map(daemons.is_current, current)),
        number_available=available,
        number_unavailable=len(wanted) - available,
    )


# --- nodes ------------------------------------------------------------------------------------


def nodes_for(template: PodTemplateSpec, nodes: Iterable[Node]) -> Iterator[str]:
    """Yield the names of the nodes that a pod of the template may go to."""
    pod = Pod(metadata=template.metadata, spec=template.spec)
    need = read_need(pod)
    tolerations = Tolerations(daemon_tolerations(template.spec))
    for node in nodes:
        name, labels = node.metadata.name, node.metadata.labels
        if template.spec.node_name not in ("", name):
            continue
        if need is not None and not need.is_met(name, labels):
            continue
        hard = (taint for taint in node.spec.taints if taint.effect in HARD_EFFECTS)
        if tolerations.tolerate_all(hard):
            yield name


def node_of_daemon(pod: Pod) -> str:
    """Return the node that a daemon has, or waits for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    for term in (required and required.node_selector_terms) or ():
        for field in term.match_fields:
            if field.key == NAME_FIELD and field.operator == IN and len(field.values) == 1:
                return field.values[0]
    return ""
