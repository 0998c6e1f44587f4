"""Which phase a pod is in, by what is told of its containers (pure)."""

from __future__ import annotations

from mooring.api.core import Pod
from mooring.api.core.podstatus import (
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    ContainerStatus,
)
from mooring.node.pods.known import Known, is_initialized


def phase_of(pod: Pod, known: Known, regular: tuple[ContainerStatus, ...]) -> str:
    """Return the phase; one that is final stays, and is not told before all is taken back."""
    if pod.status.phase in (SUCCEEDED, FAILED):
        return pod.status.phase
    if known.ending is not None and known.is_cleared:
        return known.ending.phase or (SUCCEEDED if _have_succeeded(regular) else FAILED)
    has_begun = is_initialized(pod, known) and not any(_is_yet_to_start(each) for each in regular)
    return RUNNING if has_begun else PENDING


def _have_succeeded(regular: tuple[ContainerStatus, ...]) -> bool:
    ends = [each.state.terminated for each in regular]
    return bool(ends) and all(end is not None and end.exit_code == 0 for end in ends)


def _is_yet_to_start(status: ContainerStatus) -> bool:
    return status.state.waiting is not None and status.last_state.terminated is None
