"""What a node tells of a pod, and the write that tells it (pure)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mooring.api.codec import to_tree
from mooring.api.core import Pod
from mooring.api.core.podstatus import FAILED, SUCCEEDED, PodIP, PodStatus
from mooring.api.timestamp import Timestamp
from mooring.client.writes import Patch, Target
from mooring.node.pods.conditions import conditions_of
from mooring.node.pods.containerstatuses import (
    HealthOf,
    container_statuses,
    initial_statuses,
    no_health,
)
from mooring.node.pods.known import Known
from mooring.node.pods.phases import phase_of

# What is ours to tell; all else of a status is others'.
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
)


class Place(Struct, frozen=True):
    """Where pods of a node are."""

    host_ip: str = ""


def status_of(
    pod: Pod, known: Known, now: Timestamp, place: Place, health_of: HealthOf = no_health
) -> PodStatus:
    """Return the status of a pod, with what others have told of it."""
    if known.is_refused:
        return _refused(pod, known, now)
    initial = initial_statuses(pod, known, now)
    regular = container_statuses(pod, known, now, health_of)
    phase = phase_of(pod, known, regular)
    ending = known.ending
    is_final = phase in (SUCCEEDED, FAILED)
    reason, message = (ending.reason, ending.message) if ending and is_final else ("", "")
    pod_ip = (pod.status.pod_ip or place.host_ip) if known.states else pod.status.pod_ip
    return replace(
        pod.status,
        observed_generation=int(pod.metadata.generation or 0),
        phase=phase,
        reason=reason or pod.status.reason,
        message=message or pod.status.message,
        conditions=conditions_of(pod, known, (initial, regular), phase, now),
        host_ip=place.host_ip,
        host_ips=(PodIP(ip=place.host_ip),) if place.host_ip else (),
        pod_ip=pod_ip,
        pod_ips=(PodIP(ip=pod_ip),) if pod_ip else (),
        start_time=pod.status.start_time or _start_time(known),
        init_container_statuses=initial,
        container_statuses=regular,
    )


def _refused(pod: Pod, known: Known, now: Timestamp) -> PodStatus:
    """Return the status of a pod that the node did not take: no container was ever there."""
    assert known.ending is not None
    return replace(
        pod.status,
        observed_generation=int(pod.metadata.generation or 0),
        phase=FAILED,
        reason=known.ending.reason,
        message=known.ending.message,
        start_time=pod.status.start_time or _start_time(known) or now.truncated(),
    )


def _start_time(known: Known) -> Timestamp | None:
    return None if known.started_at is None else known.started_at.truncated()


def patch_of(pod: Pod, status: PodStatus) -> Patch | None:
    """Return the write that makes a status known; None if the cluster knows it already.

    Lists are replaced as a whole, so that it only meets the version that was looked at.
    """
    before, after = to_tree(pod.status), to_tree(status)
    body: dict[str, Any] = {
        name: after.get(name) for name in FIELDS if before.get(name) != after.get(name)
    }
    if not body:
        return None
    metadata = {"resourceVersion": pod.metadata.resource_version}
    return Patch(Target.of(pod), {"metadata": metadata, "status": body}, "status")
