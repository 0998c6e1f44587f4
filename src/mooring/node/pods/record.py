"""What a node knows of one pod, as it changes."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.core import Pod
from mooring.api.timestamp import Timestamp
from mooring.client.objects import is_older
from mooring.node.pods.containerspecs import container_of
from mooring.node.pods.known import Ending, Known, Waiting
from mooring.node.pods.probes import READINESS, STARTUP, probe_of
from mooring.node.pods.restarting import Crash
from mooring.node.runtime.contract import ContainerId, ContainerState, Phase


class Record:
    """Keeps what is known of a pod; `known` is what plans are made from."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.states: dict[ContainerId, ContainerState] = {}
        self.started_at: Timestamp | None = pod.status.start_time
        self.is_refused = False
        self.is_set_up = False
        self.is_cleared = False
        self.trouble: Waiting | None = None
        self.waits: dict[str, Waiting] = {}
        self.crashes: dict[str, Crash] = {}
        self.up: set[ContainerId] = set()
        self.ready: set[ContainerId] = set()
        self.ailing: dict[ContainerId, str] = {}
        self.ending: Ending | None = None
        self.doing: set[object] = set()
        self.stops: dict[ContainerId, Timestamp] = {}
        self.refresh_at: Timestamp | None = None  # when what is in volumes is written anew
        self.is_gone = False
        self.is_told = False

    def known(self) -> Known:
        """Return all that is known now."""
        return Known(
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
