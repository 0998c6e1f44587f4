"""Runs containers by podman.

    runtime = await PodmanRuntime.open("my-node")
    await runtime.start(spec)      # image, then `podman run --detach`; found again by its name

A container that podman cannot run is rejected with podman's message.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Self

from msgspec import structs

from moorage.api.cdi import ContainerEdits
from moorage.kit.clock import REAL, Clock
from moorage.node.runtime.contract import (
    ContainerId,
    ContainerSpec,
    ContainerState,
    ContainerStats,
    ExecSession,
    LifecycleEvents,
    LogRange,
    Phase,
    ResourceLimits,
    RuntimeRefusedError,
    SubPathMount,
)
from moorage.node.runtime.podman import command_line as lines
from moorage.node.runtime.podman import resources
from moorage.node.runtime.podman.client import (
    ALWAYS,
    COMMAND_S_MAX,
    CommandResult,
    ImageService,
    PipeSession,
    Podman,
    Terminal,
    TerminalSession,
    default_policy,
    file_for_podman,
)
from moorage.node.runtime.podman.command_line import Inspected, event_id, read_inspected, state_of
from moorage.node.runtime.podman.subpath_mounts import mounted_files, open_subpaths

INSPECTED_AT_ONCE_MAX = 100
EVENTS_AGAIN_S = 1.0
# Podman's messages, by which we recognize an error.
_CONFLICT, _MISSING, _NO_IMAGE = "already in use", "no such container", "image not known"
_LOG = logging.getLogger(__name__)


class PodmanRuntime:
    """The containers of one agent in podman."""

    def __init__(
        self,
        owner: str,
        podman: Podman,
        version: str,
        *,
        clock: Clock = REAL,
        run_options: Sequence[str] = (),
        resolve: Callable[[Sequence[str]], ContainerEdits] | None = None,
    ) -> None:
        self.owner = hashlib.sha256(owner.encode()).hexdigest()[:12]  # in names and labels
        self._podman = podman
        self._version = version
        self._clock = clock
        self._run_options = tuple(run_options)  # of the operator, for every container
        # Resolves CDI ids, if podman does not read our folders.
        self._resolve = resolve
        self._images = ImageService(podman, clock)
        self._changes = LifecycleEvents()
        self._events: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        owner: str,
        command: Sequence[str] = ("podman",),
        *,
        clock: Clock = REAL,
        run_options: Sequence[str] = (),
        cdi_folders: Sequence[str] = (),
        resolve: Callable[[Sequence[str]], ContainerEdits] | None = None,
    ) -> Self:
        """Return the runtime, if podman works; `owner` marks this agent's containers.

        CDI devices in unusual folders are left to a podman that has an option for them,
        and otherwise looked up by `resolve`.
        """
        podman = Podman(command)
        done = await podman.run(["version", "--format={{.Client.Version}}"])
        if done.code:
            raise RuntimeRefusedError("CreateContainerError", f"podman does not run: {done.why}")
        if cdi_folders and b"--cdi-spec-dir" in (await podman.run(["--help"])).output:
            folders = [f"--cdi-spec-dir={each}" for each in cdi_folders]
            podman, resolve = Podman((*command, *folders)), None
        version = done.output.decode(errors="replace").strip()[:32]
        return cls(owner, podman, version, clock=clock, run_options=run_options, resolve=resolve)

    @property
    def name(self) -> str:
        """Its name and version."""
        return f"podman://{self._version}"

    async def close(self) -> None:
        """Stop following podman; containers go on."""
        if self._events is not None:
            self._events.cancel()
            with suppress(asyncio.CancelledError):
                await self._events
            self._events = None

    # --- containers -------------------------------------------------------------------------------

    async def containers(self, pod_uid: str = "") -> Sequence[ContainerState]:
        """Return our containers that were started."""
        states = [each for each in map(state_of, await self._listed()) if each is not None]
        return [each for each in states if pod_uid in ("", each.id.pod_uid)]

    def changes(self) -> AsyncIterator[ContainerState]:
        """Yield each container that starts or ends, from now on."""
        if self._events is None:
            since_s = self._clock.now().timestamp()
            self._events = asyncio.create_task(self._follow(since_s), name="podman events")
        return self._changes.follow()

    async def start(self, spec: ContainerSpec) -> ContainerState:
        """Start a container, unless it exists."""
        name = lines.name_of(self.owner, spec.id)
        policy = spec.pull_policy or default_policy(spec.image)
        if policy == ALWAYS:
            known = await self._state(name)
            if known is not None:
                return known
            await self._images.have(spec.image, policy)
        done = await self._run(spec)
        if _NO_IMAGE in done.errors:
            await self._images.have(spec.image, policy)
            done = await self._run(spec)
        return await self._started(name, done)

    async def _run(self, spec: ContainerSpec) -> CommandResult:
        user = await self._images.user_of(spec)
        if isinstance(user, CommandResult):
            return user
        is_root = os.geteuid() == 0
        with file_for_podman(lines.env_file_of(spec)) as env_file:
            verb, *rest = lines.run_line(
                self.owner, self._resolved(spec), env_file, user, is_root=is_root
            )
            parts = [each for each in spec.edits.mounts if isinstance(each, SubPathMount)]
            if not parts:
                return await self._podman.run([verb, *self._run_options, *rest])
            rest.remove("--detach")
            return await self._run_verified(spec.id, parts, ["create", *self._run_options, *rest])

    async def _run_verified(
        self, id_: ContainerId, parts: Sequence[SubPathMount], line: Sequence[str]
    ) -> CommandResult:
        name = lines.name_of(self.owner, id_)
        with open_subpaths(parts) as expected:
            done = await self._podman.run(line)
            if done.code and _CONFLICT in done.errors and await self._state(name) is None:
                # Left by an interrupted start: its state is unknown.
                await self._podman.run(["rm", "--force", "--ignore", name])
                done = await self._podman.run(line)
            if not done.code:
                done = await self._podman.run(["init", name])
            if not done.code:
                if expected - mounted_files(await resources.pid_of(self._podman, name)):
                    await self._podman.run(["rm", "--force", "--ignore", name])
                    text = "a subPath was replaced while it was mounted: the container is not run"
                    raise RuntimeRefusedError("CreateContainerError", text)
                done = await self._podman.run(["start", name])
        return done

    async def _started(self, name: str, done: CommandResult) -> ContainerState:
        """Return the state of a container that was started, now or before."""
        was_there = bool(done.code) and _CONFLICT in done.errors
        known = await self._state(name) if was_there or not done.code else None
        if known is None and was_there:  # left by an interrupted start
            done = await self._podman.run(["start", name])
            known = await self._state(name)
        if known is None:
            await self._podman.run(["rm", "--force", "--ignore", name])
            raise RuntimeRefusedError(_reason(done.code), done.why or f"{name} did not start")
        return known

    async def update(self, id_: ContainerId, limits: ResourceLimits) -> None:
        """Change the CPU and memory limits of a running container, or raise RuntimeRefusedError."""
        await resources.update_limits(self._podman, lines.name_of(self.owner, id_), limits)

    async def stats(self) -> Sequence[ContainerStats]:
        """Return what running containers have used."""
        states = [each.id for each in await self.containers() if each.finished_at is None]
        names = [(id_, lines.name_of(self.owner, id_)) for id_ in states]
        return await resources.stats_of(self._podman, names)

    async def stop(self, id_: ContainerId, grace_s: float) -> None:
        """Stop a container, and kill it after the grace period."""
        line = lines.stop_line(lines.name_of(self.owner, id_), grace_s)
        done = await self._podman.run(line, grace_s + COMMAND_S_MAX)
        if done.code and _MISSING not in done.errors:
            raise RuntimeRefusedError("KillContainerError", done.why)

    async def remove(self, pod_uid: str) -> None:
        """Kill and remove the containers of a pod."""
        ids = await self._ids(pod_uid)
        if ids:
            done = await self._podman.run(["rm", "--force", "--ignore", "--time=0", *ids])
            if done.code:
                raise RuntimeRefusedError("KillContainerError", done.why)

    async def forget(self, id_: ContainerId) -> None:
        """Remove one ended container; podman refuses if it runs."""
        await self._podman.run(["rm", "--ignore", lines.name_of(self.owner, id_)])

    # --- streams ----------------------------------------------------------------------------------

    async def logs(self, id_: ContainerId, log_range: LogRange) -> AsyncIterator[bytes]:
        """Yield the log of a container."""
        name = lines.name_of(self.owner, id_)
        if await self._state(name) is None:
            raise RuntimeRefusedError("NotFound", f"there is no container {id_}")
        left = log_range.bytes_max
        async with self._podman.open(lines.logs_line(name, log_range)) as process:
            assert process.stdout is not None
            while left != 0 and (part := await process.stdout.read(65_536)):
                yield part if left is None else part[:left]
                left = None if left is None else max(left - len(part), 0)

    async def execute(
        self, id_: ContainerId, command: Sequence[str], *, tty: bool, stdin: bool
    ) -> ExecSession:
        """Run a command in a container."""
        name = await self._running_name(id_)
        options = [*(["--interactive"] if stdin else []), *(["--tty"] if tty else [])]
        return await self._session(["exec", *options, name, *command], tty=tty, stdin=stdin)

    async def attach(self, id_: ContainerId, *, stdin: bool, tty: bool) -> ExecSession:
        """Receive a running container's output from now on, and send input if it takes any."""
        name = await self._running_name(id_)
        return await self._session(lines.attach_line(name, stdin=stdin), tty=tty, stdin=stdin)

    async def _running_name(self, id_: ContainerId) -> str:
        name = lines.name_of(self.owner, id_)
        state = await self._state(name)
        if state is None or state.phase is not Phase.RUNNING:
            raise RuntimeRefusedError("NotRunning", f"container {id_} does not run")
        return name

    async def _session(self, line: Sequence[str], *, tty: bool, stdin: bool) -> ExecSession:
        if not tty:
            source = PIPE if stdin else DEVNULL
            spawned = await self._podman.spawn(line, stdin=source, stdout=PIPE, stderr=PIPE)
            return PipeSession(spawned)
        terminal = Terminal()
        theirs = terminal.theirs
        try:
            spawned = await self._podman.spawn(line, stdin=theirs, stdout=theirs, stderr=theirs)
        finally:
            terminal.let_go()
        return TerminalSession(spawned, terminal)

    # --- queries ----------------------------------------------------------------------------------

    def _resolved(self, spec: ContainerSpec) -> ContainerSpec:
        """Return a spec whose devices podman can find."""
        if self._resolve is None or not spec.cdi_ids:
            return spec
        return structs.replace(spec, cdi_ids=(), edits=spec.edits + self._resolve(spec.cdi_ids))

    async def _state(self, name: str) -> ContainerState | None:
        found = await self._inspected([name])
        return state_of(found[0]) if found else None

    async def _listed(self) -> list[Inspected]:
        return await self._inspected(await self._ids())

    async def _ids(self, pod_uid: str | None = None) -> list[str]:
        done = await self._podman.run(lines.list_line(self.owner, pod_uid))
        if done.code:  # an empty list would mean something else
            raise RuntimeRefusedError("RuntimeUnavailable", f"podman ps: {done.why}")
        return [each.decode() for each in done.output.split()]

    async def _inspected(self, names: Sequence[str]) -> list[Inspected]:
        found: list[Inspected] = []
        for start in range(0, len(names), INSPECTED_AT_ONCE_MAX):
            some = names[start : start + INSPECTED_AT_ONCE_MAX]
            line = ["inspect", "--type=container", f"--format={lines.INSPECTED}", *some]
            done = await self._podman.run(line)
            if done.code and _MISSING not in done.errors:
                raise RuntimeRefusedError("RuntimeUnavailable", f"podman inspect: {done.why}")
            found += read_inspected(done.output)
        return found

    # --- following --------------------------------------------------------------------------------

    async def _follow(self, since_s: float) -> None:
        """Publish what podman's events say; after an interruption, the state of all containers."""
        while True:
            try:
                await self._take_events(since_s)
            except (RuntimeRefusedError, ValueError) as error:  # ValueError: a line without end
                _LOG.warning("podman's events cannot be followed: %s", error)
            since_s = self._clock.now().timestamp()
            await self._clock.sleep(EVENTS_AGAIN_S)
            with suppress(RuntimeRefusedError):
                self._publish(await self._listed())

    async def _take_events(self, since_s: float) -> None:
        async with self._podman.open(lines.events_line(self.owner, since_s)) as process:
            assert process.stdout is not None
            while line := await process.stdout.readline():
                id_ = event_id(line)
                if id_:
                    self._publish(await self._inspected([id_]))

    def _publish(self, containers: Iterable[Inspected]) -> None:
        for each in map(state_of, containers):
            if each is not None:
                self._changes.publish(each)


def _reason(code: int) -> str:
    return "RunContainerError" if code in (126, 127) else "CreateContainerError"
