"""The statuses that simulated nodes report of their pods, as patches."""

from __future__ import annotations

import math
from typing import Any
from zlib import crc32

from moorage.api.codec import to_tree
from moorage.api.core import Container, Pod
from moorage.api.core.pod import FAILED, RUNNING, SUCCEEDED, ContainerStatus
from moorage.api.timestamp import Timestamp
from moorage.client.writes import Patch, Target
from moorage.node.runtime.sim import End, end_of_container

HOST_IP = "127.0.0.1"
STOPPED = 143  # ended by SIGTERM
_CONDITIONS = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)


def running_patch(pod: Pod, now: Timestamp) -> Patch:
    """Return the status of a pod that has begun to run."""
    at = str(now.truncated())
    address = HOST_IP if pod.spec.host_network else _address(pod)
    sidecars = [_status(each, _now_running(at)) for each in pod.spec.init_containers]
    for each, status in zip(pod.spec.init_containers, sidecars, strict=True):
        if not each.is_sidecar:
            status.update(_terminated(End(0.0), at, at), ready=True)
    status = {
        "phase": RUNNING,
        "hostIP": HOST_IP,
        "hostIPs": [{"ip": HOST_IP}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": at,
        "conditions": _conditions(pod, "True", at),
        "containerStatuses": [_status(e, _now_running(at)) for e in pod.spec.containers],
    }
    if sidecars:
        status["initContainerStatuses"] = sidecars
    return _patch(pod, status)


def _address(pod: Pod) -> str:
    """Return a pod's IP address, derived from its UID."""
    number = crc32(pod.metadata.uid.encode())
    return f"10.{128 + (number >> 16) % 128}.{(number >> 8) % 256}.{number % 254 + 1}"


def over_patch(pod: Pod, end: End, now: Timestamp) -> Patch:
    """Return the status of a pod that has ended."""
    at = str(now.truncated())
    started = str(pod.status.start_time or now.truncated())
    status = {
        "phase": FAILED if end.code else SUCCEEDED,
        "conditions": _conditions(pod, "False", at, "" if end.code else "PodCompleted"),
        "containerStatuses": [
            _status(each, _terminated(end, started, at)) for each in pod.spec.containers
        ],
    }
    if pod.spec.ephemeral_containers:
        stopped = End(0.0, STOPPED)
        status["ephemeralContainerStatuses"] = _ephemeral_statuses(pod, now, stopped)
    return _patch(pod, status)


def _patch(pod: Pod, status: dict[str, Any]) -> Patch:
    metadata = {"resourceVersion": pod.metadata.resource_version}  # lists are replaced as a whole
    body = {"metadata": metadata, "status": {**status, "observedGeneration": _generation(pod)}}
    return Patch(Target.of(pod), body, "status")


def _conditions(pod: Pod, status: str, at: str, reason: str = "") -> list[dict[str, Any]]:
    """Return the conditions of a pod, with those of the kubelet set."""
    kept = [to_tree(each) for each in pod.status.conditions if each.type not in _CONDITIONS]
    own = []
    for type_ in _CONDITIONS:
        is_set = status == "True" or type_ in ("Ready", "ContainersReady")
        told = {"type": type_, "status": status if is_set else "True", "lastTransitionTime": at}
        told |= {"reason": reason} if reason and is_set else {}
        own.append({**told, "observedGeneration": _generation(pod)})
    return [*own, *kept]


def _generation(pod: Pod) -> int:
    return int(pod.metadata.generation or 0)


def _status(container: Container, state: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": f"simulated://{container.image}",
        "restartCount": 0,
        "lastState": {},
        **state,
    }


def _now_running(at: str) -> dict[str, Any]:
    return {"ready": True, "started": True, "state": {"running": {"startedAt": at}}}


def _terminated(end: End, started: str, at: str) -> dict[str, Any]:
    reason = "Error" if end.code else "Completed"
    state = {"exitCode": end.code, "reason": reason, "startedAt": started, "finishedAt": at}
    return {"ready": False, "started": False, "state": {"terminated": state}}


# --- ephemeral containers -------------------------------------------------------------------------


def left_s(end: End | None, started: Timestamp | None, now: Timestamp) -> float:
    """Return how long something still runs."""
    if end is None or started is None:
        return math.inf
    return end.after_s - (now.instant - started.instant).total_seconds()


def ephemeral_patch(pod: Pod, now: Timestamp) -> Patch:
    """Return what has become of the ephemeral containers of a pod that runs."""
    return _patch(pod, {"ephemeralContainerStatuses": _ephemeral_statuses(pod, now)})


def ephemeral_left_s(pod: Pod, now: Timestamp) -> float:
    """Return when their statuses change next: 0 if one has just been added."""
    known = {each.name: each for each in pod.status.ephemeral_container_statuses}
    added = pod.spec.ephemeral_containers
    if any(each.name not in known for each in added):
        return 0.0
    running = [each for each in added if known[each.name].state.terminated is None]
    waits = (left_s(_end(each), _started(known[each.name], now), now) for each in running)
    return min(waits, default=math.inf)


def _ephemeral_statuses(
    pod: Pod, now: Timestamp, stopped: End | None = None
) -> list[dict[str, Any]]:
    """Return the statuses of ephemeral containers, which run once and are never ready."""
    found, at = [], str(now.truncated())
    known = {each.name: each for each in pod.status.ephemeral_container_statuses}
    for each in pod.spec.ephemeral_containers:
        before = known.get(each.name)
        if before is not None and before.state.terminated is not None:
            found.append(to_tree(before))
            continue
        started = _started(before, now)
        end = _end(each)
        if left_s(end, started, now) > 0:
            end = stopped
        since = str(started.truncated())
        state = _now_running(since) if end is None else _terminated(end, since, at)
        found.append({**_status(each, state), "ready": False})
    return found


def _started(status: ContainerStatus | None, now: Timestamp) -> Timestamp:
    running = None if status is None else status.state.running
    return Timestamp.parse(running["startedAt"]) if running else now


def _end(container: Container) -> End | None:
    return end_of_container((*container.command, *container.args), {})
