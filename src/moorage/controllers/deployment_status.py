"""The status of a deployment: replica counts, availability and progress."""

from __future__ import annotations

from msgspec.structs import replace

from moorage.api.apps import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from moorage.api.timestamp import Timestamp
from moorage.controllers.deployment_rollout import sized
from moorage.controllers.pod_control import condition_of, with_condition, without_condition
from moorage.controllers.replicasets import REPLICA_FAILURE

AVAILABLE = "Available"
PROGRESSING = "Progressing"

FOUND = "FoundNewReplicaSet"
CREATED = "NewReplicaSetCreated"
UPDATED = "ReplicaSetUpdated"
COMPLETE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"

NO_DEADLINE = 2**31 - 1
DEADLINE_S = 600  # where a deployment says none

Conditions = tuple[DeploymentCondition, ...]


def deadline_s(deployment: Deployment) -> int | None:
    """Return within how many seconds a rollout must get on; None if it need not."""
    said = deployment.spec.progress_deadline_seconds
    return None if said == NO_DEADLINE else DEADLINE_S if said is None else said


def counted(
    deployment: Deployment, new: ReplicaSet | None, sets: list[ReplicaSet]
) -> DeploymentStatus:
    """Return the status with the counts of the replica sets; conditions stay the old ones."""
    available = sum(each.status.available_replicas for each in sets)
    wanted = sum(sized(each).replicas for each in sets)
    return replace(
        deployment.status,
        observed_generation=deployment.metadata.generation,
        replicas=sum(each.status.replicas for each in sets),
        updated_replicas=new.status.replicas if new is not None else 0,
        ready_replicas=sum(each.status.ready_replicas for each in sets),
        available_replicas=available,
        unavailable_replicas=max(0, wanted - available),
        terminating_replicas=sum(each.status.terminating_replicas or 0 for each in sets),
    )


def is_complete(deployment: Deployment, status: DeploymentStatus, wanted: int) -> bool:
    """Return whether all pods are new and available, and no old ones are left."""
    numbers = {status.updated_replicas, status.replicas, status.available_replicas}
    return numbers == {wanted} and status.observed_generation >= deployment.metadata.generation


def condition(
    kind: str, status: str, reason: str, message: str, now: Timestamp
) -> DeploymentCondition:
    """Return a condition as of now."""
    at = now.truncated()
    return DeploymentCondition(
        type=kind,
        status=status,
        last_update_time=at,
        last_transition_time=at,
        reason=reason,
        message=message,
    )


def with_availability(conditions: Conditions, is_available: bool, now: Timestamp) -> Conditions:
    """Return the conditions with whether enough pods are available."""
    if is_available:
        new = condition(
            AVAILABLE,
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
            now,
        )
    else:
        new = condition(
            AVAILABLE,
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
            now,
        )
    return with_condition(conditions, new)


def with_pause(deployment: Deployment, now: Timestamp) -> Conditions:
    """Return the conditions with the paused state; a pause stops the progress deadline."""
    conditions = deployment.status.conditions
    found = condition_of(conditions, PROGRESSING)
    reason = "" if found is None else found.reason
    if deadline_s(deployment) is None or reason == TIMED_OUT:
        return conditions
    if deployment.spec.paused and reason != PAUSED:
        new = condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)
        return with_condition(conditions, new)
    if not deployment.spec.paused and reason == PAUSED:
        new = condition(PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now)
        return with_condition(conditions, new)
    return conditions


def with_progress(
    deployment: Deployment,
    status: DeploymentStatus,
    new: ReplicaSet | None,
    wanted: int,
    now: Timestamp,
) -> Conditions:
    """Return the conditions with how the rollout gets on."""
    conditions = status.conditions
    limit_s = deadline_s(deployment)
    if limit_s is None:
        return without_condition(conditions, PROGRESSING)
    found = condition_of(conditions, PROGRESSING)
    is_known = found is not None and found.reason == COMPLETE
    if is_known and status.replicas == status.updated_replicas:
        return conditions
    what = f'Deployment "{deployment.metadata.name}"'
    if new is not None:
        what = f'ReplicaSet "{new.metadata.name}"'
    if is_complete(deployment, status, wanted):
        done = f"{what} has successfully progressed."
        return with_condition(conditions, condition(PROGRESSING, "True", COMPLETE, done, now))
    if _gets_on(deployment.status, status):
        going = condition(PROGRESSING, "True", UPDATED, f"{what} is progressing.", now)
        if found is not None and found.status == "True":
            going = replace(going, last_transition_time=found.last_transition_time)
        return (*without_condition(conditions, PROGRESSING), going)
    if found is not None and found.reason != COMPLETE and _left_s(found, limit_s, now) < 0:
        late = condition(PROGRESSING, "False", TIMED_OUT, f"{what} has timed out progressing.", now)
        return with_condition(conditions, late)
    return conditions


def look_again_s(
    deployment: Deployment, status: DeploymentStatus, wanted: int, now: Timestamp
) -> float | None:
    """Return the seconds until a stalled rollout exceeds its deadline, if it has one."""
    limit_s = deadline_s(deployment)
    found = condition_of(status.conditions, PROGRESSING)
    if limit_s is None or found is None or found.reason in (TIMED_OUT, COMPLETE, PAUSED):
        return None
    if is_complete(deployment, status, wanted):
        return None
    return max(1.0, _left_s(found, limit_s, now) + 1)


def _gets_on(old: DeploymentStatus, new: DeploymentStatus) -> bool:
    return (
        new.updated_replicas > old.updated_replicas
        or new.replicas - new.updated_replicas < old.replicas - old.updated_replicas
        or new.ready_replicas > old.ready_replicas
        or new.available_replicas > old.available_replicas
    )


def _left_s(found: DeploymentCondition, limit_s: int, now: Timestamp) -> float:
    since = found.last_update_time or now
    return (since.after(limit_s).instant - now.instant).total_seconds()


def with_failure(
    conditions: Conditions, new: ReplicaSet | None, sets: list[ReplicaSet]
) -> Conditions:
    """Return the conditions with why pods cannot be made: of the new set, or else of another."""
    for each in (*((new,) if new is not None else ()), *sets):
        found = condition_of(each.status.conditions, REPLICA_FAILURE)
        if found is not None:
            failure = DeploymentCondition(
                type=REPLICA_FAILURE,
                status=found.status,
                last_update_time=found.last_transition_time,
                last_transition_time=found.last_transition_time,
                reason=found.reason,
                message=found.message,
            )
            return with_condition(conditions, failure)
    return without_condition(conditions, REPLICA_FAILURE)
