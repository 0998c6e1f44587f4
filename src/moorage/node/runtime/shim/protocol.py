"""The protocol of agent and shim: launches and messages on a socket, records on disk.

    socket   a length, a channel, and that many bytes; channel MESSAGE has JSON, others stream data
    disk     FOLDER/<pod uid>/<container>/<attempt>/record     JSON
             FOLDER/<pod uid>/<container>/<attempt>/log…

A record is replaced as a whole. It is not synced: a machine that loses power loses its containers,
too. (`moorage.kit.atomic_file` is not used: it would make the shim start 10 ms later and grow by
1.5 MB.)
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

# A part of an id is also the name of a folder.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
MARKER = "MOORAGE_CONTAINER"  # in the environment of every member
HEADER = struct.Struct(">IB")
MESSAGE, OUTPUT, ERRORS, INPUT = range(4)
PAYLOAD_BYTES_MAX = 8 * 1024 * 1024
PROTOCOL = 1  # agents refuse a shim with another version
RECORD_NAME = "record"
RECORD_BYTES_MAX = 64 * 1024


class LaunchError(ValueError):
    """A malformed request."""


class ContainerKey(NamedTuple):
    """The id of a container."""

    pod_uid: str
    name: str
    attempt: int

    @classmethod
    def read(cls, value: Any) -> ContainerKey:
        """Return an id, or raise LaunchError."""
        match value:
            case [str() as pod_uid, str() as name, int() as attempt]:
                if _NAME.fullmatch(pod_uid) and _NAME.fullmatch(name) and 0 <= attempt < 2**31:
                    return cls(pod_uid, name, attempt)
        raise LaunchError(f"{str(value)[:128]!r} is not the id of a container")

    def __str__(self) -> str:
        return f"{self.pod_uid}/{self.name}/{self.attempt}"


class MountLaunch(NamedTuple):
    """Something that the container sees at a path."""

    source: str
    target: str
    kind: str = "bind"  # or a file system, such as tmpfs
    options: tuple[str, ...] = ()
    within: str = ""  # a path in the source, opened without following links


class Confinement(NamedTuple):
    """Who a container runs as, and what it may do; None: as the shim."""

    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] | None = None  # all supplementary groups
    capabilities: tuple[int, ...] | None = None  # all that it may ever have
    no_new_privileges: bool = False
    has_filter: bool = False  # of system calls
    is_root_read_only: bool = False

    @classmethod
    def read(cls, values: Any) -> Confinement:
        """Return a confinement that was sent, or raise TypeError."""
        sent = cls(*values)
        groups, capabilities = sent.groups, sent.capabilities
        return sent._replace(
            groups=None if groups is None else tuple(groups),
            capabilities=None if capabilities is None else tuple(capabilities),
        )


class Launch(NamedTuple):
    """All that is needed to start a container."""

    key: ContainerKey
    digest: str
    command: tuple[str, ...]
    environment: dict[str, str]
    folder: str = "/"
    mounts: tuple[MountLaunch, ...] = ()
    groups: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    memory_nodes: tuple[int, ...] = ()
    cpu_millis: int | None = None
    memory_bytes: int | None = None
    tty: bool = False
    stdin: bool = False
    stdin_once: bool = False  # its input ends when the first client detaches
    note: str = ""  # unsupported settings, for its status
    confinement: Confinement = Confinement()

    def message(self) -> dict[str, Any]:
        """Return its encoded form."""
        # Shims of older versions know neither `within` nor `stdin_once`, and refuse what they do
        # not know: a confinement is never ignored.
        mounts = [each if each.within else each[:-1] for each in self.mounts]
        message = {**self._asdict(), "mounts": mounts}
        if not self.stdin_once:
            del message["stdin_once"]
        if self.confinement == Confinement():
            del message["confinement"]
        return message

    @classmethod
    def read(cls, message: Any) -> Launch:
        """Return a launch that was sent, or raise LaunchError."""
        if not isinstance(message, dict):
            raise LaunchError("not a launch")
        fields = {**message, "key": ContainerKey.read(message.get("key"))}
        try:
            for name in ("command", "groups", "cpus", "memory_nodes"):
                fields[name] = tuple(message.get(name, ()))
            mounts = (MountLaunch(*each) for each in message.get("mounts", ()))
            fields["mounts"] = tuple(each._replace(options=tuple(each.options)) for each in mounts)
            fields["confinement"] = Confinement.read(message.get("confinement", ()))
            launch = cls(**fields)
        except TypeError as error:
            raise LaunchError(f"not a launch: {error}") from None
        if not launch.command or not isinstance(launch.environment, dict):
            raise LaunchError("not a launch: no command or no environment")
        return launch


# --- frames ---------------------------------------------------------------------------------------


class FrameError(ValueError):
    """Bytes that are not of this protocol."""


def frame(channel: int, payload: bytes) -> bytes:
    """Return the bytes of one frame."""
    return HEADER.pack(len(payload), channel) + payload


def message_frame(message: dict[str, Any]) -> bytes:
    """Return the bytes of one message."""
    return frame(MESSAGE, json.dumps(message, separators=(",", ":")).encode())


def read_message(payload: bytes) -> dict[str, Any]:
    """Return the message of a payload, or raise FrameError."""
    try:
        message = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"not a message: {error}") from None
    if not isinstance(message, dict):
        raise FrameError("not a message: no object")
    return message


class Frames:
    """Takes bytes as they come, and yields complete frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the frames that are complete now, or raise FrameError."""
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            length, channel = HEADER.unpack_from(self._buffer)
            if length > PAYLOAD_BYTES_MAX or channel > INPUT:
                raise FrameError(f"a frame of {length} bytes on channel {channel}")
            end = HEADER.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[HEADER.size : end])
            del self._buffer[:end]
            yield channel, payload


# --- records --------------------------------------------------------------------------------------


class Record(NamedTuple):
    """One attempt to run a container."""

    key: ContainerKey
    digest: str = ""
    boot: str = ""  # id of the machine's boot
    pid: int = 0
    pid_started: int = 0  # in ticks since boot: distinguishes it from a later process with this pid
    started: float = 0.0
    finished: float | None = None
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""

    @property
    def is_running(self) -> bool:
        """Whether its end is unknown."""
        return self.finished is None


class Records:
    """The records of a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def folder_of(self, key: ContainerKey) -> str:
        """Return the folder of a container's files."""
        return os.path.join(self.folder, key.pod_uid, key.name, str(key.attempt))

    def write(self, record: Record) -> None:
        """Replace a record."""
        path = os.path.join(self.folder_of(record.key), RECORD_NAME)
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(record._asdict(), file)
        os.replace(path + ".new", path)

    def remove(self, key: ContainerKey) -> None:
        """Remove the files of a container, and folders that become empty."""
        folder = self.folder_of(key)
        for name in _names(folder):
            _try(os.unlink, os.path.join(folder, name))
        pods_folder = os.path.dirname(os.path.dirname(folder))
        for each in (folder, os.path.dirname(folder), pods_folder):
            _try(os.rmdir, each)  # the last two only if empty

    def all(self) -> Iterator[Record]:
        """Yield every record; of a damaged one, what its path says."""
        for pod_uid in _names(self.folder):
            for name in _names(os.path.join(self.folder, pod_uid)):
                for attempt in _names(os.path.join(self.folder, pod_uid, name)):
                    if attempt.isdecimal():
                        try:
                            key = ContainerKey.read([pod_uid, name, int(attempt)])
                        except LaunchError:
                            continue  # not ours
                        if (found := self._read(key)) is not None:
                            yield found

    def _read(self, key: ContainerKey) -> Record | None:
        try:
            with open(os.path.join(self.folder_of(key), RECORD_NAME), "rb") as file:
                return _read_record(json.loads(file.read(RECORD_BYTES_MAX)))._replace(key=key)
        except FileNotFoundError:  # no program runs before its record is written
            self.remove(key)
            return None
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return Record(key)


def _read_record(tree: Any) -> Record:
    """Return a record from JSON, or raise ValueError or TypeError."""
    return Record(**{**tree, "key": ContainerKey.read(tree["key"])})


def _try(call: Callable[[str], None], path: str) -> None:
    with suppress(OSError):
        call(path)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
