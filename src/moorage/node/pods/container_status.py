"""The statuses of a pod's containers, as a kubelet reports them (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from moorage.api.core import Container, Pod
from moorage.api.core.pod import ContainerState as ApiContainerState
from moorage.api.core.pod import (
    ContainerStateTerminated,
    ContainerStatus,
    EphemeralContainer,
    ResourceStatus,
)
from moorage.api.timestamp import Timestamp
from moorage.node.pods.pod_record import (
    CRASH_LOOP,
    CREATING,
    INITIALIZING,
    KILLED,
    UNKNOWN_END,
    PodRecord,
    is_running,
    should_restart,
    wait_until,
)
from moorage.node.runtime.contract import ContainerState, Phase
from moorage.node.runtime.security_context import pod_text

LOST = "The container could not be located when the pod was terminated"

# Returns the health of a container's devices.
HealthOf = Callable[[Pod, str], tuple[ResourceStatus, ...]]


def no_health(pod: Pod, container: str) -> tuple[ResourceStatus, ...]:  # noqa: ARG001
    """Return nothing: the health of devices is unknown."""
    return ()


def initial_statuses(record: PodRecord, now: Timestamp) -> tuple[ContainerStatus, ...]:
    """Return the statuses of init containers, in their order."""
    builder = _StatusBuilder(record, now)
    found = tuple(builder.status(each, is_initial=True) for each in record.pod.spec.init_containers)
    return tuple(_ended(record, found)) if record.is_cleaned_up else found


def container_statuses(
    record: PodRecord, now: Timestamp, health_of: HealthOf = no_health
) -> tuple[ContainerStatus, ...]:
    """Return the statuses of regular containers, by name."""
    builder = _StatusBuilder(record, now)
    found = []
    for each in sorted(record.pod.spec.containers, key=lambda each: each.name):
        status = builder.status(each, is_initial=False)
        if health := health_of(record.pod, each.name):
            status = replace(status, allocated_resources_status=health)
        found.append(status)
    return tuple(found)


def ephemeral_statuses(record: PodRecord, now: Timestamp) -> tuple[ContainerStatus, ...]:
    """Return the statuses of ephemeral containers; they have no resources and are never ready."""
    builder = _StatusBuilder(record, now)
    return tuple(
        replace(
            builder.status(each, is_initial=False),
            ready=False,
            resources=None,
            allocated_resources={},
        )
        for each in record.pod.spec.ephemeral_containers
    )


def _ended(record: PodRecord, found: tuple[ContainerStatus, ...]) -> Iterator[ContainerStatus]:
    """Yield statuses of init containers of a pod that is over: skipped ones did end somehow."""
    ran = [n for n, each in enumerate(found) if each.state.waiting is None]
    last = len(found) if record.has_started_regular else max(ran, default=-1) + 1
    for number, each in enumerate(found):
        yield each if number >= last or each.state.terminated else replace(each, state=_lost())


def _lost() -> ApiContainerState:
    ended = ContainerStateTerminated(exit_code=KILLED, reason=UNKNOWN_END, message=LOST)
    return ApiContainerState(terminated=ended)


class _StatusBuilder:
    def __init__(self, record: PodRecord, now: Timestamp) -> None:
        self._pod = record.pod
        self._record = record
        self._now = now
        self._latest = record.latest
        self._previous = record.previous
        self._is_initialized = record.is_initialized

    def status(self, container: Container, *, is_initial: bool) -> ContainerStatus:
        last = self._latest.get(container.name)
        state, before = self._state(container, last, is_initial)
        is_up = last is not None and is_running(last) and last.id in self._record.started
        is_ready = is_up and last is not None and last.id in self._record.ready
        if is_initial and not container.is_sidecar:
            is_ready = last is not None and last.phase is Phase.EXITED and last.exit_code == 0
        has_started = last is not None
        resources = granted = self._record.allocated.get(container.name, container.resources)
        if last is not None:
            resources = self._record.resources.get(last.id, resources)
        return ContainerStatus(
            name=container.name,
            state=state,
            last_state=before,
            ready=is_ready,
            started=is_up,
            restart_count=0 if last is None else last.id.attempt,
            image=container.image,
            image_id="" if last is None else last.image_id,
            container_id="" if last is None else last.handle,
            resources=resources if has_started else None,
            allocated_resources=granted.requests if has_started else {},
            volume_mounts=tuple(map(_mount, container.volume_mounts)),
        )

    def _state(
        self, container: Container, last: ContainerState | None, is_initial: bool
    ) -> tuple[ApiContainerState, ApiContainerState]:
        """Return the state of a container, and how its previous attempt ended."""
        previous = self._previous.get(container.name)
        before = ApiContainerState() if previous is None else terminated(previous)
        wait = self._waiting(container, last, is_initial)
        if wait is None:
            assert last is not None
            return (running(last) if is_running(last) else terminated(last)), before
        if last is not None:
            before = terminated(last)
        elif self._record.is_cleaned_up and not is_initial and self._is_initialized:
            return _lost(), before  # nothing waits in a pod that is over
        return ApiContainerState(waiting=wait), before

    def _waiting(
        self, container: Container, last: ContainerState | None, is_initial: bool
    ) -> dict[str, Any] | None:
        """Return the waiting state of a container; None if it runs or has ended."""
        if last is not None and is_running(last):
            return None
        record = self._record
        wait = record.start_failures.get(container.name)
        if wait is not None and record.termination is None:
            return {"reason": wait.reason, "message": wait.message}
        if last is None:
            begins = bool(self._pod.spec.init_containers)
            return {"reason": INITIALIZING if begins else CREATING}
        return self._crash_loop(container, last, is_initial)

    def _crash_loop(
        self, container: Container, last: ContainerState, is_initial: bool
    ) -> dict[str, Any] | None:
        record, pod = self._record, self._pod
        if isinstance(container, EphemeralContainer):
            return None
        if record.termination is not None or not should_restart(pod, container, last.exit_code):
            return None
        if is_initial and not container.is_sidecar and last.exit_code == 0:
            return None
        crash = record.crash_backoffs.get(container.name)
        until = wait_until(crash, last)
        if crash is None or until is None or not self._now < until:
            return None
        message = (
            f"back-off {_duration(crash.delay_s)} restarting failed container={container.name} "
            f"pod={pod_text(pod)}"
        )
        return {"reason": CRASH_LOOP, "message": message}


def running(state: ContainerState) -> ApiContainerState:
    """Return the status of a running container."""
    return ApiContainerState(running={"startedAt": str(state.started_at)})


def terminated(state: ContainerState) -> ApiContainerState:
    """Return the status of an ended container."""
    reason = state.reason or ("Error" if state.exit_code else "Completed")
    ended = ContainerStateTerminated(
        exit_code=state.exit_code,
        signal=state.signal,
        reason=reason,
        message=state.message,
        started_at=state.started_at.truncated(),
        finished_at=None if state.finished_at is None else state.finished_at.truncated(),
        container_id=state.handle,
    )
    return ApiContainerState(terminated=ended)


def _mount(mount: Any) -> dict[str, Any]:
    if not isinstance(mount, dict):  # no server accepts it now
        mount = {}
    status = {"name": mount.get("name", ""), "mountPath": mount.get("mountPath", "")}
    if mount.get("readOnly"):
        status |= {"readOnly": True, "recursiveReadOnly": "Disabled"}
    return status


def _duration(seconds: float) -> str:
    """Return a duration as Go writes it: 10s, 2m40s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
