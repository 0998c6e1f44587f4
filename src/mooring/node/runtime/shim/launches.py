"""What a container needs to be started, as the agent sends it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

# A part of an id is a name of a folder, too.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
MARKER = "MOORING_CONTAINER"  # in the environment of every member


class LaunchError(ValueError):
    """A request that cannot be meant; the text says what is wrong."""


class Key(NamedTuple):
    """The id of a container."""

    pod_uid: str
    name: str
    attempt: int

    @classmethod
    def read(cls, value: Any) -> Key:
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
    within: str = ""  # the part of the source that is meant, reached without following links


class Launch(NamedTuple):
    """All that is needed to start a container."""

    key: Key
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
    stdin_once: bool = False  # its input ends with the first who is attached to it
    note: str = ""  # what it does not get, for its state

    def message(self) -> dict[str, Any]:
        """Return it as it is sent."""
        # A keeper that was started before there were `within` and `stdin_once` knows neither.
        mounts = [each if each.within else each[:-1] for each in self.mounts]
        message = {**self._asdict(), "mounts": mounts}
        if not self.stdin_once:
            del message["stdin_once"]
        return message

    @classmethod
    def read(cls, message: Any) -> Launch:
        """Return what was sent, or raise LaunchError."""
        if not isinstance(message, dict):
            raise LaunchError("not a launch")
        fields = {**message, "key": Key.read(message.get("key"))}
        try:
            for name in ("command", "groups", "cpus", "memory_nodes"):
                fields[name] = tuple(message.get(name, ()))
            mounts = (MountLaunch(*each) for each in message.get("mounts", ()))
            fields["mounts"] = tuple(each._replace(options=tuple(each.options)) for each in mounts)
            launch = cls(**fields)
        except TypeError as error:
            raise LaunchError(f"not a launch: {error}") from None
        if not launch.command or not isinstance(launch.environment, dict):
            raise LaunchError("not a launch: no command or no environment")
        return launch
