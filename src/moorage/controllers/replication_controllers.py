"""Replication controllers, the predecessors of replica sets, which work in the same way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from msgspec.structs import replace

from moorage.api.core import Pod, ReplicationController
from moorage.api.core.replication_controller import (
    ReplicationControllerCondition,
    ReplicationControllerStatus,
)
from moorage.api.labels import exactly
from moorage.api.timestamp import Timestamp
from moorage.claims.pod_claims import controller_of
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import RequeueAfter, Update
from moorage.controllers.controller import Answers, ObjectChange, Step
from moorage.controllers.controller_ref_manager import (
    NAMESPACE,
    claim,
    controller_keys,
    index_by_controller,
    index_by_namespace,
)
from moorage.controllers.pod_control import (
    available_in_s,
    is_active,
    is_available,
    is_ready,
    with_condition,
    with_status,
    without_condition,
)
from moorage.controllers.replicasets import REPLICA_FAILURE, ReplicaController, manage_pods

KIND = "ReplicationController"


class ReplicationControllerController(ReplicaController):
    """Maintains the pods of replication controllers."""

    name: ClassVar[str] = "replicationcontroller-controller"
    owner_kind = ReplicationController
    kinds = (ReplicationController, Pod)

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that the plan needs."""
        index_by_controller(objects, Pod, ReplicationController)
        index_by_namespace(objects, ReplicationController)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the controllers that a change affects."""
        if isinstance(change.value, ReplicationController):
            if change.new is None:
                self._refusals.pop(object_key(change.value), None)
            return (object_key(change.value),)
        return (*controller_keys(change, KIND), *_adopters(objects, change.new))

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield the status first, so that a pod that cannot be created does not delay it."""
        owner = objects.get(ReplicationController, *key)
        if owner is None or not _selects_its_own(owner):
            return
        selector = exactly(owner.spec.selector)
        pods, steps = claim(objects, Pod, owner, selector, answers, is_wanted=is_active)
        active = [pod for pod in pods if is_active(pod)]
        status = status_of(owner, active, now, self._refusals.get(key))
        if (changed := with_status(owner, status)) is not None:
            yield Update(changed, "status")
        yield from steps
        if owner.metadata.deletion_timestamp is None:
            is_refused = key in self._refusals
            yield from manage_pods(objects, owner, pods, active, now, is_refused=is_refused)
        waits = [available_in_s(pod, owner.spec.min_ready_seconds, now) for pod in active]
        if later := [seconds for seconds in waits if seconds]:
            yield RequeueAfter(key, min(later))


def _selects_its_own(owner: ReplicationController) -> bool:
    """Return whether the selector matches the template; otherwise creation would never end."""
    template, selector = owner.spec.template, owner.spec.selector
    return template is not None and len(selector) > 0 and _selects(owner, template.metadata.labels)


def _selects(owner: ReplicationController, labels: dict[str, str]) -> bool:
    return exactly(owner.spec.selector).matches(labels)


def _adopters(objects: Indexer, pod: Pod | None) -> list[ObjectKey]:
    """Return the keys of the controllers that may adopt a pod without a controller."""
    if pod is None or controller_of(pod.metadata) is not None:
        return []
    owners = objects.by_index(ReplicationController, NAMESPACE, pod.metadata.namespace)
    return [object_key(each) for each in owners if _selects(each, pod.metadata.labels)]


def status_of(
    owner: ReplicationController, active: list[Pod], now: Timestamp, refusal: str | None
) -> ReplicationControllerStatus:
    """Return the status of a controller that has these pods."""
    template = owner.spec.template
    labels = exactly({} if template is None else template.metadata.labels)
    ready = [pod for pod in active if is_ready(pod)]
    min_ready_s = owner.spec.min_ready_seconds
    conditions = without_condition(owner.status.conditions, REPLICA_FAILURE)
    if refusal is not None:
        failure = ReplicationControllerCondition(
            type=REPLICA_FAILURE,
            status="True",
            last_transition_time=now.truncated(),
            reason="FailedCreate",
            message=refusal,
        )
        conditions = with_condition(owner.status.conditions, failure)
    return replace(
        owner.status,
        replicas=len(active),
        fully_labeled_replicas=sum(labels.matches(pod.metadata.labels) for pod in active),
        ready_replicas=len(ready),
        available_replicas=sum(is_available(pod, min_ready_s, now) for pod in ready),
        observed_generation=owner.metadata.generation,
        conditions=conditions,
    )
