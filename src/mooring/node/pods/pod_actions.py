"""What is to be done next for a pod (pure).

1. A pod that ends: its containers are stopped, sidecars last and in reverse order. When none runs,
   what was set up is taken back; when that is told, a pod that is deleted goes.
2. Else its volumes and devices are set up, before the first container.
3. Then its init containers run one after the other; a sidecar stays while the next ones run.
4. Then its containers run, and run again as their policies have it.

A step that is under way is not planned again. Who carries steps out asks again after each.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from msgspec import Struct

from mooring.api.core import Container, Pod
from mooring.api.core.podstatus import FAILED, SUCCEEDED
from mooring.api.timestamp import Timestamp
from mooring.node.pods.pod_record import (
    CrashBackoff,
    PodSnapshot,
    Termination,
    has_run,
    is_past,
    is_running,
    latest_of,
    next_crash,
    runs_again,
    wait_until,
)
from mooring.node.runtime.contract import ContainerId, ContainerState, Phase

STARTING = "start"
KEPT_ATTEMPTS = 2  # the last one, and the one before for its log
SHORTEST_GRACE_S = 2.0  # of sidecars, when the others took all the time


class SetUp(Struct, frozen=True):
    """Have volumes and devices ready."""


class Start(Struct, frozen=True):
    """Start a container; `crash` is how long it waits when it ends."""

    name: str
    attempt: int
    crash: CrashBackoff | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What is under way: no two starts of one container are."""
        return STARTING, self.name


class Stop(Struct, frozen=True):
    """Stop a container."""

    id: ContainerId
    grace_s: float
    message: str


class Forget(Struct, frozen=True):
    """Forget an old attempt and its log."""

    id: ContainerId


class Clear(Struct, frozen=True):
    """Take back volumes and devices: no container runs any more."""


class DeletePod(Struct, frozen=True):
    """Take the pod from the cluster."""


class Discard(Struct, frozen=True):
    """Forget all that is left of a pod that the cluster has no more."""


class LookAgain(Struct, frozen=True):
    """Plan again after a while, if nothing happens before."""

    after_s: float


PodAction = SetUp | Start | Stop | Forget | Clear | DeletePod | Discard | LookAgain


def key_of(step: PodAction) -> object:
    """Return what stands for a step while it is under way."""
    match step:
        case Start():
            return step.key
        case Stop(id=id_):
            return ("stop", id_)
    return step


def plan(pod: Pod, known: PodSnapshot, now: Timestamp) -> tuple[PodAction, ...]:
    """Return what is to be done next for a pod that the node has taken."""
    if known.ending is not None:
        steps = _end(pod, known, known.ending, now)
    elif not known.is_set_up:
        steps = _set_up(pod, known, now)
    else:
        steps = _run(pod, known, now)
    return tuple(_sooner(steps))


def _sooner(steps: Iterator[PodAction]) -> Iterator[PodAction]:
    """Yield steps, with one time to look again: the soonest."""
    waits = []
    for step in steps:
        if isinstance(step, LookAgain):
            waits.append(step.after_s)
        else:
            yield step
    if waits:
        yield LookAgain(max(min(waits), 0.0))


# --- the beginning ------------------------------------------------------------------------------


def _set_up(pod: Pod, known: PodSnapshot, now: Timestamp) -> Iterator[PodAction]:
    yield from _deadline(pod, known, now)
    yield from _unless_waiting(SetUp(), known, now)


def _unless_waiting(step: SetUp | Clear, known: PodSnapshot, now: Timestamp) -> Iterator[PodAction]:
    """Yield a step that is not under way, and did not just fail."""
    if step in known.doing:
        return
    if known.trouble is not None and now < known.trouble.until:
        yield LookAgain(_until_s(known.trouble.until, now))
    else:
        yield step


def _deadline(pod: Pod, known: PodSnapshot, now: Timestamp) -> Iterator[PodAction]:
    left_s = deadline_in_s(pod, known, now)
    if left_s is not None:
        yield LookAgain(left_s)


# --- running ------------------------------------------------------------------------------------


def _run(pod: Pod, known: PodSnapshot, now: Timestamp) -> Iterator[PodAction]:
    yield from _deadline(pod, known, now)
    yield from _forget_old(known)
    yield from _stop_ailing(pod, known, now)
    latest = latest_of(known.states.values())
    has_begun = has_run(pod, latest.values())
    for container in pod.spec.init_containers:
        state = latest.get(container.name)
        if container.is_sidecar or not has_begun:
            yield from _keep(pod, container, state, known, now)
        if not has_begun and not is_past(container, state, known):
            return
    for container in pod.spec.containers:
        yield from _keep(pod, container, latest.get(container.name), known, now)


def _keep(
    pod: Pod, container: Container, state: ContainerState | None, known: PodSnapshot, now: Timestamp
) -> Iterator[PodAction]:
    """Start a container that does not run and should."""
    first = Start(container.name, 0)
    if is_running(state) or first.key in known.doing:
        return
    wait = known.waits.get(container.name)
    if wait is not None and now < wait.until:
        yield LookAgain(_until_s(wait.until, now))
    elif state is None:
        yield first
    elif _is_wanted(pod, container, state):
        until = wait_until(known.crashes.get(container.name), state)
        if until is not None and now < until:
            yield LookAgain(_until_s(until, now))
        else:
            crash = next_crash(known.crashes.get(container.name), state)
            yield Start(container.name, state.id.attempt + 1, crash)


def _is_wanted(pod: Pod, container: Container, state: ContainerState) -> bool:
    """Tell whether an ended container is to run again; one of the beginning, until it did well."""
    is_initial = any(each is container for each in pod.spec.init_containers)
    if is_initial and not container.is_sidecar and state.exit_code == 0:
        return False
    return runs_again(pod, container, state.exit_code)


def _stop_ailing(pod: Pod, known: PodSnapshot, now: Timestamp) -> Iterator[PodAction]:
    """Stop containers that their probes gave up."""
    for id_, message in known.ailing.items():
        if is_running(known.states.get(id_)):
            yield from _stop(known, id_, ailing_grace_s(pod, id_.name), now, message)


def ailing_grace_s(pod: Pod, name: str) -> float:
    """Return how long a container has that its probes gave up."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if container.name == name:
            for probe in (container.liveness_probe, container.startup_probe):
                own = probe.get("terminationGracePeriodSeconds") if probe else None
                if own is not None:
                    return float(own)
    given = pod.spec.termination_grace_period_seconds
    return 30.0 if given is None else float(given)


def _forget_old(known: PodSnapshot) -> Iterator[PodAction]:
    latest = latest_of(known.states.values())
    for id_, state in known.states.items():
        is_old = id_.attempt <= latest[id_.name].id.attempt - KEPT_ATTEMPTS
        step = Forget(id_)
        if is_old and state.phase is Phase.EXITED and step not in known.doing:
            yield step


# --- the end ------------------------------------------------------------------------------------


def _end(pod: Pod, known: PodSnapshot, ending: Termination, now: Timestamp) -> Iterator[PodAction]:
    running = [id_ for id_, state in known.states.items() if is_running(state)]
    starting = any(isinstance(each, tuple) and each[0] == STARTING for each in known.doing)
    for id_, grace_s in _next_to_stop(pod, running, ending, now):
        yield from _stop(known, id_, grace_s, now, f"Stopping container {id_.name}")
    if running or starting or SetUp() in known.doing:
        return
    if not known.is_cleared:
        yield from _unless_waiting(Clear(), known, now)
    elif known.is_gone:
        yield from _once(Discard(), known)
    elif known.is_told and pod.metadata.deletion_timestamp is not None:
        if known.trouble is None or not now < known.trouble.until:
            yield from _once(DeletePod(), known)
        else:
            yield LookAgain(_until_s(known.trouble.until, now))


def _next_to_stop(
    pod: Pod, running: list[ContainerId], ending: Termination, now: Timestamp
) -> Iterator[tuple[ContainerId, float]]:
    """Yield the containers that are to end now: all others before sidecars, the last one first."""
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
    known: PodSnapshot, id_: ContainerId, grace_s: float, now: Timestamp, message: str
) -> Iterator[PodAction]:
    """Stop a container; one that is being stopped, only if it is to end sooner now."""
    by = known.stops.get(id_)
    if by is None or _until_s(by, now) - grace_s > 0.5:
        yield Stop(id_, grace_s, message)


def _once(step: DeletePod | Discard, known: PodSnapshot) -> Iterator[PodAction]:
    if step not in known.doing:
        yield step


def _until_s(when: Timestamp, now: Timestamp) -> float:
    return (when.instant - now.instant).total_seconds()


# ---- from mooring.node.pods.endings: Why a pod ends, if it does (pure).

DEADLINE = "DeadlineExceeded"
DEADLINE_TEXT = "Pod was active on the node longer than the specified deadline"
GRACE_S = 30
GONE_GRACE_S = 1.0  # of pods that nobody waits for any more


def termination_of(pod: Pod, known: PodSnapshot, now: Timestamp) -> Termination | None:
    """Return why a pod is to end, or None; a grace that becomes shorter holds at once."""
    ending = known.ending or _termination_reason(pod, known, now)
    grace_s = _wanted_grace_s(pod, known)
    if grace_s is None:
        return ending
    if ending is None:
        return Termination(now, grace_s)
    sooner = Timestamp(now.instant + timedelta(seconds=grace_s))
    if not sooner < ending.deadline:
        return ending
    left_s = (sooner.instant - ending.since.instant).total_seconds()
    return Termination(ending.since, left_s, ending.phase, ending.reason, ending.message)


def _wanted_grace_s(pod: Pod, known: PodSnapshot) -> float | None:
    """Return how long the containers of a pod have that is deleted; None if it is not."""
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        given = metadata.deletion_grace_period_seconds
        grace_s = float(_own_grace_s(pod) if given is None else given)
        return min(grace_s, GONE_GRACE_S) if known.is_gone else grace_s
    return GONE_GRACE_S if known.is_gone else None


def _termination_reason(pod: Pod, known: PodSnapshot, now: Timestamp) -> Termination | None:
    status = pod.status
    if status.phase in (SUCCEEDED, FAILED):  # also when others say so
        return Termination(now, _own_grace_s(pod), status.phase, status.reason, status.message)
    if (left_s := deadline_in_s(pod, known, now)) is not None and left_s <= 0:
        return Termination(now, _own_grace_s(pod), FAILED, DEADLINE, DEADLINE_TEXT)
    if _has_failed_to_begin(pod, known):
        return Termination(now, _own_grace_s(pod), FAILED)
    if _is_done(pod, known):
        return Termination(now, _own_grace_s(pod))
    return None


def deadline_in_s(pod: Pod, known: PodSnapshot, now: Timestamp) -> float | None:
    """Return how long a pod may still be active; None: as long as it likes."""
    limit_s = pod.spec.active_deadline_seconds
    if limit_s is None or known.started_at is None:
        return None
    return limit_s - (now.instant - known.started_at.instant).total_seconds()


def _has_failed_to_begin(pod: Pod, known: PodSnapshot) -> bool:
    latest = latest_of(known.states.values())
    for container in pod.spec.init_containers:
        state = latest.get(container.name)
        if container.is_sidecar or state is None or state.phase is not Phase.EXITED:
            continue
        if state.exit_code and not runs_again(pod, container, state.exit_code):
            return True
    return False


def _is_done(pod: Pod, known: PodSnapshot) -> bool:
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
