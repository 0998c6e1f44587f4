"""Which actions a pod needs next, and why it terminates (pure), as the kubelet's computePodActions.

1. A terminating pod: its containers are stopped, sidecars last and in reverse order. When none
   runs, volumes and devices are cleaned up; once the status reports that, a deleted pod is removed.
2. Otherwise its volumes and devices are set up, before the first container.
3. Then its init containers run one after the other; a sidecar stays while the next ones run.
4. Then its containers run, and are restarted by their policies.

An action in progress is not planned again. The worker plans again after each action.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.core import Container, Pod
from moorage.api.core.pod import FAILED, SUCCEEDED
from moorage.api.timestamp import Timestamp
from moorage.node.pods.pod_record import (
    CrashBackoff,
    PodRecord,
    Termination,
    container_of,
    is_running,
    later,
    next_crash_backoff,
    should_restart,
    wait_until,
)
from moorage.node.pods.resizing import needs_restart, unresized
from moorage.node.runtime.contract import ContainerId, ContainerState, Phase

STARTING = "start"
KEPT_ATTEMPTS = 2  # the last one, and the one before it for its log
SHORTEST_GRACE_S = 2.0  # of sidecars, if the others used up the grace period
DEADLINE = "DeadlineExceeded"
DEADLINE_TEXT = "Pod was active on the node longer than the specified deadline"
GRACE_S = 30
GONE_GRACE_S = 1.0  # of pods whose API object is gone


class SetUp(Struct, frozen=True):
    """Set up volumes and devices."""


class Start(Struct, frozen=True):
    """Start a container; `crash` is the backoff when it ends."""

    name: str
    attempt: int
    crash: CrashBackoff | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Identifies the action: no two starts of one container run at once."""
        return STARTING, self.name


class Stop(Struct, frozen=True):
    """Stop a container."""

    id: ContainerId
    grace_s: float
    message: str
    is_resize: bool = False  # it starts again with other resources, whatever its policy says


class Resize(Struct, frozen=True):
    """Give a running container the resources that the node has granted."""

    id: ContainerId


class Forget(Struct, frozen=True):
    """Remove an old attempt and its log."""

    id: ContainerId


class CleanUp(Struct, frozen=True):
    """Clean up volumes and devices: no container runs any more."""


class DeletePod(Struct, frozen=True):
    """Delete the API object."""


class Discard(Struct, frozen=True):
    """Remove all that is left of a pod whose API object is gone."""


class Requeue(Struct, frozen=True):
    """Plan again after a while, if nothing happens before."""

    after_s: float


PodAction = SetUp | Start | Stop | Resize | Forget | CleanUp | DeletePod | Discard | Requeue


def key_of(action: PodAction) -> object:
    """Return what identifies an action in progress."""
    match action:
        case Start():
            return action.key
        case Stop(id=id_):
            return ("stop", id_)
    return action


def plan(record: PodRecord, now: Timestamp) -> tuple[PodAction, ...]:
    """Return the next actions for an admitted pod."""
    if record.termination is not None:
        actions = _end(record, record.termination, now)
    elif not record.is_set_up:
        actions = _set_up(record, now)
    else:
        actions = _run(record, now)
    return tuple(_sooner(actions))


def _sooner(actions: Iterator[PodAction]) -> Iterator[PodAction]:
    """Yield actions, with one requeue: the soonest."""
    waits = []
    for action in actions:
        if isinstance(action, Requeue):
            waits.append(action.after_s)
        else:
            yield action
    if waits:
        yield Requeue(max(min(waits), 0.0))


# --- setting up -----------------------------------------------------------------------------------


def _set_up(record: PodRecord, now: Timestamp) -> Iterator[PodAction]:
    yield from _deadline(record, now)
    yield from _unless_waiting(SetUp(), record, now)


def _unless_waiting(
    action: SetUp | CleanUp, record: PodRecord, now: Timestamp
) -> Iterator[PodAction]:
    """Yield an action that is not in progress, and did not just fail."""
    if action in record.in_progress:
        return
    if record.sync_failure is not None and now < record.sync_failure.until:
        yield Requeue(_until_s(record.sync_failure.until, now))
    else:
        yield action


def _deadline(record: PodRecord, now: Timestamp) -> Iterator[PodAction]:
    left_s = _deadline_in_s(record, now)
    if left_s is not None:
        yield Requeue(left_s)


# --- running --------------------------------------------------------------------------------------


def _run(record: PodRecord, now: Timestamp) -> Iterator[PodAction]:
    yield from _deadline(record, now)
    yield from _forget_old(record)
    yield from _stop_unhealthy(record, now)
    yield from _resize(record, now)
    latest, has_begun, pod = record.latest, record.has_started_regular, record.pod
    for added in pod.spec.ephemeral_containers:  # first: they may help where nothing else starts
        if added.name not in latest:  # They are not restarted.
            yield from _keep(record, added, None, now)
    for container in pod.spec.init_containers:
        state = latest.get(container.name)
        if container.is_sidecar or not has_begun:
            yield from _keep(record, container, state, now)
        if not has_begun and not record.lets_next_start(container, state):
            return
    for container in pod.spec.containers:
        yield from _keep(record, container, latest.get(container.name), now)


def _keep(
    record: PodRecord, container: Container, state: ContainerState | None, now: Timestamp
) -> Iterator[PodAction]:
    first = Start(container.name, 0)
    if is_running(state) or first.key in record.in_progress:
        return
    wait = record.start_failures.get(container.name)
    if wait is not None and now < wait.until:
        yield Requeue(_until_s(wait.until, now))
    elif state is None:
        yield first
    elif state.id in record.resize_restarts:
        yield Start(container.name, state.id.attempt + 1)
    elif _is_wanted(record.pod, container, state):
        until = wait_until(record.crash_backoffs.get(container.name), state)
        if until is not None and now < until:
            yield Requeue(_until_s(until, now))
        else:
            crash = next_crash_backoff(record.crash_backoffs.get(container.name), state)
            yield Start(container.name, state.id.attempt + 1, crash)


def _is_wanted(pod: Pod, container: Container, state: ContainerState) -> bool:
    """Return whether to restart an ended container; an init container, until it succeeds."""
    is_initial = any(each is container for each in pod.spec.init_containers)
    if is_initial and not container.is_sidecar and state.exit_code == 0:
        return False
    return should_restart(pod, container, state.exit_code)


def _stop_unhealthy(record: PodRecord, now: Timestamp) -> Iterator[PodAction]:
    for id_, message in record.unhealthy.items():
        if is_running(record.states.get(id_)):
            yield from _stop(record, id_, _unhealthy_grace_s(record.pod, id_.name), now, message)


def _resize(record: PodRecord, now: Timestamp) -> Iterator[PodAction]:
    """Change the resources of running containers, or stop those that need a restart for it."""
    for id_, _ in unresized(record):
        if needs_restart(record, id_):
            text = f"Container {id_.name} resize requires restart"
            for stop in _stop(record, id_, _own_grace_s(record.pod), now, text):
                yield replace(stop, is_resize=True)
            continue
        failure, action = record.resize_failures.get(id_), Resize(id_)
        if failure is not None and now < failure.until:
            yield Requeue(_until_s(failure.until, now))
        elif action not in record.in_progress:
            yield action


def _unhealthy_grace_s(pod: Pod, name: str) -> float:
    """Return the grace period of a container that failed its probes."""
    container = container_of(pod, name)
    for probe in (container.liveness_probe, container.startup_probe):
        own = probe.get("terminationGracePeriodSeconds") if probe else None
        if own is not None:
            return float(own)
    return _own_grace_s(pod)


def _forget_old(record: PodRecord) -> Iterator[PodAction]:
    latest = record.latest
    for id_, state in record.states.items():
        is_old = id_.attempt <= latest[id_.name].id.attempt - KEPT_ATTEMPTS
        action = Forget(id_)
        if is_old and state.phase is Phase.EXITED and action not in record.in_progress:
            yield action


# --- terminating ----------------------------------------------------------------------------------


def _end(record: PodRecord, ending: Termination, now: Timestamp) -> Iterator[PodAction]:
    running = [id_ for id_, state in record.states.items() if is_running(state)]
    starting = any(isinstance(each, tuple) and each[0] == STARTING for each in record.in_progress)
    for id_, grace_s in _next_to_stop(record.pod, running, ending, now):
        yield from _stop(record, id_, grace_s, now, f"Stopping container {id_.name}")
    if running or starting or SetUp() in record.in_progress:
        return
    if not record.is_cleaned_up:
        yield from _unless_waiting(CleanUp(), record, now)
    elif record.is_gone:
        yield from _once(Discard(), record)
    elif record.is_status_written and record.pod.metadata.deletion_timestamp is not None:
        if record.sync_failure is None or not now < record.sync_failure.until:
            yield from _once(DeletePod(), record)
        else:
            yield Requeue(_until_s(record.sync_failure.until, now))


def _next_to_stop(
    pod: Pod, running: list[ContainerId], ending: Termination, now: Timestamp
) -> Iterator[tuple[ContainerId, float]]:
    """Yield the containers to stop now: sidecars after all others, the last one first."""
    left_s = max(_until_s(ending.deadline, now), 0.0)
    sidecars = [each.name for each in pod.spec.init_containers if each.is_sidecar]
    others = [id_ for id_ in running if id_.name not in sidecars]
    for id_ in others:
        yield id_, left_s
    if others or not running:
        return
    least_s = min(SHORTEST_GRACE_S, ending.grace_s)
    last = max(running, key=lambda id_: sidecars.index(id_.name))
    yield last, max(left_s, least_s)


def _stop(
    record: PodRecord, id_: ContainerId, grace_s: float, now: Timestamp, message: str
) -> Iterator[Stop]:
    """Stop a container; one that is being stopped, only if the deadline is sooner now."""
    by = record.stop_deadlines.get(id_)
    if by is None or _until_s(by, now) - grace_s > 0.5:
        yield Stop(id_, grace_s, message)


def _once(action: DeletePod | Discard, record: PodRecord) -> Iterator[PodAction]:
    if action not in record.in_progress:
        yield action


def _until_s(when: Timestamp, now: Timestamp) -> float:
    return (when.instant - now.instant).total_seconds()


# --- termination ----------------------------------------------------------------------------------


def termination_of(record: PodRecord, now: Timestamp) -> Termination | None:
    """Return why a pod terminates, or None; a shorter grace period applies at once."""
    ending = record.termination or _termination_reason(record, now)
    grace_s = _deletion_grace_s(record)
    if grace_s is None:
        return ending
    if ending is None:
        return Termination(now, grace_s)
    sooner = later(now, grace_s)
    if not sooner < ending.deadline:
        return ending
    left_s = (sooner.instant - ending.since.instant).total_seconds()
    return Termination(ending.since, left_s, ending.phase, ending.reason, ending.message)


def _deletion_grace_s(record: PodRecord) -> float | None:
    """Return the grace period of a deleted pod; None if it is not deleted."""
    metadata = record.pod.metadata
    if metadata.deletion_timestamp is not None:
        seconds = metadata.deletion_grace_period_seconds
        grace_s = float(_own_grace_s(record.pod) if seconds is None else seconds)
        return min(grace_s, GONE_GRACE_S) if record.is_gone else grace_s
    return GONE_GRACE_S if record.is_gone else None


def _termination_reason(record: PodRecord, now: Timestamp) -> Termination | None:
    pod, status = record.pod, record.pod.status
    if status.phase in (SUCCEEDED, FAILED):  # whoever set it
        return Termination(now, _own_grace_s(pod), status.phase, status.reason, status.message)
    if (left_s := _deadline_in_s(record, now)) is not None and left_s <= 0:
        return Termination(now, _own_grace_s(pod), FAILED, DEADLINE, DEADLINE_TEXT)
    if _has_failed_to_begin(record):
        return Termination(now, _own_grace_s(pod), FAILED)
    if _is_done(record):
        return Termination(now, _own_grace_s(pod))
    return None


def _deadline_in_s(record: PodRecord, now: Timestamp) -> float | None:
    """Return how long a pod may still be active; None: for as long as it runs."""
    limit_s = record.pod.spec.active_deadline_seconds
    if limit_s is None or record.started_at is None:
        return None
    return limit_s - (now.instant - record.started_at.instant).total_seconds()


def _has_failed_to_begin(record: PodRecord) -> bool:
    pod, latest = record.pod, record.latest
    for container in pod.spec.init_containers:
        state = latest.get(container.name)
        if container.is_sidecar or state is None or state.phase is not Phase.EXITED:
            continue
        if state.exit_code and not should_restart(pod, container, state.exit_code):
            return True
    return False


def _is_done(record: PodRecord) -> bool:
    pod, latest = record.pod, record.latest
    for container in pod.spec.containers:
        state = latest.get(container.name)
        if state is None or state.phase is not Phase.EXITED or state.id in record.resize_restarts:
            return False
        if should_restart(pod, container, state.exit_code):
            return False
    return bool(pod.spec.containers)


def _own_grace_s(pod: Pod) -> float:
    grace_s = pod.spec.termination_grace_period_seconds
    return float(GRACE_S if grace_s is None else grace_s)
