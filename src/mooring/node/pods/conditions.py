"""The conditions of a pod that its node tells, in a kubelet's words (pure)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mooring.api.core import Pod
from mooring.api.core.podstatus import (
    FAILED,
    POD_SCHEDULED,
    SUCCEEDED,
    ContainerStatus,
    PodCondition,
)
from mooring.api.timestamp import Timestamp
from mooring.node.pods.known import Known, has_run

READY_TO_START = "PodReadyToStartContainers"
INITIALIZED = "Initialized"
READY = "Ready"
CONTAINERS_READY = "ContainersReady"
OWN = (READY_TO_START, INITIALIZED, READY, CONTAINERS_READY, POD_SCHEDULED)

COMPLETED = "PodCompleted"
POD_FAILED = "PodFailed"
NOT_READY = "ContainersNotReady"
NOT_INITIALIZED = "ContainersNotInitialized"
GATES_NOT_READY = "ReadinessGatesNotReady"

# Statuses of init containers, and of the others.
Statuses = tuple[tuple[ContainerStatus, ...], tuple[ContainerStatus, ...]]


def conditions_of(
    pod: Pod, known: Known, statuses: Statuses, phase: str, now: Timestamp
) -> tuple[PodCondition, ...]:
    """Return all conditions of a pod: those of others as they are, then ours."""
    kept = tuple(each for each in pod.status.conditions if each.type not in OWN)
    containers = _containers_ready(pod, statuses, phase)
    own = (
        _condition(READY_TO_START, known.is_set_up and not known.is_cleared),
        _initialized(pod, known, statuses[0], phase),
        _ready(pod, kept, containers),
        containers,
        _condition(POD_SCHEDULED, True),  # whoever chose the node
    )
    before = {each.type: each for each in pod.status.conditions}
    return (*kept, *(_dated(pod, each, before.get(each.type), now) for each in own))


def _condition(type_: str, holds: bool, reason: str = "", message: str = "") -> PodCondition:
    status = "True" if holds else "False"
    return PodCondition(type=type_, status=status, reason=reason, message=message)


def _dated(
    pod: Pod, condition: PodCondition, before: PodCondition | None, now: Timestamp
) -> PodCondition:
    """Return a condition with the time since when it is so."""
    is_same = before is not None and before.status == condition.status
    since = before.last_transition_time if before is not None and is_same else None
    generation = int(pod.metadata.generation or 0)
    return replace(
        condition,
        observed_generation=generation,
        last_transition_time=since or now.truncated(),
    )


def _initialized(
    pod: Pod, known: Known, initial: tuple[ContainerStatus, ...], phase: str
) -> PodCondition:
    if phase == SUCCEEDED:
        return _condition(INITIALIZED, True, COMPLETED)
    if has_run(pod, known.states.values()):
        return _condition(INITIALIZED, True)
    by_name = {each.name: each for each in initial}
    missing = [
        container.name
        for container in pod.spec.init_containers
        if not _is_through(by_name.get(container.name), container.is_sidecar)
    ]
    if not missing:
        return _condition(INITIALIZED, True)
    message = f"containers with incomplete status: [{' '.join(missing)}]"
    return _condition(INITIALIZED, False, NOT_INITIALIZED, message)


def _is_through(status: ContainerStatus | None, is_sidecar: bool) -> bool:
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
    """Yield the containers that must be ready: sidecars, and those that are not initial."""
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
