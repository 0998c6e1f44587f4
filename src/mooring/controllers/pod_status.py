"""What controllers ask of pods: are they active, ready, available; which may go first."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, TypeVar

from msgspec.structs import replace

from mooring.api.core import Pod
from mooring.api.core.podstatus import FAILED, PENDING, RUNNING, SUCCEEDED
from mooring.api.gointegers import parse_int64
from mooring.api.timestamp import Timestamp

READY = "Ready"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_PHASES = {PENDING: 0, "": 0, "Unknown": 1, RUNNING: 2}
C = TypeVar("C")


def is_over(pod: Pod) -> bool:
    """Tell whether a pod has come to its end."""
    return pod.status.phase in (SUCCEEDED, FAILED)


def is_active(pod: Pod) -> bool:
    """Tell whether a pod counts as one that its controller has."""
    return not is_over(pod) and pod.metadata.deletion_timestamp is None


def is_terminating(pod: Pod) -> bool:
    """Tell whether a pod is on its way out but still may run."""
    return not is_over(pod) and pod.metadata.deletion_timestamp is not None


def ready_since(pod: Pod) -> Timestamp | None:
    """Return since when a pod is ready, if it is and says so."""
    for condition in pod.status.conditions:
        if condition.type == READY and condition.status == "True":
            return condition.last_transition_time
    return None


def is_ready(pod: Pod) -> bool:
    """Tell whether a pod is ready."""
    return any(c.type == READY and c.status == "True" for c in pod.status.conditions)


def available_in_s(pod: Pod, min_ready_s: int, now: Timestamp) -> float | None:
    """Return after how many seconds a pod is available: 0 if it is, None if it is not ready."""
    if not is_ready(pod):
        return None
    if min_ready_s <= 0:
        return 0.0
    since = ready_since(pod)
    if since is None:
        return None
    left = since.instant + timedelta(seconds=min_ready_s) - now.instant
    return max(0.0, left.total_seconds())


def is_available(pod: Pod, min_ready_s: int, now: Timestamp) -> bool:
    """Tell whether a pod has been ready for long enough."""
    return available_in_s(pod, min_ready_s, now) == 0.0


# --- which may go first -----------------------------------------------------------------------


def first_to_go(pods: Iterable[Pod], related: Iterable[Pod], now: Timestamp) -> list[Pod]:
    """Return pods with those first that are missed least.

    In this order: without a node, not yet running, not ready, cheap, beside others of the
    `related` pods on their node, ready for a short time, often restarted, young. Times count by
    their order of magnitude; of two alike the uid decides.
    """
    beside: dict[str, int] = {}
    for pod in related:
        if is_active(pod) and pod.spec.node_name:
            beside[pod.spec.node_name] = beside.get(pod.spec.node_name, 0) + 1

    def place(pod: Pod) -> tuple[Any, ...]:
        ready = is_ready(pod)
        return (
            pod.spec.node_name != "",
            _PHASES.get(pod.status.phase, 3),
            ready,
            _cost(pod),
            -beside.get(pod.spec.node_name, 0),
            _age(ready_since(pod), now) if ready else 0,
            -_restarts(pod),
            _age(pod.metadata.creation_timestamp, now),
            pod.metadata.uid,
        )

    return sorted(pods, key=place)


def _cost(pod: Pod) -> int:
    text = pod.metadata.annotations.get(DELETION_COST)
    return 0 if text is None else parse_int64(text) or 0


def _restarts(pod: Pod) -> int:
    return max((status.restart_count for status in pod.status.container_statuses), default=0)


def _age(time: Timestamp | None, now: Timestamp) -> int:
    """Return the order of magnitude of an age: -1 for none at all."""
    if time is None:
        return -1
    nanoseconds = (now.instant - time.instant).total_seconds() * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def condition_of(conditions: Iterable[Any], kind: str) -> Any | None:
    """Return the condition of a type, if there is one."""
    return next((each for each in conditions if each.type == kind), None)


def is_true(conditions: Iterable[Any], kind: str) -> bool:
    """Tell whether the condition of a type holds."""
    found = condition_of(conditions, kind)
    return found is not None and found.status == "True"


def with_condition(conditions: tuple[C, ...], new: Any) -> tuple[C, ...]:
    """Return the conditions with this one, unless one of its status and reason is there.

    The time of transition stays while the status does.
    """
    old = condition_of(conditions, new.type)
    if old is not None and (old.status, old.reason) == (new.status, new.reason):
        return conditions
    if old is not None and old.status == new.status:
        new = replace(new, last_transition_time=old.last_transition_time)
    return (*without_condition(conditions, new.type), new)


def without_condition(conditions: tuple[C, ...], kind: str) -> tuple[C, ...]:
    """Return the conditions without that of a type."""
    return tuple(each for each in conditions if each.type != kind)  # type: ignore[attr-defined]
