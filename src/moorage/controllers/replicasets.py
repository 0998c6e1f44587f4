"""Replica sets: keeps a number of pods of a template, whatever happens to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar

from msgspec.structs import replace

from moorage.api.apps import ControllerCondition, ReplicaSet, ReplicaSetStatus
from moorage.api.core import Pod, ReplicationController
from moorage.api.labels import exactly
from moorage.api.timestamp import Timestamp
from moorage.claims.pod_claims import controller_of
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Create, RequeueAfter, Update, Write
from moorage.controllers.controller import Answers, Controller, ObjectChange, Step, WriteRefused
from moorage.controllers.controller_ref_manager import (
    adopter_keys,
    claim,
    controlled,
    controller_keys,
    index_by_controller,
    index_by_namespace,
    selector_of,
)
from moorage.controllers.pod_control import (
    BURST_MAX,
    PodToCreate,
    available_in_s,
    creation_refused,
    creations,
    deletions,
    first_to_go,
    is_active,
    is_available,
    is_ready,
    is_terminating,
    unused_names,
    with_condition,
    with_status,
    without_condition,
)

REPLICA_FAILURE = "ReplicaFailure"
NAMESPACE_TERMINATING = "because it is being terminated"


class ReplicaController(Controller):
    """The base of controllers of identical pods: remembers why a pod could not be created."""

    owner_kind: ClassVar[type[Any]]

    def __init__(self) -> None:
        self._refusals: dict[ObjectKey, str] = {}  # why the last pod could not be created

    def wrote(
        self, objects: Indexer, key: ObjectKey, write: Write, now: Timestamp
    ) -> Iterable[Step]:
        """Forget a refusal once a pod was created."""
        if isinstance(write, Create) and self._refusals.pop(key, None) is not None:
            yield RequeueAfter(key, 0.0)

    def refused(
        self, objects: Indexer, key: ObjectKey, write: Write, refused: WriteRefused
    ) -> Iterable[Step]:
        """Remember why a pod could not be created, and record an event."""
        owner = objects.get(self.owner_kind, *key)
        if isinstance(write, Create) and owner is not None and not refused.is_conflict:
            self._refusals[key] = refused.message
            if refused.message.endswith(NAMESPACE_TERMINATING):
                return  # The set is being deleted, too.
            yield creation_refused(owner, refused.message)


class ReplicaSetController(ReplicaController):
    """Keeps the pods of replica sets."""

    name: ClassVar[str] = "replicaset-controller"
    owner_kind = ReplicaSet
    kinds = (ReplicaSet, Pod)

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that the plan needs."""
        index_by_controller(objects, Pod, ReplicaSet)
        index_by_namespace(objects, ReplicaSet)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the sets that a change affects."""
        if isinstance(change.value, ReplicaSet):
            if change.new is None:
                self._refusals.pop(object_key(change.value), None)
            return (object_key(change.value),)
        owners = controller_keys(change, "ReplicaSet")
        return (*owners, *adopter_keys(objects, change, ReplicaSet))

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield the status first: a pod that cannot be created must not keep it back."""
        owner = objects.get(ReplicaSet, *key)
        selector = None if owner is None else selector_of(owner)
        if owner is None or selector is None:
            return
        pods, steps = claim(objects, Pod, owner, selector, answers, is_wanted=is_active)
        active = [pod for pod in pods if is_active(pod)]
        status = status_of(owner, pods, now, self._refusals.get(key))
        if (changed := with_status(owner, status)) is not None:
            yield Update(changed, "status")
        yield from steps
        if owner.metadata.deletion_timestamp is None:
            is_refused = key in self._refusals
            yield from manage_pods(objects, owner, pods, active, now, is_refused=is_refused)
        waits = [available_in_s(pod, owner.spec.min_ready_seconds, now) for pod in active]
        if later := [seconds for seconds in waits if seconds]:
            yield RequeueAfter(key, min(later))


def replicas_of(owner: ReplicaSet | ReplicationController) -> int:
    """Return how many pods a set wants: one if it says nothing."""
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def manage_pods(
    objects: Indexer,
    owner: Any,  # a ReplicaSet, or a ReplicationController with a template
    pods: list[Pod],
    active: list[Pod],
    now: Timestamp,
    *,
    is_refused: bool = False,
) -> Iterator[Step]:
    """Yield the writes that create missing pods, or delete surplus ones.

    After a refusal, only one pod is tried: the server would refuse all of them.
    """
    missing = replicas_of(owner) - len(active)
    if missing > 0:
        prefix = f"{owner.metadata.name}-"
        names = unused_names(objects, owner, prefix, pods)
        chosen = islice(names, 1 if is_refused else min(missing, BURST_MAX))
        yield from creations(owner, (PodToCreate(name, generate_name=prefix) for name in chosen))
    elif missing < 0:
        ranked = first_to_go(active, _related(objects, owner, active), now)
        yield from deletions(owner, ranked[: min(-missing, BURST_MAX)])


def _related(
    objects: Indexer, owner: ReplicaSet | ReplicationController, active: list[Pod]
) -> list[Pod]:
    """Return the pods of all sets of the same deployment."""
    deployment = controller_of(owner.metadata)
    if deployment is None:
        return active
    sets = objects.by_index(ReplicaSet, "controller", deployment.uid)
    return [pod for each in sets for pod in controlled(objects, Pod, each)]


def status_of(
    owner: ReplicaSet, pods: list[Pod], now: Timestamp, refusal: str | None
) -> ReplicaSetStatus:
    """Return the status of a set that has these pods."""
    active = [pod for pod in pods if is_active(pod)]
    labels = exactly(owner.spec.template.metadata.labels)
    ready = [pod for pod in active if is_ready(pod)]
    min_ready_s = owner.spec.min_ready_seconds
    return replace(
        owner.status,
        replicas=len(active),
        fully_labeled_replicas=sum(labels.matches(pod.metadata.labels) for pod in active),
        ready_replicas=len(ready),
        available_replicas=sum(is_available(pod, min_ready_s, now) for pod in ready),
        terminating_replicas=sum(map(is_terminating, pods)),
        observed_generation=owner.metadata.generation,
        conditions=_conditions(owner, now, refusal),
    )


def _conditions(
    owner: ReplicaSet, now: Timestamp, refusal: str | None
) -> tuple[ControllerCondition, ...]:
    if refusal is None:
        return without_condition(owner.status.conditions, REPLICA_FAILURE)
    failure = ControllerCondition(
        type=REPLICA_FAILURE,
        status="True",
        last_transition_time=now.truncated(),
        reason="FailedCreate",
        message=refusal,
    )
    return with_condition(owner.status.conditions, failure)
