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

from msgspec import Struct

from mooring.api.core import Container, Pod
from mooring.api.timestamp import Timestamp
from mooring.node.pods.endings import deadline_in_s
from mooring.node.pods.known import (
    Ending,
    Known,
    has_run,
    is_past,
    is_running,
    latest_of,
)
from mooring.node.pods.restarting import Crash, next_crash, runs_again, wait_until
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
    crash: Crash | None = None

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


class Delete(Struct, frozen=True):
    """Take the pod from the cluster."""


class Discard(Struct, frozen=True):
    """Forget all that is left of a pod that the cluster has no more."""


class LookAgain(Struct, frozen=True):
    """Plan again after a while, if nothing happens before."""

    after_s: float


Step = SetUp | Start | Stop | Forget | Clear | Delete | Discard | LookAgain


def key_of(step: Step) -> object:
    """Return what stands for a step while it is under way."""
    match step:
        case Start():
            return step.key
        case Stop(id=id_):
            return ("stop", id_)
    return step


def plan(pod: Pod, known: Known, now: Timestamp) -> tuple[Step, ...]:
    """Return what is to be done next for a pod that the node has taken."""
    if known.ending is not None:
        steps = _end(pod, known, known.ending, now)
    elif not known.is_set_up:
        steps = _set_up(pod, known, now)
    else:
        steps = _run(pod, known, now)
    return tuple(_sooner(steps))


def _sooner(steps: Iterator[Step]) -> Iterator[Step]:
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


def _set_up(pod: Pod, known: Known, now: Timestamp) -> Iterator[Step]:
    yield from _deadline(pod, known, now)
    yield from _unless_waiting(SetUp(), known, now)


def _unless_waiting(step: SetUp | Clear, known: Known, now: Timestamp) -> Iterator[Step]:
    """Yield a step that is not under way, and did not just fail."""
    if step in known.doing:
        return
    if known.trouble is not None and now < known.trouble.until:
        yield LookAgain(_until_s(known.trouble.until, now))
    else:
        yield step


def _deadline(pod: Pod, known: Known, now: Timestamp) -> Iterator[Step]:
    left_s = deadline_in_s(pod, known, now)
    if left_s is not None:
        yield LookAgain(left_s)


# --- running ------------------------------------------------------------------------------------


def _run(pod: Pod, known: Known, now: Timestamp) -> Iterator[Step]:
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
    pod: Pod, container: Container, state: ContainerState | None, known: Known, now: Timestamp
) -> Iterator[Step]:
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


def _stop_ailing(pod: Pod, known: Known, now: Timestamp) -> Iterator[Step]:
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


def _forget_old(known: Known) -> Iterator[Step]:
    latest = latest_of(known.states.values())
    for id_, state in known.states.items():
        is_old = id_.attempt <= latest[id_.name].id.attempt - KEPT_ATTEMPTS
        step = Forget(id_)
        if is_old and state.phase is Phase.EXITED and step not in known.doing:
            yield step


# --- the end ------------------------------------------------------------------------------------


def _end(pod: Pod, known: Known, ending: Ending, now: Timestamp) -> Iterator[Step]:
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
            yield from _once(Delete(), known)
        else:
            yield LookAgain(_until_s(known.trouble.until, now))


def _next_to_stop(
    pod: Pod, running: list[ContainerId], ending: Ending, now: Timestamp
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
    known: Known, id_: ContainerId, grace_s: float, now: Timestamp, message: str
) -> Iterator[Step]:
    """Stop a container; one that is being stopped, only if it is to end sooner now."""
    by = known.stops.get(id_)
    if by is None or _until_s(by, now) - grace_s > 0.5:
        yield Stop(id_, grace_s, message)


def _once(step: Delete | Discard, known: Known) -> Iterator[Step]:
    if step not in known.doing:
        yield step


def _until_s(when: Timestamp, now: Timestamp) -> float:
    return (when.instant - now.instant).total_seconds()
