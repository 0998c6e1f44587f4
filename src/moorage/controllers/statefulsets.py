"""Stateful sets: numbered pods that keep their names, host names and volume claims.

One plan does what can be done now, in this order:

1. Each wanted ordinal gets a pod: finished pods are deleted, missing ones are created with their
   claims. With OrderedReady, the plan stops at the first pod that is not available yet.
2. Pods of ordinals that are no longer wanted are deleted, the highest first; with OrderedReady one
   by one, while all others are available.
3. Pods of older revisions are deleted, from the highest down to the partition, as many at a time as
   may be unavailable. With OnDelete, they stay until a user deletes them.

# monotonic: one pod after the other, as with OrderedReady; Parallel does not wait
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from moorage.api.apps import ControllerRevision, StatefulSet, StatefulSetStatus
from moorage.api.core.persistent_volume import PersistentVolumeClaim
from moorage.api.core.pod import RUNNING, Pod, PodTemplateSpec
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Create, Delete, RecordEvent, RequeueAfter, Target, Update, Write
from moorage.controllers.controller import Answers, Controller, ObjectChange, Step, WriteRefused
from moorage.controllers.controller_history import (
    REVISION_HASH,
    History,
    history_of,
    surplus,
    template_of,
)
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
    available_in_s,
    is_available,
    is_over,
    is_ready,
    with_status,
)
from moorage.controllers.statefulset_pods import (
    missing_claims,
    ordinal_of,
    replicas_of,
    retention,
    stale_claims,
    start_of,
    stateful_pod,
)

PARALLEL = "Parallel"
ON_DELETE = "OnDelete"
ROLLING = "RollingUpdate"


class StatefulSetController(Controller):
    """Maintains the pods of stateful sets."""

    name: ClassVar[str] = "statefulset-controller"
    kinds = (StatefulSet, Pod, ControllerRevision, PersistentVolumeClaim)
    optional = (PersistentVolumeClaim,)

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that the plan needs."""
        index_by_controller(objects, Pod, ControllerRevision)
        index_by_namespace(objects, StatefulSet)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the sets that a change affects."""
        match change.value:
            case StatefulSet():
                return (object_key(change.value),)
            case Pod():
                owners = controller_keys(change, "StatefulSet")
                return (*owners, *adopter_keys(objects, change, StatefulSet))
            case ControllerRevision():
                return controller_keys(change, "StatefulSet")
            case PersistentVolumeClaim() if change.gone is not None:
                # A pod may have waited for the deletion of the claim.
                namespace = change.value.metadata.namespace
                sets = objects.by_index(StatefulSet, "namespace", namespace)
                return sorted(object_key(each) for each in sets if each.spec.volume_claim_templates)
        return ()

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield the revision first, then the status, then the writes of pods."""
        owner = objects.get(StatefulSet, *key)
        selector = None if owner is None else selector_of(owner)
        if owner is None or selector is None:
            return
        pods, steps = claim(
            objects,
            Pod,
            owner,
            selector,
            answers,
            is_wanted=lambda pod: ordinal_of(owner, pod) is not None,
        )
        is_deleted = owner.metadata.deletion_timestamp is not None
        history = history_of(objects, owner)
        if not is_deleted:
            yield from history.steps
        state = SetState.of(owner, pods, history, now)
        if (changed := with_status(owner, status_of(state, pods))) is not None:
            yield Update(changed, "status")
        yield from steps
        if not is_deleted:
            yield from _manage(objects, state)
            live = {each.metadata.labels.get(REVISION_HASH, "") for each in pods}
            yield from surplus(owner, history, live | {state.current.metadata.name})
        waits = [available_in_s(pod, owner.spec.min_ready_seconds, now) for pod in pods]
        if later := [seconds for seconds in waits if seconds]:
            yield RequeueAfter(key, min(later))

    def refused(
        self, objects: Indexer, key: ObjectKey, write: Write, refused: WriteRefused
    ) -> Iterable[Step]:
        """Record an event when a pod or a claim could not be created."""
        owner = objects.get(StatefulSet, *key)
        if owner is None or not isinstance(write, Create) or refused.is_conflict:
            return
        value, of = write.value, f"in StatefulSet {owner.metadata.name}"
        what = "Pod" if isinstance(value, Pod) else "Claim"
        words = f"create {what} {value.metadata.name} {of} failed error: {refused.message}"
        yield RecordEvent(owner, "FailedCreate", words, "Create", is_warning=True)


class SetState(NamedTuple):
    """A set with its pods: those that are wanted by ordinal, and the condemned, highest first.

    A set may want two billion pods, so only those that there are have entries.
    """

    owner: StatefulSet
    ordinals: range  # that are wanted
    replicas: dict[int, Pod]
    condemned: list[Pod]
    history: History
    current: ControllerRevision
    now: Timestamp

    @classmethod
    def of(cls, owner: StatefulSet, pods: list[Pod], history: History, now: Timestamp) -> SetState:
        """Sort the pods of a set."""
        start = start_of(owner)
        ordinals = range(start, start + replicas_of(owner))
        replicas: dict[int, Pod] = {}
        condemned: list[tuple[int, Pod]] = []
        for pod in pods:
            ordinal = ordinal_of(owner, pod)
            if ordinal is None:
                continue
            if ordinal in ordinals:
                replicas[ordinal] = pod
            else:
                condemned.append((ordinal, pod))
        condemned.sort(key=lambda each: -each[0])
        current = history.find(owner.status.current_revision) or history.update
        left_over = [pod for _, pod in condemned]
        return cls(owner, ordinals, replicas, left_over, history, current, now)

    @property
    def is_monotonic(self) -> bool:
        """Whether each pod must be available before the next is changed."""
        return self.owner.spec.pod_management_policy != PARALLEL

    @property
    def partition(self) -> int:
        """The first ordinal that gets the new revision."""
        rolling = self.owner.spec.update_strategy.rolling_update
        said = rolling.get("partition", 0) if isinstance(rolling, dict) else 0
        return start_of(self.owner) + (said if isinstance(said, int) else 0)

    def is_up(self, pod: Pod) -> bool:
        """Return whether a pod runs, is available and stays."""
        if pod.metadata.deletion_timestamp is not None:
            return False
        return is_available(pod, self.owner.spec.min_ready_seconds, self.now)

    def is_updated(self, pod: Pod) -> bool:
        """Return whether a pod has the newest revision."""
        return revision_of(pod) == self.history.update.metadata.name

    def new_pod(self, ordinal: int) -> Pod:
        """Return the pod for an ordinal; below the partition it keeps the current revision."""
        strategy = self.owner.spec.update_strategy
        start, kept = start_of(self.owner), self.owner.status.current_replicas
        bound = self.partition if strategy.rolling_update is not None else start + kept
        is_rolling = strategy.type in ("", ROLLING)
        revision = self.current if is_rolling and ordinal < bound else self.history.update
        return stateful_pod(self.owner, self._template(revision), revision.metadata.name, ordinal)

    def _template(self, revision: ControllerRevision) -> PodTemplateSpec:
        own = self.owner.spec.template
        return own if revision is self.history.update else template_of(revision, own)


def revision_of(pod: Pod) -> str:
    """Return the name of a pod's revision."""
    return pod.metadata.labels.get(REVISION_HASH, "")


# --- pods --------------------------------------------------------------------------------------


def _manage(objects: Indexer, state: SetState) -> Iterator[Step]:
    steps, is_blocked = _keep(objects, state)
    yield from steps
    if is_blocked:
        return
    for pod in state.condemned:
        ordinal = ordinal_of(state.owner, pod)
        assert ordinal is not None
        yield from retention(objects, state.owner, ordinal, pod)
    if state.condemned and state.is_monotonic:
        yield from _shrink_in_order(state)
        return
    yield from _deletions(state, (p for p in state.condemned if not _is_going(p)))
    if state.owner.spec.update_strategy.type != ON_DELETE:
        yield from _deletions(state, _outdated(state))


def _keep(objects: Indexer, state: SetState) -> tuple[list[Step], bool]:
    """Return the writes for wanted pods, and whether everything else must wait for them."""
    steps: list[Step] = []
    created = 0
    for ordinal in state.ordinals:
        pod = state.replicas.get(ordinal)
        if pod is None:
            if stale_claims(objects, state.owner, ordinal):
                if state.is_monotonic:
                    return steps, True
                continue
            steps += _creation(objects, state, ordinal)
            created += 1
            if state.is_monotonic or created == BURST_MAX:
                return steps, True
            continue
        if is_over(pod):
            steps += [] if _is_going(pod) else list(_deletions(state, [pod]))
            if state.is_monotonic:
                return steps, True
            continue
        if pod.status.phase in ("", "Pending"):
            steps += missing_claims(objects, state.owner, ordinal)
        if state.is_monotonic and not state.is_up(pod):
            return steps, True
        steps += retention(objects, state.owner, ordinal, None)
    return steps, False


def _creation(objects: Indexer, state: SetState, ordinal: int) -> Iterator[Step]:
    owner, pod = state.owner, state.new_pod(ordinal)
    yield from missing_claims(objects, owner, ordinal)
    yield Create(pod)
    words = f"create Pod {pod.metadata.name} in StatefulSet {owner.metadata.name} successful"
    yield RecordEvent(owner, "SuccessfulCreate", words, "Create")


def _shrink_in_order(state: SetState) -> Iterator[Step]:
    """Yield the deletion of the highest condemned pod, unless another pod must be waited for."""
    pod = state.condemned[0]
    if _is_going(pod):
        return
    down = [each for each in reversed(state.condemned) if not state.is_up(each)]
    if state.is_up(pod) or (down and down[0] is pod):
        yield from _deletions(state, [pod])


def _outdated(state: SetState) -> list[Pod]:
    """Return the pods of older revisions to delete now, the highest ordinals first."""
    rolling = state.owner.spec.update_strategy.rolling_update
    said = rolling.get("maxUnavailable", 1) if isinstance(rolling, dict) else 1
    may_miss = max(1, part_of(said, replicas_of(state.owner), rounds_up=False))
    missing = len(state.ordinals) - sum(map(state.is_up, state.replicas.values()))
    old = [
        pod
        for ordinal, pod in sorted(state.replicas.items(), reverse=True)
        if ordinal >= state.partition and not state.is_updated(pod) and not _is_going(pod)
    ]
    if state.is_monotonic:
        return old[: max(0, may_miss - missing)]
    broken = [pod for pod in old if not state.is_up(pod)]
    good = [pod for pod in old if state.is_up(pod)]
    return [*broken, *good[: max(0, may_miss - missing)]]


def _deletions(state: SetState, pods: Iterable[Pod]) -> Iterator[Step]:
    owner = state.owner
    for pod in pods:
        yield Delete(Target.of(pod))
        words = f"delete Pod {pod.metadata.name} in StatefulSet {owner.metadata.name} successful"
        yield RecordEvent(owner, "SuccessfulDelete", words, "Delete")


def _is_going(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


# --- status ------------------------------------------------------------------------------------


def status_of(state: SetState, pods: list[Pod]) -> StatefulSetStatus:
    """Return the status; when a rollout is finished, its revision becomes the current one."""
    owner, min_ready_s = state.owner, state.owner.spec.min_ready_seconds
    ready = [pod for pod in pods if pod.status.phase == RUNNING and is_ready(pod)]
    staying = [pod for pod in pods if not _is_going(pod)]
    update, current = state.history.update.metadata.name, state.current.metadata.name
    status = replace(
        owner.status,
        observed_generation=owner.metadata.generation,
        replicas=len(pods),
        ready_replicas=len(ready),
        available_replicas=sum(is_available(pod, min_ready_s, state.now) for pod in ready),
        current_replicas=sum(revision_of(pod) == current for pod in staying),
        updated_replicas=sum(revision_of(pod) == update for pod in staying),
        current_revision=current,
        update_revision=update,
        collision_count=owner.status.collision_count or 0,
    )
    wanted = replicas_of(owner)
    counts = (status.updated_replicas, status.ready_replicas, status.replicas)
    if owner.spec.update_strategy.type in ("", ROLLING) and counts == (wanted,) * 3:
        return replace(status, current_revision=update, current_replicas=status.updated_replicas)
    return status
