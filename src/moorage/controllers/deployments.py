"""Deployments: replica sets of one template after the other, step by step.

1. Find the replica sets, and which of them has the template.
2. Decide on sizes: after `replicas` changed every set keeps its share; else the next step of the
   rollout; nothing moves while the deployment is paused.
3. Write the sets whose size or revision changes, delete the oldest, and write the status.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from moorage.api.apps import Deployment, DeploymentStatus, ReplicaSet
from moorage.api.core import Pod
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Create, Delete, RecordEvent, RequeueAfter, Target, Update, Write
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
from moorage.controllers.deployment_rollout import (
    REVISION,
    RolloutBounds,
    born,
    bounds_of,
    first_size,
    is_of_template,
    is_sized_for,
    new_set,
    revision_of,
    rolled,
    scaled,
    sized,
    too_old,
    with_revision,
    with_size,
)
from moorage.controllers.deployment_status import (
    CREATED,
    FOUND,
    PROGRESSING,
    Conditions,
    condition,
    counted,
    deadline_s,
    is_complete,
    look_again_s,
    with_availability,
    with_failure,
    with_pause,
    with_progress,
)
from moorage.controllers.pod_control import condition_of, is_over, with_condition

HISTORY_KEPT = 10  # old sets, where a deployment says nothing
KEEP_ALL = 2**31 - 1


class DeploymentController(Controller):
    """Rolls deployments out."""

    name: ClassVar[str] = "deployment-controller"
    kinds = (Deployment, ReplicaSet, Pod)

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that the plan needs."""
        index_by_controller(objects, Pod, ReplicaSet)
        index_by_namespace(objects, Deployment)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the deployments that a change affects; pods matter only when they are deleted."""
        match change.value:
            case Pod():
                is_leaving = change.new is None or is_over(change.new)
                return _of_pod(objects, change) if is_leaving else ()
            case Deployment():
                return (object_key(change.value),)
            case ReplicaSet():
                owners = controller_keys(change, "Deployment")
                return (*owners, *adopter_keys(objects, change, Deployment))
        return ()

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield the next step of a deployment."""
        deployment = objects.get(Deployment, *key)
        selector = None if deployment is None else selector_of(deployment)
        if deployment is None or selector is None:
            return
        sets, steps = claim(objects, ReplicaSet, deployment, selector, answers)
        yield from steps
        rollout = _rollout(deployment, sets)
        if deployment.metadata.deletion_timestamp is not None:
            yield from _status_steps(rollout, rollout, deployment.status.conditions, now)
            return
        after = _moved(objects, rollout)
        if isinstance(after, DeploymentStatus):
            yield Update(replace(deployment, status=after), "status")
            return
        yield from _writes(rollout, after)
        yield from _status_steps(rollout, after, _found(rollout, after, now), now)
        yield from _delete_old(rollout, after)

    def refused(
        self, objects: Indexer, key: ObjectKey, write: Write, refused: WriteRefused
    ) -> Iterable[Step]:
        """Record an event when a replica set could not be created."""
        owner = objects.get(Deployment, *key)
        if isinstance(write, Create) and owner is not None and not refused.is_conflict:
            name = write.value.metadata.name
            message = f'Failed to create new replica set "{name}": {refused.message}'
            yield RecordEvent(owner, "ReplicaSetCreateError", message, "Create", is_warning=True)


class Rollout(NamedTuple):
    """A deployment with its replica sets."""

    deployment: Deployment
    bounds: RolloutBounds
    new: ReplicaSet | None
    old: list[ReplicaSet]

    @property
    def sets(self) -> list[ReplicaSet]:
        """All of them."""
        return self.old if self.new is None else [*self.old, self.new]


def _of_pod(objects: Indexer, change: ObjectChange) -> Iterator[ObjectKey]:
    """Yield the deployments of a pod, by its replica set."""
    for namespace, name in controller_keys(change, "ReplicaSet"):
        owner = objects.get(ReplicaSet, namespace, name)
        if owner is not None:
            yield from controller_keys(ObjectChange(None, owner), "Deployment")


def _rollout(deployment: Deployment, sets: list[ReplicaSet]) -> Rollout:
    by_age = sorted(sets, key=born)
    new = next((each for each in by_age if is_of_template(each, deployment)), None)
    return Rollout(deployment, bounds_of(deployment), new, [s for s in by_age if s is not new])


# --- deciding ---------------------------------------------------------------------------------


def _moved(objects: Indexer, rollout: Rollout) -> Rollout | DeploymentStatus:
    """Return the rollout one step on; or a status, if another template has its hash."""
    deployment, bounds = rollout.deployment, rollout.bounds
    rollout = _revised(rollout)
    active = [each for each in rollout.sets if sized(each).replicas > 0]
    if deployment.spec.paused or not all(is_sized_for(s, bounds.wanted) for s in active):
        new = None if rollout.new is None else sized(rollout.new)
        old = [sized(each) for each in rollout.old]
        return _resized(rollout, scaled(bounds, new, old, deployment.status.replicas))
    if not bounds.is_rolling:
        if any(sized(each).replicas for each in rollout.old):
            return _resized(rollout, {each.metadata.name: 0 for each in rollout.old})
        if _runs_old_pods(objects, rollout):
            return rollout
    if rollout.new is None:
        return _begun(objects, rollout)
    if not bounds.is_rolling:
        return _resized(rollout, {rollout.new.metadata.name: bounds.wanted})
    return _resized(rollout, rolled(bounds, sized(rollout.new), [sized(s) for s in rollout.old]))


def _revised(rollout: Rollout) -> Rollout:
    """Return the rollout with the revision of the new set: one more than all others."""
    if rollout.new is None:
        return rollout
    revision = max(map(revision_of, rollout.old), default=0) + 1
    return rollout._replace(new=with_revision(rollout.new, rollout.deployment, revision))


def _begun(objects: Indexer, rollout: Rollout) -> Rollout | DeploymentStatus:
    """Return the rollout with a new set; its name may be taken by a set of another template."""
    deployment, bounds = rollout.deployment, rollout.bounds
    revision = max(map(revision_of, rollout.old), default=0) + 1
    size = first_size(bounds, [sized(each) for each in rollout.old])
    new = new_set(deployment, bounds, size, revision)
    if objects.get(ReplicaSet, *object_key(new)) is not None:
        collisions = (deployment.status.collision_count or 0) + 1
        return replace(deployment.status, collision_count=collisions)
    return rollout._replace(new=new)


def _resized(rollout: Rollout, sizes: dict[str, int]) -> Rollout:
    def changed(value: ReplicaSet) -> ReplicaSet:
        size = sizes.get(value.metadata.name)
        if size is None or size == sized(value).replicas:
            return value
        return with_size(value, rollout.bounds, size)

    new = None if rollout.new is None else changed(rollout.new)
    moved = rollout._replace(new=new, old=[changed(each) for each in rollout.old])
    return _annotated(moved)


def _annotated(rollout: Rollout) -> Rollout:
    """Return the rollout with the desired replicas in the annotations of its sets."""

    def annotated(value: ReplicaSet) -> ReplicaSet:
        if sized(value).replicas == 0 or is_sized_for(value, rollout.bounds.wanted):
            return value
        return with_size(value, rollout.bounds, sized(value).replicas)

    new = None if rollout.new is None else annotated(rollout.new)
    return rollout._replace(new=new, old=[annotated(each) for each in rollout.old])


def _runs_old_pods(objects: Indexer, rollout: Rollout) -> bool:
    if any(each.status.replicas for each in rollout.old):
        return True
    pods = (pod for each in rollout.old for pod in controlled(objects, Pod, each))
    return not all(map(is_over, pods))


# --- writing ----------------------------------------------------------------------------------


def _writes(before: Rollout, after: Rollout) -> Iterator[Step]:
    """Yield the writes of sets that changed, each with its event."""
    was = {each.metadata.name: each for each in before.sets}
    for value in after.sets:
        old = was.get(value.metadata.name)
        if old == value:
            continue
        yield Create(value) if old is None else Update(value)
        size, had = sized(value).replicas, 0 if old is None else sized(old).replicas
        if size != had:
            word = "up" if size > had else "down"
            message = f"Scaled {word} replica set {value.metadata.name} from {had} to {size}"
            yield RecordEvent(before.deployment, "ScalingReplicaSet", message, "Scale")


def _delete_old(before: Rollout, after: Rollout) -> Iterator[Step]:
    """Delete old sets beyond the history limit once the rollout is complete or paused."""
    deployment, bounds = before.deployment, before.bounds
    limit = deployment.spec.revision_history_limit
    kept = HISTORY_KEPT if limit is None else limit
    is_done = is_complete(deployment, deployment.status, bounds.wanted)
    if kept == KEEP_ALL or not (is_done or deployment.spec.paused):
        return
    for each in too_old(after.old, kept):
        yield Delete(Target.of(each))


def _found(before: Rollout, after: Rollout, now: Timestamp) -> Conditions:
    """Return the conditions with a pause or a new set."""
    deployment = before.deployment
    conditions = with_pause(deployment, now)
    new = after.new
    if deadline_s(deployment) is not None and new is not None:
        name = new.metadata.name
        if before.new is None:
            made = condition(PROGRESSING, "True", CREATED, f'Created new replica set "{name}"', now)
            conditions = with_condition(conditions, made)
        elif condition_of(conditions, PROGRESSING) is None:
            seen = condition(PROGRESSING, "True", FOUND, f'Found new replica set "{name}"', now)
            conditions = with_condition(conditions, seen)
    return conditions


def _status_steps(
    before: Rollout, after: Rollout, conditions: Conditions, now: Timestamp
) -> Iterator[Step]:
    """Yield the status, and the revision on the deployment itself."""
    deployment, bounds = before.deployment, before.bounds
    status = replace(counted(deployment, after.new, after.sets), conditions=conditions)
    enough = bounds.wanted - bounds.unavailable
    status = replace(
        status,
        conditions=with_availability(status.conditions, status.available_replicas >= enough, now),
    )
    if not deployment.spec.paused and deployment.metadata.deletion_timestamp is None:
        conditions = with_progress(deployment, status, after.new, bounds.wanted, now)
        status = replace(status, conditions=with_failure(conditions, after.new, after.sets))
    if status != deployment.status:
        yield Update(replace(deployment, status=status), "status")
    if after.new is not None and revision_of(deployment) != revision_of(after.new):
        yield Update(_with_revision(deployment, revision_of(after.new)))
    again_s = look_again_s(deployment, status, bounds.wanted, now)
    if again_s is not None:
        yield RequeueAfter(object_key(deployment), again_s)


def _with_revision(deployment: Deployment, revision: int) -> Deployment:
    annotations = {**deployment.metadata.annotations, REVISION: str(revision)}
    return replace(deployment, metadata=replace(deployment.metadata, annotations=annotations))
