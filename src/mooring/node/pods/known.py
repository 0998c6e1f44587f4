"""What a node knows of a pod, besides what the cluster says of it.

# end: why a pod ends, and how its containers are stopped
# set up: its volumes are there and its devices prepared
# doing: steps that are under way, by their keys
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from msgspec import Struct, field

from mooring.api.core import Container, Pod
from mooring.api.timestamp import Timestamp
from mooring.node.pods.restarting import Crash
from mooring.node.runtime.contract import ContainerId, ContainerState, Phase

CREATING = "ContainerCreating"
INITIALIZING = "PodInitializing"
CRASH_LOOP = "CrashLoopBackOff"
UNKNOWN_END = "ContainerStatusUnknown"
KILLED = 137


class Waiting(Struct, frozen=True):
    """Why something did not work out, and when it is tried again."""

    reason: str
    message: str
    until: Timestamp
    failures: int = 1


class Ending(Struct, frozen=True):
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


class Known(Struct, frozen=True):
    """What a node knows of a pod."""

    states: Mapping[ContainerId, ContainerState] = field(default_factory=dict)
    started_at: Timestamp | None = None  # when the node took the pod
    is_refused: bool = False  # the node did not take it; then it ends, too
    is_set_up: bool = False
    is_cleared: bool = False  # what was set up is taken back
    trouble: Waiting | None = None  # why it is not set up, or not cleared
    waits: Mapping[str, Waiting] = field(default_factory=dict)  # containers that did not start
    crashes: Mapping[str, Crash] = field(default_factory=dict)
    up: frozenset[ContainerId] = frozenset()  # past their startup probe
    ready: frozenset[ContainerId] = frozenset()
    ailing: Mapping[ContainerId, str] = field(default_factory=dict)  # to be killed: why
    ending: Ending | None = None
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


def is_initialized(pod: Pod, known: Known) -> bool:
    """Tell whether the containers of the beginning have done, or are at, their work."""
    latest = latest_of(known.states.values())
    if has_run(pod, latest.values()):
        return True
    return all(
        is_past(container, latest.get(container.name), known)
        for container in pod.spec.init_containers
    )


def is_past(container: Container, state: ContainerState | None, known: Known) -> bool:
    """Tell whether the containers after an init container may start."""
    if state is None:
        return False
    if container.is_sidecar:
        return is_running(state) and state.id in known.up
    return state.phase is Phase.EXITED and state.exit_code == 0
