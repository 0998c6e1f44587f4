"""The contract of container runtimes: the CRI in Python, without pods and devices.

A container comes with everything already worked out. Containers survive the agent: after a restart
it calls `containers` to find those that still exist.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Protocol

from msgspec import Struct, field

from moorage.api.cdi import ContainerEdits, Mount
from moorage.api.timestamp import Timestamp
from moorage.node.errors import RuntimeRefusedError as RuntimeRefusedError
from moorage.node.runtime.security_context import SecurityContext

_ID_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")
NOT_SUPPORTED = "NotSupported"  # the reason of a request that a runtime cannot serve
# Options of mounts, beside those of mount(8).
READ_ONLY_ALL = "rro"  # read-only with all mounts within it, or the container is refused
READ_ONLY_ALL_IF_POSSIBLE = "rro-if-possible"
SHARED = "rshared"  # the container's mounts appear on the host
START_ERROR = "StartError"  # the reason of a container whose program could not be executed


class ContainerId(Struct, frozen=True, order=True):
    """One attempt to run one container of one pod."""

    pod_uid: str
    name: str
    attempt: int  # 0, then one more for each restart

    def __str__(self) -> str:
        return f"{self.pod_uid}/{self.name}/{self.attempt}"


def is_id_part(text: str) -> bool:
    """Return whether a UID or name can be a part of a container's id."""
    return _ID_PART.fullmatch(text) is not None


def check_id(id_: ContainerId) -> None:
    """Raise RuntimeRefusedError for an id that no container of Kubernetes can have.

    Its parts become names of files and containers, joined by underscores.
    """
    for part in (id_.pod_uid, id_.name):
        if not is_id_part(part):
            text = f"{part[:128]!r} cannot be a part of the name of a container"
            raise RuntimeRefusedError("CreateContainerError", text)


class ResourceLimits(Struct, frozen=True):
    """The resource limits of a container; None is no limit."""

    cpu_millis: int | None = None
    memory_bytes: int | None = None
    cpus: tuple[int, ...] = ()  # that it is bound to; none: all
    memory_nodes: tuple[int, ...] = ()


class ContainerStats(Struct, frozen=True):
    """What a container has used."""

    id: ContainerId
    cpu_ns: int  # since it started
    memory_bytes: int  # its working set


class SubPathMount(Mount, frozen=True, gc=False):
    """A mount of a subPath of a volume: `host_path` below `root`.

    Containers write to the volume and can replace a part of the path by a link at any moment, so a
    runtime opens the path from the root without following links.
    """

    root: str = ""

    @property
    def within(self) -> str:
        """The path relative to the root."""
        return self.host_path.removeprefix(self.root.rstrip("/")).lstrip("/")


class ContainerSpec(Struct, frozen=True):
    """A container to start."""

    id: ContainerId
    namespace: str
    pod_name: str
    image: str = ""
    command: tuple[str, ...] = ()  # replaces the image's entry point
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    edits: ContainerEdits = ContainerEdits()  # of its devices and volumes
    cdi_ids: tuple[str, ...] = ()  # for a runtime that makes the edits itself
    limits: ResourceLimits = ResourceLimits()
    security: SecurityContext = SecurityContext()
    annotations: Mapping[str, str] = field(default_factory=dict)  # of the pod and its devices
    pull_policy: str = ""  # Always, IfNotPresent, Never; for runtimes with images
    tty: bool = False
    stdin: bool = False
    stdin_once: bool = False  # the input ends when the first client detaches
    host_name: str = ""  # the pod's name, unless it has another


class Phase(Enum):
    """How far a container is."""

    RUNNING = "running"
    EXITED = "exited"


class ContainerState(Struct, frozen=True):
    """The state of a container that was started."""

    id: ContainerId
    phase: Phase
    started_at: Timestamp
    finished_at: Timestamp | None = None
    exit_code: int = 0
    signal: int = 0
    reason: str = ""  # Completed, Error, OOMKilled, StartError, ContainerStatusUnknown
    message: str = ""
    handle: str = ""  # the runtime's own id: process://…
    image_id: str = ""


class LogRange(Struct, frozen=True):
    """The requested part of a log."""

    follow: bool = False
    tail_lines: int | None = None
    since: Timestamp | None = None
    bytes_max: int | None = None
    has_times: bool = False


class ExecSession(Protocol):
    """A command that runs in a container, with its three streams."""

    async def write(self, data: bytes) -> None:
        """Send input; ignored once the command has ended."""

    async def close_input(self) -> None:
        """Close its input."""

    async def resize(self, columns: int, rows: int) -> None:
        """Change the size of its terminal."""

    def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield its output as channel and bytes: 1 is stdout, 2 stderr."""

    async def wait(self) -> int:
        """Return its exit code when it has ended."""

    async def kill(self) -> None:
        """Kill it."""


class Runtime(Protocol):
    """Runs containers. Every request can be repeated without further effect."""

    @property
    def name(self) -> str:
        """Its name and version: `process://1`."""

    async def containers(self, pod_uid: str = "") -> Sequence[ContainerState]:
        """Return the containers that are not removed, also those of an earlier agent.

        With a UID, only those of that pod.
        """

    def changes(self) -> AsyncIterator[ContainerState]:
        """Yield each container whose phase changes, from now on."""

    async def start(self, spec: ContainerSpec) -> ContainerState:
        """Start a container, or return its state if it was started; else RuntimeRefusedError."""

    async def update(self, id_: ContainerId, limits: ResourceLimits) -> None:
        """Change the CPU and memory limits of a running container, or raise RuntimeRefusedError.

        Its CPUs and memory nodes stay.
        """

    async def stats(self) -> Sequence[ContainerStats]:
        """Return what running containers have used; nothing for those that cannot be measured."""

    async def stop(self, id_: ContainerId, grace_s: float) -> None:
        """Send SIGTERM, kill after the grace period, and return when the container has ended."""

    async def remove(self, pod_uid: str) -> None:
        """Remove the containers of a pod and their logs; running ones are killed."""

    async def forget(self, id_: ContainerId) -> None:
        """Remove one ended container and its log, such as an old attempt."""

    def logs(self, id_: ContainerId, log_range: LogRange) -> AsyncIterator[bytes]:
        """Yield parts of a container's log, up to now or, if followed, to its end."""

    async def execute(
        self, id_: ContainerId, command: Sequence[str], *, tty: bool, stdin: bool
    ) -> ExecSession:
        """Run a command beside a running container, with its environment and devices."""

    async def attach(self, id_: ContainerId, *, stdin: bool, tty: bool) -> ExecSession:
        """Receive a running container's output from now on, and send input if it takes any.

        `tty` says whether the container has a terminal. The session ends with the container, and
        killing it leaves the container alone. A runtime that cannot attach refuses with
        NotSupported.
        """


# --- for runtimes ---------------------------------------------------------------------------------


class _Follower:
    def __init__(self) -> None:
        self.news: dict[ContainerId, ContainerState] = {}
        self.has_news = asyncio.Event()


async def _always() -> bool:
    return True


class LifecycleEvents:
    """Passes state changes on to everyone who follows a runtime (the kubelet's PLEG).

    A slow follower gets the current state of each container, not every state it was in, so nothing
    piles up. Following ends when `goes_on`, which is awaited before each wait, says no.
    """

    def __init__(self, goes_on: Callable[[], Awaitable[bool]] = _always) -> None:
        self._followers: list[_Follower] = []
        self._goes_on = goes_on

    def publish(self, state: ContainerState) -> None:
        """Pass a container's new state on to all followers."""
        for each in self._followers:
            each.news.pop(state.id, None)  # moves to the end
            each.news[state.id] = state
            each.has_news.set()

    def wake(self) -> None:
        """Have every follower check whether it goes on."""
        for each in self._followers:
            each.has_news.set()

    def follow(self) -> AsyncIterator[ContainerState]:
        """Yield the states published from now on, even before the first is awaited."""
        follower = _Follower()
        self._followers.append(follower)
        return self._follow(follower)

    async def _follow(self, follower: _Follower) -> AsyncIterator[ContainerState]:
        try:
            while await self._goes_on():
                while follower.news:
                    yield follower.news.pop(next(iter(follower.news)))
                await follower.has_news.wait()
                follower.has_news.clear()
        finally:
            self._followers.remove(follower)
