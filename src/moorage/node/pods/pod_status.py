"""The status of a pod as its node reports it: phase, conditions, containers (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.codec import to_tree
from moorage.api.core import Pod
from moorage.api.core.pod import (
    FAILED,
    PENDING,
    POD_SCHEDULED,
    RUNNING,
    SUCCEEDED,
    ContainerStatus,
    PodCondition,
    PodIP,
    PodStatus,
)
from moorage.api.timestamp import Timestamp
from moorage.client.writes import Patch, Target
from moorage.node.pods.container_status import (
    HealthOf,
    container_statuses,
    ephemeral_statuses,
    initial_statuses,
    no_health,
)
from moorage.node.pods.pod_record import PodRecord
from moorage.node.pods.resizing import unresized

# The fields that the node owns; others write the rest.
FIELDS = (
    "observedGeneration",
    "phase",
    "conditions",
    "message",
    "reason",
    "hostIP",
    "hostIPs",
    "podIP",
    "podIPs",
    "startTime",
    "initContainerStatuses",
    "containerStatuses",
    "ephemeralContainerStatuses",
)
READY_TO_START = "PodReadyToStartContainers"
INITIALIZED = "Initialized"
READY = "Ready"
CONTAINERS_READY = "ContainersReady"
RESIZE_PENDING = "PodResizePending"
RESIZE_IN_PROGRESS = "PodResizeInProgress"
OWN = (
    *(READY_TO_START, INITIALIZED, READY, CONTAINERS_READY, POD_SCHEDULED),
    *(RESIZE_PENDING, RESIZE_IN_PROGRESS),
)
ERROR = "Error"
COMPLETED = "PodCompleted"
POD_FAILED = "PodFailed"
NOT_READY = "ContainersNotReady"
NOT_INITIALIZED = "ContainersNotInitialized"
GATES_NOT_READY = "ReadinessGatesNotReady"


class NodeAddresses(Struct, frozen=True):
    """The addresses that pods of a node have."""

    host_ip: str = ""


def status_of(
    record: PodRecord,
    now: Timestamp,
    place: NodeAddresses,
    health_of: HealthOf = no_health,
) -> PodStatus:
    """Return the status of a pod, with the fields that others own unchanged."""
    pod = record.pod
    if record.is_rejected:
        return _refused(record, now)
    initial = initial_statuses(record, now)
    regular = container_statuses(record, now, health_of)
    phase = _phase(record, regular)
    ending = record.termination
    is_final = phase in (SUCCEEDED, FAILED)
    reason, message = (ending.reason, ending.message) if ending and is_final else ("", "")
    pod_ip = (pod.status.pod_ip or place.host_ip) if record.states else pod.status.pod_ip
    return replace(
        pod.status,
        observed_generation=int(pod.metadata.generation or 0),
        phase=phase,
        reason=reason or pod.status.reason,
        message=message or pod.status.message,
        conditions=_conditions(record, (initial, regular), phase, now),
        host_ip=place.host_ip,
        host_ips=(PodIP(ip=place.host_ip),) if place.host_ip else (),
        pod_ip=pod_ip,
        pod_ips=(PodIP(ip=pod_ip),) if pod_ip else (),
        start_time=pod.status.start_time or _start_time(record),
        init_container_statuses=initial,
        container_statuses=regular,
        ephemeral_container_statuses=ephemeral_statuses(record, now),
    )


def _refused(record: PodRecord, now: Timestamp) -> PodStatus:
    """Return the status of a rejected pod: it never had a container."""
    pod = record.pod
    assert record.termination is not None
    return replace(
        pod.status,
        observed_generation=int(pod.metadata.generation or 0),
        phase=FAILED,
        reason=record.termination.reason,
        message=record.termination.message,
        start_time=pod.status.start_time or _start_time(record) or now.truncated(),
    )


def _start_time(record: PodRecord) -> Timestamp | None:
    return None if record.started_at is None else record.started_at.truncated()


def patch_of(pod: Pod, status: PodStatus) -> Patch | None:
    """Return the patch that writes a status; None if nothing changed.

    Lists are replaced as a whole, so the patch applies only to the version it was made from.
    """
    before, after = to_tree(pod.status), to_tree(status)
    body: dict[str, Any] = {
        name: after.get(name) for name in FIELDS if before.get(name) != after.get(name)
    }
    if not body:
        return None
    metadata = {"resourceVersion": pod.metadata.resource_version}
    return Patch(Target.of(pod), {"metadata": metadata, "status": body}, "status")


# --- conditions -----------------------------------------------------------------------------------


# Statuses of init containers, and of the others.
Statuses = tuple[tuple[ContainerStatus, ...], tuple[ContainerStatus, ...]]


def _conditions(
    record: PodRecord, statuses: Statuses, phase: str, now: Timestamp
) -> tuple[PodCondition, ...]:
    """Return all conditions of a pod: those of others unchanged, then the kubelet's."""
    pod = record.pod
    kept = tuple(each for each in pod.status.conditions if each.type not in OWN)
    containers = _containers_ready(pod, statuses, phase)
    own = (
        _condition(READY_TO_START, record.is_set_up and not record.is_cleaned_up),
        _initialized(record, statuses[0], phase),
        _ready(pod, kept, containers),
        containers,
        _condition(POD_SCHEDULED, True),  # whoever bound it
        *_resize_conditions(record),
    )
    before = {each.type: each for each in pod.status.conditions}
    return (*kept, *(_dated(pod, each, before.get(each.type), now) for each in own))


def _resize_conditions(record: PodRecord) -> Iterator[PodCondition]:
    """Yield that a resize waits for the node, or that containers do not have it yet."""
    if record.termination is not None:
        return
    if record.resize_refusal is not None:
        yield _condition(RESIZE_PENDING, True, *record.resize_refusal)
    if waiting := [id_ for id_, _ in unresized(record)]:
        faults = [record.resize_failures[id_] for id_ in waiting if id_ in record.resize_failures]
        reason = ERROR if faults else ""
        message = "; ".join(each.message for each in faults)
        yield _condition(RESIZE_IN_PROGRESS, True, reason, message)


def _condition(type_: str, holds: bool, reason: str = "", message: str = "") -> PodCondition:
    status = "True" if holds else "False"
    return PodCondition(type=type_, status=status, reason=reason, message=message)


def _dated(
    pod: Pod, condition: PodCondition, before: PodCondition | None, now: Timestamp
) -> PodCondition:
    is_same = before is not None and before.status == condition.status
    since = before.last_transition_time if before is not None and is_same else None
    generation = int(pod.metadata.generation or 0)
    return replace(
        condition,
        observed_generation=generation,
        last_transition_time=since or now.truncated(),
    )


def _initialized(
    record: PodRecord, initial: tuple[ContainerStatus, ...], phase: str
) -> PodCondition:
    if phase == SUCCEEDED:
        return _condition(INITIALIZED, True, COMPLETED)
    if record.has_started_regular:
        return _condition(INITIALIZED, True)
    by_name = {each.name: each for each in initial}
    missing = [
        container.name
        for container in record.pod.spec.init_containers
        if not _is_initialized(by_name.get(container.name), container.is_sidecar)
    ]
    if not missing:
        return _condition(INITIALIZED, True)
    message = f"containers with incomplete status: [{' '.join(missing)}]"
    return _condition(INITIALIZED, False, NOT_INITIALIZED, message)


def _is_initialized(status: ContainerStatus | None, is_sidecar: bool) -> bool:
    if status is None:
        return False
    return bool(status.started) if is_sidecar else status.ready


def _containers_ready(pod: Pod, statuses: Statuses, phase: str) -> PodCondition:
    if phase == SUCCEEDED:
        return _condition(CONTAINERS_READY, False, COMPLETED)
    if phase == FAILED:
        return _condition(CONTAINERS_READY, False, POD_FAILED)
    by_name = {each.name: each for group in statuses for each in group}
    unready = [name for name in _serving(pod) if name in by_name and not by_name[name].ready]
    unknown = [name for name in _serving(pod) if name not in by_name]
    texts = []
    if unknown:
        texts.append(f"containers with unknown status: [{' '.join(unknown)}]")
    if unready:
        texts.append(f"containers with unready status: [{' '.join(unready)}]")
    if texts:
        return _condition(CONTAINERS_READY, False, NOT_READY, ", ".join(texts))
    return _condition(CONTAINERS_READY, True)


def _serving(pod: Pod) -> Iterator[str]:
    """Yield the containers that must be ready: sidecars and regular containers."""
    yield from (each.name for each in pod.spec.init_containers if each.is_sidecar)
    yield from (each.name for each in pod.spec.containers)


def _ready(pod: Pod, kept: tuple[PodCondition, ...], containers: PodCondition) -> PodCondition:
    if containers.status != "True":
        return replace(containers, type=READY)
    found = {each.type: each for each in kept}
    texts = []
    for gate in pod.spec.readiness_gates:
        name = str(gate.get("conditionType", "")) if isinstance(gate, dict) else ""
        condition = found.get(name)
        if condition is None:
            text = f'corresponding condition of pod readiness gate "{name}" does not exist.'
            texts.append(text)
        elif condition.status != "True":
            text = f'the status of pod readiness gate "{name}" is not "True", but '
            texts.append(f"{text}{condition.status}")
    if texts:
        return _condition(READY, False, GATES_NOT_READY, ", ".join(texts))
    return _condition(READY, True)


# --- phase ----------------------------------------------------------------------------------------


def _phase(record: PodRecord, regular: tuple[ContainerStatus, ...]) -> str:
    """Return the phase; a final one stays, and is not reported before the pod is cleaned up."""
    if (phase := record.pod.status.phase) in (SUCCEEDED, FAILED):
        return phase
    if record.termination is not None and record.is_cleaned_up:
        return record.termination.phase or (SUCCEEDED if _have_succeeded(regular) else FAILED)
    has_begun = record.is_initialized and not any(_is_yet_to_start(each) for each in regular)
    return RUNNING if has_begun else PENDING


def _have_succeeded(regular: tuple[ContainerStatus, ...]) -> bool:
    ends = [each.state.terminated for each in regular]
    return bool(ends) and all(end is not None and end.exit_code == 0 for end in ends)


def _is_yet_to_start(status: ContainerStatus) -> bool:
    return status.state.waiting is not None and status.last_state.terminated is None
