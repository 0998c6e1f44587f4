"""The runtime that keeps containers as processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mooring.api.timestamp import Timestamp
from mooring.kit.clock import REAL, Clock
from mooring.node.runtime.cdi import CdiSpecs, UnresolvableError
from mooring.node.runtime.contract import (
    ContainerId,
    ContainerSpec,
    ContainerState,
    LogRange,
    Phase,
    RuntimeRefusedError,
)
from mooring.node.runtime.process.launching import REFUSED, key_of, launch_of
from mooring.node.runtime.process.link import KeeperLink, State
from mooring.node.runtime.process.logs import read_logs
from mooring.node.runtime.process.session import ProcessSession

VERSION = 1


class ProcessRuntime:
    """Runs containers as processes, which outlive it."""

    def __init__(
        self,
        root: Path,
        cdi_folders: Sequence[Path] = (),
        *,
        clock: Clock = REAL,
        keeper_options: dict[str, Any] | None = None,
    ) -> None:
        """Take the folder that is the keeper's, and those of CDI specs.

        `keeper_options`: `idle_s`, after which a keeper without work ends; `cgroup_mount`.
        """
        self._root, self._clock = root, clock
        self._specs = CdiSpecs(cdi_folders)
        self._phases: dict[ContainerId, Phase] = {}
        self._changes: set[_Changes] = set()
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._link = KeeperLink(
            root.resolve(),
            on_state=self._told,
            on_lost=self._lost,
            options=keeper_options,
            clock=clock,
        )

    @property
    def name(self) -> str:
        """What it is called, with its version."""
        return f"process://{VERSION}"

    async def keeper_pid(self) -> int:
        """Return the process that keeps the containers, which is started if there is none."""
        await self._link.ensure()
        return self._link.keeper_pid

    async def containers(self, pod_uid: str = "") -> Sequence[ContainerState]:
        """Return the containers that are not removed, also those of an agent before this one."""
        states = map(_state, await self._link.ask("containers", pod_uid=pod_uid))
        # A keeper of an older version tells of all.
        return [each for each in states if pod_uid in ("", each.id.pod_uid)]

    def changes(self) -> AsyncIterator[ContainerState]:
        """Yield each container whose phase changed, from now on, until we are closed."""
        changes = _Changes(self._link)
        self._changes.add(changes)
        return changes.all(self._changes)

    async def start(self, spec: ContainerSpec) -> ContainerState:
        """Start a container, or return how it is if it was started; else RuntimeRefusedError."""
        await self._link.ensure()
        try:
            edits = spec.edits + self._specs.edits(spec.cdi_ids)
        except UnresolvableError as error:
            raise RuntimeRefusedError(REFUSED, str(error)) from None
        controllers = self._link.controllers
        launch = launch_of(spec, edits, controllers=controllers, is_root=os.geteuid() == 0)
        return _state(await self._link.ask("start", launch=launch.message()))

    async def stop(self, id_: ContainerId, grace_s: float) -> None:
        """Ask a container to end, kill it after so long, and return when it has ended."""
        await self._link.ask("stop", key=key_of(id_), grace_s=grace_s)

    async def remove(self, pod_uid: str) -> None:
        """Forget the containers of a pod and their logs; those that run are killed."""
        await self._link.ask("remove", pod_uid=pod_uid)
        self._phases = {id_: each for id_, each in self._phases.items() if id_.pod_uid != pod_uid}

    async def forget(self, id_: ContainerId) -> None:
        """Forget one ended container and its log, such as an old attempt."""
        await self._link.ask("forget", key=key_of(id_))
        self._phases.pop(id_, None)

    def logs(self, id_: ContainerId, wanted: LogRange) -> AsyncIterator[bytes]:
        """Yield parts of what a container said, to the end or, if followed, to its end."""
        key = key_of(id_)
        folder = self._root / "containers" / key.pod_uid / key.name / str(key.attempt)
        return read_logs(folder, wanted, self._clock)

    async def execute(
        self, id_: ContainerId, command: Sequence[str], *, tty: bool, stdin: bool
    ) -> ProcessSession:
        """Run a command beside a running container, with its environment and devices."""
        session = ProcessSession(*await self._link.connect())
        request = {"key": key_of(id_), "command": list(command), "tty": tty, "stdin": stdin}
        await session.begin(request)
        return session

    async def attach(self, id_: ContainerId, *, stdin: bool, tty: bool) -> ProcessSession:  # noqa: ARG002
        """Hear what a running container says from now on, and give it input if it takes any."""
        session = ProcessSession(*await self._link.connect())
        await session.begin({"ask": "attach", "key": key_of(id_), "stdin": stdin})
        return session

    async def close(self) -> None:
        """Let go; containers run on."""
        await self._link.close()

    async def shut_down(self, grace_s: float = 0.0) -> None:
        """End all containers, and the keeper. Records and logs stay."""
        await self._link.ask("quit", grace_s=grace_s)
        await self.close()

    def _told(self, state: State) -> None:
        """Tell a change, if this is one; after a new connection all containers come by."""
        told = _state(state)
        if self._phases.get(told.id) is not told.phase:
            self._phases[told.id] = told.phase
            for changes in self._changes if self._link.has_greeted else ():
                changes.add(told)

    def _lost(self) -> None:
        for changes in self._changes:
            changes.wake()


class _Changes:
    """What one listener has not been told yet: of each container only the last."""

    def __init__(self, link: KeeperLink) -> None:
        self._link = link
        self._waiting: dict[ContainerId, ContainerState] = {}
        self._is_awake = asyncio.Event()

    def add(self, state: ContainerState) -> None:
        """Tell a change."""
        self._waiting[state.id] = state
        self._is_awake.set()

    def wake(self) -> None:
        """Have a look whether the keeper is there."""
        self._is_awake.set()

    async def all(self, listeners: set[_Changes]) -> AsyncIterator[ContainerState]:
        """Yield changes as they come."""
        try:
            while not self._link.is_closed:
                await self._link.ensure()
                while self._waiting:
                    yield self._waiting.pop(next(iter(self._waiting)))
                await self._is_awake.wait()
                self._is_awake.clear()
        finally:
            listeners.discard(self)


def _state(state: State) -> ContainerState:
    pod_uid, name, attempt = state["key"]
    id_ = ContainerId(pod_uid, name, attempt)
    finished = state["finished"]
    return ContainerState(
        id_,
        Phase.RUNNING if finished is None else Phase.EXITED,
        started_at=_timestamp(state["started"]),
        finished_at=None if finished is None else _timestamp(finished),
        exit_code=state["exit_code"],
        signal=state["signal"],
        reason=state["reason"],
        message=state["message"],
        handle=f"process://{id_}",
    )


def _timestamp(seconds: float) -> Timestamp:
    return Timestamp(datetime.fromtimestamp(seconds, UTC))
