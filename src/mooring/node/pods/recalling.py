"""What containers were like that the runtime has no more, as the status of their pod has it (pure).

A machine that starts again has none of its containers. One that ran then has ended, nobody knows
how; one that had ended has ended as it was told.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from mooring.api.core import Pod
from mooring.api.core.podstatus import ContainerStateTerminated, ContainerStatus
from mooring.api.timestamp import Timestamp
from mooring.node.pods.known import KILLED, UNKNOWN_END
from mooring.node.runtime.contract import ContainerId, ContainerState, Phase

LOST = (
    "The container could not be located when the pod was deleted.  The container used to be Running"
)


def recalled(pod: Pod, names: Iterable[str], now: Timestamp) -> list[ContainerState]:
    """Return the ends of containers that a pod tells of, but for those of these names."""
    there = frozenset(names)
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    found = (_recalled(pod, status, now) for status in statuses if status.name not in there)
    return [state for state in found if state is not None]


def lost(state: ContainerState, now: Timestamp) -> ContainerState:
    """Return the end of a container that ran and is not there any more."""
    return replace(
        state,
        phase=Phase.EXITED,
        finished_at=now,
        exit_code=KILLED,
        reason=UNKNOWN_END,
        message=LOST,
    )


def _recalled(pod: Pod, status: ContainerStatus, now: Timestamp) -> ContainerState | None:
    id_ = ContainerId(pod.metadata.uid, status.name, int(status.restart_count))
    end = status.state.terminated or status.last_state.terminated
    if status.state.running:
        started_at = Timestamp.parse(str(status.state.running.get("startedAt") or now))
        state = ContainerState(id=id_, phase=Phase.RUNNING, started_at=started_at)
        return lost(replace(state, handle=status.container_id, image_id=status.image_id), now)
    return None if end is None else _ended(id_, status, end, now)


def _ended(
    id_: ContainerId, status: ContainerStatus, end: ContainerStateTerminated, now: Timestamp
) -> ContainerState:
    return ContainerState(
        id=id_,
        phase=Phase.EXITED,
        started_at=end.started_at or now,
        finished_at=end.finished_at or now,
        exit_code=int(end.exit_code),
        signal=int(end.signal),
        reason=end.reason,
        message=end.message,
        handle=end.container_id or status.container_id,
        image_id=status.image_id,
    )
