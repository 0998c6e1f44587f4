"""Why a pod ends, if it does (pure)."""

from __future__ import annotations

from datetime import timedelta

from mooring.api.core import Pod
from mooring.api.core.podstatus import FAILED, SUCCEEDED
from mooring.api.timestamp import Timestamp
from mooring.node.pods.known import Ending, Known, latest_of
from mooring.node.pods.restarting import runs_again
from mooring.node.runtime.contract import Phase

DEADLINE = "DeadlineExceeded"
DEADLINE_TEXT = "Pod was active on the node longer than the specified deadline"
GRACE_S = 30
GONE_GRACE_S = 1.0  # of pods that nobody waits for any more


def ending_of(pod: Pod, known: Known, now: Timestamp) -> Ending | None:
    """Return why a pod is to end, or None; a grace that becomes shorter holds at once."""
    ending = known.ending or _reason(pod, known, now)
    grace_s = _wanted_grace_s(pod, known)
    if grace_s is None:
        return ending
    if ending is None:
        return Ending(now, grace_s)
    sooner = Timestamp(now.instant + timedelta(seconds=grace_s))
    if not sooner < ending.deadline:
        return ending
    left_s = (sooner.instant - ending.since.instant).total_seconds()
    return Ending(ending.since, left_s, ending.phase, ending.reason, ending.message)


def _wanted_grace_s(pod: Pod, known: Known) -> float | None:
    """Return how long the containers of a pod have that is deleted; None if it is not."""
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        given = metadata.deletion_grace_period_seconds
        grace_s = float(_own_grace_s(pod) if given is None else given)
        return min(grace_s, GONE_GRACE_S) if known.is_gone else grace_s
    return GONE_GRACE_S if known.is_gone else None


def _reason(pod: Pod, known: Known, now: Timestamp) -> Ending | None:
    status = pod.status
    if status.phase in (SUCCEEDED, FAILED):  # also when others say so
        return Ending(now, _own_grace_s(pod), status.phase, status.reason, status.message)
    if (left_s := deadline_in_s(pod, known, now)) is not None and left_s <= 0:
        return Ending(now, _own_grace_s(pod), FAILED, DEADLINE, DEADLINE_TEXT)
    if _has_failed_to_begin(pod, known):
        return Ending(now, _own_grace_s(pod), FAILED)
    if _is_done(pod, known):
        return Ending(now, _own_grace_s(pod))
    return None


def deadline_in_s(pod: Pod, known: Known, now: Timestamp) -> float | None:
    """Return how long a pod may still be active; None: as long as it likes."""
    limit_s = pod.spec.active_deadline_seconds
    if limit_s is None or known.started_at is None:
        return None
    return limit_s - (now.instant - known.started_at.instant).total_seconds()


def _has_failed_to_begin(pod: Pod, known: Known) -> bool:
    latest = latest_of(known.states.values())
    for container in pod.spec.init_containers:
        state = latest.get(container.name)
        if container.is_sidecar or state is None or state.phase is not Phase.EXITED:
            continue
        if state.exit_code and not runs_again(pod, container, state.exit_code):
            return True
    return False


def _is_done(pod: Pod, known: Known) -> bool:
    """Tell whether every container has ended for good."""
    latest = latest_of(known.states.values())
    for container in pod.spec.containers:
        state = latest.get(container.name)
        if state is None or state.phase is not Phase.EXITED:
            return False
        if runs_again(pod, container, state.exit_code):
            return False
    return bool(pod.spec.containers)


def _own_grace_s(pod: Pod) -> float:
    given = pod.spec.termination_grace_period_seconds
    return float(GRACE_S if given is None else given)
