"""What a node knows of a pod, besides what the cluster says of it.

# end: why a pod ends, and how its containers are stopped
# set up: its volumes are there and its devices prepared
# doing: steps that are under way, by their keys
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from msgspec import Struct, field

from mooring.api.core import Container, Pod
from mooring.api.timestamp import Timestamp
from mooring.client.objects import is_older
from mooring.node.pods.pod_sync import container_of
from mooring.node.pods.probes import READINESS, STARTUP, probe_of
from mooring.node.runtime.contract import ContainerId, ContainerState, Phase

CREATING = "ContainerCreating"
INITIALIZING = "PodInitializing"
CRASH_LOOP = "CrashLoopBackOff"
UNKNOWN_END = "ContainerStatusUnknown"
KILLED = 137


class FailedAttempt(Struct, frozen=True):
    """Why something did not work out, and when it is tried again."""

    reason: str
    message: str
    until: Timestamp
    failures: int = 1


class Termination(Struct, frozen=True):
    """Why a pod ends; its containers have so long, counted from `since`."""

    since: Timestamp
    grace_s: float
    phase: str = ""  # empty: as its containers ended
    reason: str = ""
    message: str = ""

    @property
    def deadline(self) -> Timestamp:
        """When the last container is killed."""
        return Timestamp(self.since.instant + timedelta(seconds=self.grace_s))


class PodSnapshot(Struct, frozen=True):
    """What a node knows of a pod."""

    states: Mapping[ContainerId, ContainerState] = field(default_factory=dict)
    started_at: Timestamp | None = None  # when the node took the pod
    is_refused: bool = False  # the node did not take it; then it ends, too
    is_set_up: bool = False
    is_cleared: bool = False  # what was set up is taken back
    trouble: FailedAttempt | None = None  # why it is not set up, or not cleared
    waits: Mapping[str, FailedAttempt] = field(
        default_factory=dict
    )  # containers that did not start
    crashes: Mapping[str, CrashBackoff] = field(default_factory=dict)
    up: frozenset[ContainerId] = frozenset()  # past their startup probe
    ready: frozenset[ContainerId] = frozenset()
    ailing: Mapping[ContainerId, str] = field(default_factory=dict)  # to be killed: why
    ending: Termination | None = None
    doing: frozenset[object] = frozenset()
    stops: Mapping[ContainerId, Timestamp] = field(default_factory=dict)  # by when they are killed
    is_gone: bool = False  # the cluster has the pod no more
    is_told: bool = False  # the cluster has its last status

    def latest(self, name: str) -> ContainerState | None:
        """Return the last attempt of a container."""
        return latest_of(self.states.values()).get(name)


def latest_of(states: Iterable[ContainerState]) -> dict[str, ContainerState]:
    """Return the last attempt of each container."""
    found: dict[str, ContainerState] = {}
    for state in states:
        other = found.get(state.id.name)
        if other is None or other.id.attempt < state.id.attempt:
            found[state.id.name] = state
    return found


def previous_of(states: Iterable[ContainerState]) -> dict[str, ContainerState]:
    """Return the attempt before the last of each container that has one."""
    states = tuple(states)
    last = latest_of(states)
    return latest_of(each for each in states if last[each.id.name].id != each.id)


def is_running(state: ContainerState | None) -> bool:
    """Tell whether a container runs."""
    return state is not None and state.phase is Phase.RUNNING


def has_run(pod: Pod, states: Iterable[ContainerState]) -> bool:
    """Tell whether a container other than those of the beginning was ever started."""
    names = {container.name for container in pod.spec.containers}
    return any(state.id.name in names for state in states)


def is_initialized(pod: Pod, known: PodSnapshot) -> bool:
    """Tell whether the containers of the beginning have done, or are at, their work."""
    latest = latest_of(known.states.values())
    if has_run(pod, latest.values()):
        return True
    return all(
        is_past(container, latest.get(container.name), known)
        for container in pod.spec.init_containers
    )


def is_past(container: Container, state: ContainerState | None, known: PodSnapshot) -> bool:
    """Tell whether the containers after an init container may start."""
    if state is None:
        return False
    if container.is_sidecar:
        return is_running(state) and state.id in known.up
    return state.phase is Phase.EXITED and state.exit_code == 0


# ---- from mooring.node.pods.record: What a node knows of one pod, as it changes.


class PodRecord:
    """Keeps what is known of a pod; `known` is what plans are made from."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.states: dict[ContainerId, ContainerState] = {}
        self.started_at: Timestamp | None = pod.status.start_time
        self.is_refused = False
        self.is_set_up = False
        self.is_cleared = False
        self.trouble: FailedAttempt | None = None
        self.waits: dict[str, FailedAttempt] = {}
        self.crashes: dict[str, CrashBackoff] = {}
        self.up: set[ContainerId] = set()
        self.ready: set[ContainerId] = set()
        self.ailing: dict[ContainerId, str] = {}
        self.ending: Termination | None = None
        self.doing: set[object] = set()
        self.stops: dict[ContainerId, Timestamp] = {}
        self.refresh_at: Timestamp | None = None  # when what is in volumes is written anew
        self.is_gone = False
        self.is_told = False

    def known(self) -> PodSnapshot:
        """Return all that is known now."""
        return PodSnapshot(
            states=self.states,
            started_at=self.started_at,
            is_refused=self.is_refused,
            is_set_up=self.is_set_up,
            is_cleared=self.is_cleared,
            trouble=self.trouble,
            waits=self.waits,
            crashes=self.crashes,
            up=frozenset(self.up),
            ready=frozenset(self.ready),
            ailing=self.ailing,
            ending=self.ending,
            doing=frozenset(self.doing),
            stops=self.stops,
            is_gone=self.is_gone,
            is_told=self.is_told,
        )

    def see(self, pod: Pod) -> bool:
        """Take in a version of the pod; return whether it is a newer one."""
        if is_older(pod, self.pod):
            return False
        self.pod = pod
        return True

    def recall(self, states: Iterable[ContainerState]) -> None:
        """Take in containers that were there before; they are as they were told of."""
        told = {
            each.name: each
            for each in (
                *self.pod.status.init_container_statuses,
                *self.pod.status.container_statuses,
            )
        }
        for state in states:
            self.note(state)
            status = told.get(state.id.name)
            if state.phase is not Phase.RUNNING or status is None:
                continue
            if status.started:
                self.up.add(state.id)
            if status.ready:
                self.ready.add(state.id)

    def note(self, state: ContainerState) -> bool:
        """Take in how a container is; return whether that is news. What has ended stays so."""
        before = self.states.get(state.id)
        if before == state or (before is not None and before.phase is Phase.EXITED):
            return False
        self.states[state.id] = state
        if state.phase is Phase.EXITED:
            self.up.discard(state.id)
            self.ready.discard(state.id)
            self.ailing.pop(state.id, None)
            self.stops.pop(state.id, None)
        else:
            self._begin(state.id)
        return True

    def _begin(self, id_: ContainerId) -> None:
        """Take a container that nobody asks how it is for well."""
        container = container_of(self.pod, id_.name)
        if probe_of(container, STARTUP) is None:
            self.up.add(id_)
            if probe_of(container, READINESS) is None:
                self.ready.add(id_)


# ---- from mooring.node.pods.restarting: Whether a container that ended runs again, and when (pure).

FIRST_CRASH_DELAY_S = 10.0
LONGEST_CRASH_DELAY_S = 300.0
CRASH_FORGOTTEN_S = 2 * LONGEST_CRASH_DELAY_S

ALWAYS, ON_FAILURE, NEVER = "Always", "OnFailure", "Never"
RESTART = "Restart"


class CrashBackoff(Struct, frozen=True):
    """How long a container waits when it ends the next time."""

    delay_s: float
    since: Timestamp  # the end that made it so


def runs_again(pod: Pod, container: Container, exit_code: int) -> bool:
    """Tell whether a container that ended is to be started again."""
    policy = container.restart_policy or pod.spec.restart_policy or ALWAYS
    if container.restart_policy and _has_rule(container, exit_code):
        return True
    return policy == ALWAYS or (policy == ON_FAILURE and exit_code != 0)


def _has_rule(container: Container, exit_code: int) -> bool:
    """Tell whether the first rule that is about this exit code says to start again."""
    for rule in container.restart_policy_rules:
        if isinstance(rule, dict) and _is_about(rule.get("exitCodes"), exit_code):
            return bool(rule.get("action") == RESTART)
    return False


def _is_about(wanted: Any, exit_code: int) -> bool:
    if not isinstance(wanted, dict):
        return False
    is_listed = exit_code in (wanted.get("values") or ())
    return is_listed == (wanted.get("operator") == "In")


def wait_until(crash: CrashBackoff | None, ended: ContainerState) -> Timestamp | None:
    """Return until when an ended container waits to run again; None: it does not wait."""
    finished = ended.finished_at or ended.started_at
    if crash is None or _is_forgotten(crash, finished):
        return None
    return Timestamp(finished.instant + timedelta(seconds=crash.delay_s))


def next_crash(crash: CrashBackoff | None, ended: ContainerState) -> CrashBackoff:
    """Return how long a container waits the next time, once it runs again after an end."""
    finished = ended.finished_at or ended.started_at
    if crash is None or _is_forgotten(crash, finished):
        return CrashBackoff(FIRST_CRASH_DELAY_S, finished)
    return CrashBackoff(min(2 * crash.delay_s, LONGEST_CRASH_DELAY_S), finished)


def _is_forgotten(crash: CrashBackoff, finished: Timestamp) -> bool:
    return (finished.instant - crash.since.instant).total_seconds() > CRASH_FORGOTTEN_S
