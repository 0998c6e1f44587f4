"""The node's record of a pod: its API object, and the state behind plans and statuses.

A container that ends is restarted at once the first
time, then after 10 s, 20 s, … up to five minutes, counted from its end. After a run of ten minutes
this starts over.

# set up: the pod's volumes exist and its devices are prepared
# cleaned up: volumes and devices are gone again
# in progress: actions that are being carried out, by their keys
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

from moorage.api.core import Container, Pod
from moorage.api.core.pod import ContainerStatus
from moorage.api.core.resources import ResourceRequirements
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import is_older
from moorage.node.pods.probes import READINESS, STARTUP, probe_of
from moorage.node.runtime.contract import ContainerId, ContainerState, Phase

CREATING = "ContainerCreating"
INITIALIZING = "PodInitializing"
CRASH_LOOP = "CrashLoopBackOff"
UNKNOWN_END = "ContainerStatusUnknown"
KILLED = 137
FIRST_CRASH_DELAY_S = 10.0
LONGEST_CRASH_DELAY_S = 300.0
CRASH_FORGOTTEN_S = 2 * LONGEST_CRASH_DELAY_S
ALWAYS, ON_FAILURE, NEVER = "Always", "OnFailure", "Never"
RESTART = "Restart"


def later(moment: Timestamp, seconds: float) -> Timestamp:
    """Return the time some seconds after another."""
    return moment.after(seconds)


class FailedAttempt(Struct, frozen=True):
    """Why something failed, and when it is tried again."""

    reason: str
    message: str
    until: Timestamp
    failures: int = 1


class Termination(Struct, frozen=True):
    """Why a pod terminates; its containers have `grace_s` from `since`."""

    since: Timestamp
    grace_s: float
    phase: str = ""  # empty: decided by how its containers ended
    reason: str = ""
    message: str = ""

    @property
    def deadline(self) -> Timestamp:
        """When the last container is killed."""
        return later(self.since, self.grace_s)


class PodRecord(Struct):
    """A pod, and everything the node knows of it, as it changes."""

    pod: Pod
    states: dict[ContainerId, ContainerState] = field(default_factory=dict)
    started_at: Timestamp | None = None  # when the node admitted the pod
    is_rejected: bool = False  # by admission, or for its devices; it terminates then
    is_set_up: bool = False
    is_cleaned_up: bool = False
    sync_failure: FailedAttempt | None = None  # why it is not set up, or not cleaned up
    start_failures: dict[str, FailedAttempt] = field(default_factory=dict)  # by container
    crash_backoffs: dict[str, CrashBackoff] = field(default_factory=dict)
    # What containers were started with; a pod may be resized meanwhile.
    resources: dict[ContainerId, ResourceRequirements] = field(default_factory=dict)
    allocated: dict[str, ResourceRequirements] = field(default_factory=dict)  # by container
    resize_refusal: tuple[str, str] | None = None  # reason and message of a resize that waits
    resize_failures: dict[ContainerId, FailedAttempt] = field(default_factory=dict)
    resize_restarts: set[ContainerId] = field(default_factory=set)  # stopped for other resources
    started: set[ContainerId] = field(default_factory=set)  # past their startup probe
    ready: set[ContainerId] = field(default_factory=set)
    unhealthy: dict[ContainerId, str] = field(default_factory=dict)  # why each is killed
    termination: Termination | None = None
    in_progress: set[object] = field(default_factory=set)
    # By when containers that are being stopped will be killed.
    stop_deadlines: dict[ContainerId, Timestamp] = field(default_factory=dict)
    is_gone: bool = False  # the API object is deleted
    is_status_written: bool = False  # the final status
    refresh_at: Timestamp | None = None  # when volumes are written again

    def see(self, pod: Pod) -> bool:
        """Take in a version of the pod; return whether it is newer."""
        if is_older(pod, self.pod):
            return False
        self.pod = pod
        return True

    def recall(self, states: Iterable[ContainerState]) -> None:
        """Take in containers from before a restart, as ready as the status says."""
        status = self.pod.status
        listed = (*status.init_container_statuses, *status.container_statuses)
        statuses = {each.name: each for each in listed}
        for state in states:
            self.note(state)
            known = statuses.get(state.id.name)
            if state.phase is not Phase.RUNNING or known is None:
                continue
            if known.resources is not None and known.container_id == state.handle:
                self.note_resources(state.id, known.resources)
                self._recall_allocated(known)
            if known.started:
                self.started.add(state.id)
            if known.ready:
                self.ready.add(state.id)

    def _recall_allocated(self, known: ContainerStatus) -> None:
        """Take in what was granted: what the pod wants, unless it waits for that."""
        wanted = container_of(self.pod, known.name).resources
        assert known.resources is not None
        is_granted = known.allocated_resources == wanted.requests
        self.allocated[known.name] = wanted if is_granted else known.resources

    def note_resources(self, id_: ContainerId, resources: ResourceRequirements) -> None:
        """Take in what a container was started with, in place of its earlier attempts."""
        others = {each: known for each, known in self.resources.items() if each.name != id_.name}
        self.resources = {**others, id_: resources}
        self.resize_failures.pop(id_, None)
        self.resize_restarts = {each for each in self.resize_restarts if each.name != id_.name}

    def note(self, state: ContainerState) -> bool:
        """Take in the state of a container; return whether it is news. An ended one stays so."""
        before = self.states.get(state.id)
        if before == state or (before is not None and before.phase is Phase.EXITED):
            return False
        self.states[state.id] = state
        if state.phase is Phase.EXITED:
            self.started.discard(state.id)
            self.ready.discard(state.id)
            self.unhealthy.pop(state.id, None)
            self.stop_deadlines.pop(state.id, None)
        else:
            self._begin(state.id)
        return True

    def _begin(self, id_: ContainerId) -> None:
        """Treat a container without probes as started and ready."""
        container = container_of(self.pod, id_.name)
        if probe_of(container, STARTUP) is None:
            self.started.add(id_)
            if probe_of(container, READINESS) is None:
                self.ready.add(id_)

    @property
    def latest(self) -> dict[str, ContainerState]:
        """The last attempt of each container."""
        return _latest_of(self.states.values())

    @property
    def previous(self) -> dict[str, ContainerState]:
        """The attempt before the last of each container that has one."""
        last = self.latest
        return _latest_of(each for id_, each in self.states.items() if last[id_.name].id != id_)

    @property
    def has_started_regular(self) -> bool:
        """Whether a container other than init containers was ever started."""
        names = {container.name for container in self.pod.spec.containers}
        return any(id_.name in names for id_ in self.states)

    @property
    def is_initialized(self) -> bool:
        """Whether all init containers have succeeded, or are running sidecars."""
        if self.has_started_regular:
            return True
        latest = self.latest
        return all(
            self.lets_next_start(container, latest.get(container.name))
            for container in self.pod.spec.init_containers
        )

    def lets_next_start(self, container: Container, state: ContainerState | None) -> bool:
        """Return whether the containers after an init container may start."""
        if state is None:
            return False
        if container.is_sidecar:
            return is_running(state) and state.id in self.started
        return state.phase is Phase.EXITED and state.exit_code == 0


def _latest_of(states: Iterable[ContainerState]) -> dict[str, ContainerState]:
    found: dict[str, ContainerState] = {}
    for state in states:
        other = found.get(state.id.name)
        if other is None or other.id.attempt < state.id.attempt:
            found[state.id.name] = state
    return found


def is_running(state: ContainerState | None) -> bool:
    """Return whether a container runs."""
    return state is not None and state.phase is Phase.RUNNING


def container_of(pod: Pod, name: str) -> Container:
    """Return a container of a pod by name, with nothing but the name if there is none."""
    spec = pod.spec
    for container in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers):
        if container.name == name:
            return container
    return Container(name=name)


# --- restarts -------------------------------------------------------------------------------------


class CrashBackoff(Struct, frozen=True):
    """How long a container waits before its next restart."""

    delay_s: float
    since: Timestamp  # the end that set the delay


def should_restart(pod: Pod, container: Container, exit_code: int) -> bool:
    """Return whether to restart a container that ended."""
    policy = container.restart_policy or pod.spec.restart_policy or ALWAYS
    if container.restart_policy and _has_rule(container, exit_code):
        return True
    return policy == ALWAYS or (policy == ON_FAILURE and exit_code != 0)


def _has_rule(container: Container, exit_code: int) -> bool:
    """Return whether the first rule for this exit code says to restart."""
    for rule in container.restart_policy_rules:
        if isinstance(rule, dict) and _applies(rule.get("exitCodes"), exit_code):
            return bool(rule.get("action") == RESTART)
    return False


def _applies(exit_codes: Any, exit_code: int) -> bool:
    if not isinstance(exit_codes, dict):
        return False
    is_listed = exit_code in (exit_codes.get("values") or ())
    return is_listed == (exit_codes.get("operator") == "In")


def wait_until(crash: CrashBackoff | None, ended: ContainerState) -> Timestamp | None:
    """Return until when an ended container waits to be restarted; None: it does not."""
    finished = ended.finished_at or ended.started_at
    if crash is None or _is_forgotten(crash, finished):
        return None
    return later(finished, crash.delay_s)


def next_crash_backoff(crash: CrashBackoff | None, ended: ContainerState) -> CrashBackoff:
    """Return the backoff after a restart."""
    finished = ended.finished_at or ended.started_at
    if crash is None or _is_forgotten(crash, finished):
        return CrashBackoff(FIRST_CRASH_DELAY_S, finished)
    return CrashBackoff(min(2 * crash.delay_s, LONGEST_CRASH_DELAY_S), finished)


def _is_forgotten(crash: CrashBackoff, finished: Timestamp) -> bool:
    return (finished.instant - crash.since.instant).total_seconds() > CRASH_FORGOTTEN_S
