"""What a runtime does: it keeps containers, and tells what becomes of them.

A runtime knows no pods and no devices: a container comes with all that it needs already worked
out. It survives the agent: whoever starts again asks `containers` what is still there.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from enum import Enum
from typing import Protocol

from msgspec import Struct, field

from mooring.api.cdi import ContainerEdits, Mount
from mooring.api.timestamp import Timestamp


class RuntimeRefusedError(Exception):
    """A container cannot be had; the text says why, for the status of its pod.

    `reason` is one word, as Kubernetes has them: CreateContainerError, ErrImagePull, …
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class ContainerId(Struct, frozen=True, order=True):
    """One try to run one container of one pod."""

    pod_uid: str
    name: str
    attempt: int  # 0, then one more for each restart

    def __str__(self) -> str:
        return f"{self.pod_uid}/{self.name}/{self.attempt}"


_ID_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")


def is_id_part(text: str) -> bool:
    """Tell whether a UID or a name can be a part of the id of a container."""
    return _ID_PART.fullmatch(text) is not None


def check_id(id_: ContainerId) -> None:
    """Raise RuntimeRefusedError for an id that no container of Kubernetes can have.

    Its parts become names of files and containers, joined by underscores.
    """
    for part in (id_.pod_uid, id_.name):
        if not is_id_part(part):
            text = f"{part[:128]!r} cannot be a part of the name of a container"
            raise RuntimeRefusedError("CreateContainerError", text)


class Limits(Struct, frozen=True):
    """What a container may use; None is no limit."""

    cpu_millis: int | None = None
    memory_bytes: int | None = None
    cpus: tuple[int, ...] = ()  # to which it is bound; none: all
    memory_nodes: tuple[int, ...] = ()


class VolumePart(Mount, frozen=True, gc=False):
    """A mount of a part of a volume, `host_path` below `root`.

    Containers write to the volume and can put links in the way at any moment, so a runtime opens
    the part from the root without following any.
    """

    root: str = ""

    @property
    def within(self) -> str:
        """The part, relative to the root."""
        return self.host_path.removeprefix(self.root.rstrip("/")).lstrip("/")


class ContainerSpec(Struct, frozen=True):
    """A container as it is to be started."""

    id: ContainerId
    namespace: str
    pod_name: str
    image: str = ""
    command: tuple[str, ...] = ()  # instead of the image's entry point
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    edits: ContainerEdits = ContainerEdits()  # of its devices and volumes
    cdi_ids: tuple[str, ...] = ()  # where the runtime makes the edits itself
    limits: Limits = Limits()
    annotations: Mapping[str, str] = field(default_factory=dict)  # of the pod and its devices
    pull_policy: str = ""  # Always, IfNotPresent, Never; for a runtime that has images
    tty: bool = False
    stdin: bool = False
    stdin_once: bool = False  # the input ends with the first who is attached to it


NOT_SUPPORTED = "NotSupported"  # the reason of what a runtime cannot do at all
START_ERROR = "StartError"  # the reason of a container whose program could not be run


class Phase(Enum):
    """How far a container is."""

    RUNNING = "running"
    EXITED = "exited"


class ContainerState(Struct, frozen=True):
    """What is known of a container that was started."""

    id: ContainerId
    phase: Phase
    started_at: Timestamp
    finished_at: Timestamp | None = None
    exit_code: int = 0
    signal: int = 0
    reason: str = ""  # Completed, Error, OOMKilled, StartError, ContainerStatusUnknown
    message: str = ""
    handle: str = ""  # what the runtime calls it: process://…
    image_id: str = ""


class LogRange(Struct, frozen=True):
    """Which part of a log is wanted."""

    follow: bool = False
    tail_lines: int | None = None
    since: Timestamp | None = None
    bytes_max: int | None = None
    has_times: bool = False


class ExecSession(Protocol):
    """A command that runs in a container, with its three streams."""

    async def write(self, data: bytes) -> None:
        """Give it input; nothing when it has ended."""

    async def close_input(self) -> None:
        """Say that there is no more input."""

    async def resize(self, columns: int, rows: int) -> None:
        """Change the size of its terminal."""

    def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield what it says: 1 and its output, 2 and its errors."""

    async def wait(self) -> int:
        """Return its exit code when it has ended."""

    async def kill(self) -> None:
        """End it."""


class Runtime(Protocol):
    """Runs containers. What it is asked twice it does once."""

    @property
    def name(self) -> str:
        """What it is called, with its version: `process://1`."""

    async def containers(self, pod_uid: str = "") -> Sequence[ContainerState]:
        """Return the containers that are not removed, also those of an agent before this one.

        Those of one pod, if its uid is given.
        """

    def changes(self) -> AsyncIterator[ContainerState]:
        """Yield each container whose phase changed, from now on."""

    async def start(self, spec: ContainerSpec) -> ContainerState:
        """Start a container, or return how it is if it was started; else RuntimeRefusedError."""

    async def stop(self, id_: ContainerId, grace_s: float) -> None:
        """Ask a container to end, kill it after so long, and return when it has ended."""

    async def remove(self, pod_uid: str) -> None:
        """Forget the containers of a pod and their logs; those that run are killed."""

    async def forget(self, id_: ContainerId) -> None:
        """Forget one ended container and its log, such as an old attempt."""

    def logs(self, id_: ContainerId, wanted: LogRange) -> AsyncIterator[bytes]:
        """Yield parts of what a container said, to the end or, if followed, to its end."""

    async def execute(
        self, id_: ContainerId, command: Sequence[str], *, tty: bool, stdin: bool
    ) -> ExecSession:
        """Run a command beside a running container, with its environment and devices."""

    async def attach(self, id_: ContainerId, *, stdin: bool, tty: bool) -> ExecSession:
        """Hear what a running container says from now on, and give it input if it takes any.

        `tty` tells whether the container has a terminal. The session ends with the container, and
        killing it leaves the container alone. A runtime that cannot refuses with NotSupported.
        """
