"""Table printer of pods: their status is computed from all containers, as kubectl shows it."""

from __future__ import annotations

from typing import Any, NamedTuple

from moorage.api.core import ContainerStateTerminated, ContainerStatus, Pod
from moorage.api.core.pod import FAILED, POD_SCHEDULED, SUCCEEDED
from moorage.api.timestamp import NO_TIME, Timestamp
from moorage.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    Cell,
    Printer,
    RowCondition,
    age,
    text,
    wide,
)

NODE_LOST = "NodeLost"
GATED = "SchedulingGated"

_COLUMNS = (
    NAME,
    text("Ready", "How many of the pod's containers are ready."),
    text("Status", "What the pod and its containers are doing."),
    text("Restarts", "How often containers were restarted, and when the last one was."),
    AGE,
    wide("IP", "Address of the pod."),
    wide("Node", "Node that the pod is on."),
    wide("Nominated Node", "Node on which pods are preempted for this one."),
    wide("Readiness Gates", "How many of the pod's own conditions for readiness hold."),
)


class _Start(NamedTuple):
    """The progress of the init containers."""

    reason: str  # of the init container that is not done
    ready: int  # sidecars
    restarts: int
    last_restart: Timestamp
    sidecar_restarts: int
    last_sidecar_restart: Timestamp


class _Summary(NamedTuple):
    reason: str
    ready: int
    restarts: int
    last_restart: Timestamp


def _cells(pod: Pod, now: Timestamp) -> list[Cell]:
    spec, status = pod.spec, pod.status
    sidecars = sum(container.is_sidecar for container in spec.init_containers)
    found = _summary(pod)
    return [
        pod.metadata.name,
        f"{found.ready}/{len(spec.containers) + sidecars}",
        _shown_reason(pod, found.reason),
        _shown_restarts(found, now),
        age(pod.metadata.creation_timestamp, now),
        (status.pod_ips[0].ip if status.pod_ips else "") or NONE,
        spec.node_name or NONE,
        status.nominated_node_name or NONE,
        _gates(pod),
    ]


def _shown_reason(pod: Pod, reason: str) -> str:
    if pod.metadata.deletion_timestamp is None:
        return reason
    if pod.status.reason == NODE_LOST:
        return "Unknown"
    return reason if pod.status.phase in (SUCCEEDED, FAILED) else "Terminating"


def _shown_restarts(found: _Summary, now: Timestamp) -> str:
    if found.restarts == 0 or found.last_restart.is_zero:
        return str(found.restarts)
    return f"{found.restarts} ({age(found.last_restart, now)} ago)"


def _summary(pod: Pod) -> _Summary:
    start = _start(pod)
    if start.reason and not _holds(pod, "Initialized"):
        return _Summary(start.reason, start.ready, start.restarts, start.last_restart)
    reason, ready = _main(pod, start.reason or _own_reason(pod))
    statuses = pod.status.container_statuses
    return _Summary(
        reason,
        start.ready + ready,
        start.sidecar_restarts + sum(status.restart_count for status in statuses),
        max([start.last_sidecar_restart, *map(_ended, statuses)]),
    )


def _start(pod: Pod) -> _Start:
    """Return the state of the init containers, up to the first that is not done."""
    sidecars = {container.name for container in pod.spec.init_containers if container.is_sidecar}
    reason, ready = "", 0
    seen: list[ContainerStatus] = []
    for i, status in enumerate(pod.status.init_container_statuses):
        seen.append(status)
        ended = status.state.terminated
        if ended is not None and ended.exit_code == 0:
            continue
        if status.name in sidecars and status.started:
            ready += status.ready
            continue
        reason = _init_reason(status, f"{i}/{len(pod.spec.init_containers)}")
        break
    running_on = [status for status in seen if status.name in sidecars]
    return _Start(
        reason,
        ready,
        sum(status.restart_count for status in seen),
        max(map(_ended, seen), default=NO_TIME),
        sum(status.restart_count for status in running_on),
        max(map(_ended, running_on), default=NO_TIME),
    )


def _init_reason(status: ContainerStatus, progress: str) -> str:
    if (ended := status.state.terminated) is not None:
        return f"Init:{_end(ended)}"
    waits_for = _waiting_reason(status)
    if waits_for and waits_for != "PodInitializing":
        return f"Init:{waits_for}"
    return f"Init:{progress}"


def _main(pod: Pod, reason: str) -> tuple[str, int]:
    """Return the reason of the containers, and how many are ready.

    The first container with a reason wins.
    """
    fault, ready = "", 0
    for status in reversed(pod.status.container_statuses):
        ended = status.state.terminated
        if waits_for := _waiting_reason(status):
            reason = waits_for
        elif ended is not None:
            reason = _end(ended)
            fault = reason if ended.exit_code != 0 else fault
        elif status.ready and status.state.running is not None:
            ready += 1
    if reason != "Completed":
        return reason, ready
    if ready and _holds(pod, "Ready"):
        return "Running", ready
    return fault or ("NotReady" if ready else reason), ready


def _own_reason(pod: Pod) -> str:
    """Return the pod's own reason, whatever its containers do."""
    status = pod.status
    if any(c.type == POD_SCHEDULED and c.reason == GATED for c in status.conditions):
        return GATED
    return status.reason or status.phase


def _end(ended: ContainerStateTerminated) -> str:
    if ended.reason:
        return ended.reason
    return f"Signal:{ended.signal}" if ended.signal else f"ExitCode:{ended.exit_code}"


def _waiting_reason(status: ContainerStatus) -> str:
    waiting = status.state.waiting
    return str(waiting.get("reason") or "") if isinstance(waiting, dict) else ""


def _ended(status: ContainerStatus) -> Timestamp:
    """Return when the container ended last."""
    before = status.last_state.terminated
    return NO_TIME if before is None else before.finished_at or NO_TIME


def _holds(pod: Pod, condition: str) -> bool:
    return any(c.type == condition and c.status == "True" for c in pod.status.conditions)


def _gates(pod: Pod) -> str:
    gates = pod.spec.readiness_gates
    if not gates:
        return NONE
    return f"{sum(_holds(pod, _condition(gate)) for gate in gates)}/{len(gates)}"


def _condition(gate: Any) -> str:
    return str(gate.get("conditionType")) if isinstance(gate, dict) else ""


def _conditions(pod: Pod) -> tuple[RowCondition, ...]:
    return _ENDS.get(pod.status.phase, ())


_ENDS = {
    phase: (RowCondition(type="Completed", status="True", reason=phase, message=message),)
    for phase, message in (
        (SUCCEEDED, "The pod has completed successfully."),
        (FAILED, "The pod failed."),
    )
}

POD = Printer(_COLUMNS, _cells, _conditions)
