"""Simulated containers: they run for as long as their commands say, and nothing happens.

How long a pod's containers run, and how they end:

1. A pod with restartPolicy Always runs until it is deleted.
2. The annotation `moorage.dev/runs-for: 90s` says it, with `moorage.dev/exits-with: "1"` for a pod
   that fails. `runs-for: forever` runs a pod, or a container, until it is stopped.
3. Otherwise the longest of its containers counts, by their commands: `sleep 30`, `true`, `false`,
   `echo …`, `tail -f …`, and lines of these in `sh -c`. Any other program runs for five seconds
   and succeeds.

A file keeps the containers, so that an agent that starts again finds them, and containers that
ended meanwhile have ended on time.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct, structs

from moorage.api.core import Pod
from moorage.api.timestamp import Timestamp
from moorage.kit.atomic_file import replace_file
from moorage.kit.clock import REAL, Clock, Timer
from moorage.node.runtime.contract import (
    NOT_SUPPORTED,
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
    check_id,
)

STOPPED = 143  # ended by SIGTERM
TERMINATED = 15
LONG_S = 10 * 365 * 86400.0  # a longer run never ends
RUNS_FOR = "moorage.dev/runs-for"
EXITS_WITH = "moorage.dev/exits-with"
FOREVER = "forever"
PROGRAM_S = 5.0
TEXT_MAX = 10_000
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)?")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SHELLS = ("sh", "bash", "ash", "dash")
_BETWEEN = re.compile(r"&&|\|\||[;\n]")
_FOREVER = frozenset(("while", "until", "for", "tail", "wait", "pause", "cat"))
_AT_ONCE = frozenset(("echo", "printf", "true", "set", "export", "env", "ls", "date", ":", "trap"))


class _SimulatedContainer(Struct, frozen=True):
    """A container, as the file has it."""

    id: ContainerId
    image: str
    said: tuple[str, ...]  # lines of its log
    started_at: datetime
    ends_at: datetime | None  # None: it runs until it is stopped
    exit_code: int = 0
    signal: int = 0
    has_ended: bool = False

    def state(self) -> ContainerState:
        ended = {}
        if self.has_ended and self.ends_at is not None:
            ended = {
                "finished_at": Timestamp(self.ends_at),
                "exit_code": self.exit_code,
                "signal": self.signal,
                "reason": "Error" if self.exit_code else "Completed",
            }
        return ContainerState(
            self.id,
            Phase.EXITED if self.has_ended else Phase.RUNNING,
            Timestamp(self.started_at),
            handle=f"sim://{self.id}",
            image_id=self.image,
            **ended,  # type: ignore[arg-type]
        )


class SimRuntime:
    """Simulates containers, and keeps them in a file."""

    def __init__(self, path: Path, clock: Clock = REAL) -> None:
        self._path = path
        self._clock = clock
        self._containers: dict[ContainerId, _SimulatedContainer] | None = None  # None: not read yet
        self._timers: dict[ContainerId, Timer] = {}
        self._ended: dict[ContainerId, asyncio.Event] = {}
        self._events = LifecycleEvents()
        self._is_saving = False

    @property
    def name(self) -> str:
        """Its name and version."""
        return "sim://1"

    async def containers(self, pod_uid: str = "") -> Sequence[ContainerState]:
        """Return the simulated containers."""
        states = [each.state() for each in self._all().values()]
        return [each for each in states if pod_uid in ("", each.id.pod_uid)]

    def changes(self) -> AsyncIterator[ContainerState]:
        """Yield each container that starts or ends, from now on."""
        return self._events.follow()

    async def start(self, spec: ContainerSpec) -> ContainerState:
        """Note a container, unless it exists."""
        check_id(spec.id)
        containers = self._all()
        if spec.id not in containers:
            now = self._clock.now()
            end = end_of_container((*spec.command, *spec.args), spec.annotations)
            container = _SimulatedContainer(spec.id, spec.image, _said(spec), now, None)
            if end is not None and end.after_s <= LONG_S:
                ends_at = now + timedelta(seconds=end.after_s)
                container = structs.replace(container, ends_at=ends_at, exit_code=end.code % 256)
            self._put(container)
            self._await(container)
        return containers[spec.id].state()

    async def update(self, id_: ContainerId, limits: ResourceLimits) -> None:
        """Do nothing: there is nothing to limit."""

    async def stats(self) -> Sequence[ContainerStats]:
        """Return nothing: a simulated container uses nothing that could be measured."""
        return ()

    async def stop(self, id_: ContainerId, grace_s: float) -> None:  # noqa: ARG002
        """End a container; a simulated one needs no grace period."""
        self._end(id_, self._clock.now(), STOPPED, TERMINATED)

    async def remove(self, pod_uid: str) -> None:
        """Forget the containers of a pod."""
        for id_ in [id_ for id_ in self._all() if id_.pod_uid == pod_uid]:
            await self.stop(id_, 0)
            self._forget(id_)

    async def forget(self, id_: ContainerId) -> None:
        """Forget one ended container."""
        container = self._all().get(id_)
        if container is not None and container.has_ended:
            self._forget(id_)

    async def logs(self, id_: ContainerId, log_range: LogRange) -> AsyncIterator[bytes]:
        """Yield one line that says what would have run."""
        container = self._all().get(id_)
        if container is None:
            raise RuntimeRefusedError("NotFound", f"there is no container {id_}")
        is_wanted = log_range.since is None or not Timestamp(container.started_at) < log_range.since
        lines = list(container.said) if is_wanted else []
        if log_range.tail_lines is not None:
            lines = lines[max(len(lines) - log_range.tail_lines, 0) :]
        time = f"{container.started_at.isoformat()} " if log_range.has_times else ""
        content = "".join(f"{time}{line}\n" for line in lines).encode()
        yield content[: log_range.bytes_max]
        if log_range.follow and not container.has_ended:
            await self._ended.setdefault(id_, asyncio.Event()).wait()

    async def execute(
        self, id_: ContainerId, command: Sequence[str], *, tty: bool, stdin: bool
    ) -> ExecSession:
        """Refuse: there is nothing to run a command in."""
        del command, tty, stdin
        text = f"container {id_} is simulated: no command can run in it"
        raise RuntimeRefusedError(NOT_SUPPORTED, text)

    async def attach(self, id_: ContainerId, *, stdin: bool, tty: bool) -> ExecSession:
        """Refuse: there is nothing to attach to."""
        del stdin, tty
        raise RuntimeRefusedError(
            NOT_SUPPORTED, f"container {id_} is simulated: nothing runs in it"
        )

    async def close(self) -> None:
        """Stop the timers; the containers stay in the file."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._containers is not None:
            self._write()

    # --- state ------------------------------------------------------------------------------------

    def _all(self) -> dict[ContainerId, _SimulatedContainer]:
        """Return all containers; at first those that an earlier agent left."""
        if self._containers is None:
            self._containers = {each.id: each for each in _read(self._path)}
            for container in list(self._containers.values()):
                self._await(container)
        return self._containers

    def _await(self, container: _SimulatedContainer) -> None:
        """End a container on time; an overdue one ends now, with its proper time."""
        if container.has_ended or container.ends_at is None:
            return
        end = partial(self._end, container.id, container.ends_at, container.exit_code, 0)
        due_s = (container.ends_at - self._clock.now()).total_seconds()
        if due_s <= 0:
            end()
        else:
            self._timers[container.id] = self._clock.call_later(due_s, end)

    def _end(self, id_: ContainerId, at: datetime, code: int, signal: int) -> None:
        container = self._all().get(id_)
        timer = self._timers.pop(id_, None)
        if timer is not None:
            timer.cancel()
        if container is not None and not container.has_ended:
            changes = {"ends_at": at, "exit_code": code, "signal": signal, "has_ended": True}
            self._put(structs.replace(container, **changes))
            self._ended.pop(id_, asyncio.Event()).set()

    def _put(self, container: _SimulatedContainer) -> None:
        self._all()[container.id] = container
        self._events.publish(container.state())
        self._save()

    def _forget(self, id_: ContainerId) -> None:
        self._all().pop(id_, None)
        self._save()

    def _save(self) -> None:
        """Write the file, once for all changes of the same moment."""
        if not self._is_saving:
            self._is_saving = True
            asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        self._is_saving = False
        content = msgspec.json.encode(list(self._all().values()))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Not synced: a machine that loses power loses real containers, too.
        replace_file(self._path, content, is_durable=False)


def _read(path: Path) -> list[_SimulatedContainer]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[_SimulatedContainer])
    except FileNotFoundError:
        return []
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        text = f"{path}: the simulated containers cannot be read: {error}"
        raise RuntimeRefusedError("CreateContainerError", text) from None


def _said(spec: ContainerSpec) -> tuple[str, ...]:
    command = shlex.join((*spec.command, *spec.args)) or "(what the image says)"
    devices = [*spec.cdi_ids, *(each.path for each in spec.edits.device_nodes)]
    more = f", with {', '.join(devices)}" if devices else ""
    return (f"simulated: {spec.image or 'no image'} would run {command}{more}",)


# --- durations ------------------------------------------------------------------------------------


class End(NamedTuple):
    """After how long a pod ends, and with which exit code."""

    after_s: float
    code: int = 0


def end_of(pod: Pod) -> End | None:
    """Return how a pod ends; None if it runs until it is deleted."""
    if pod.spec.restart_policy in ("", "Always"):
        return None
    annotations = pod.metadata.annotations
    if annotations.get(RUNS_FOR) == FOREVER:
        return None
    if (annotated := _annotated_end(annotations)) is not None:
        return annotated
    ends = [_end((*each.command, *each.args)) for each in pod.spec.containers]
    if any(each is None for each in ends):
        return None
    known = [each for each in ends if each is not None]
    worst = End(max(each.after_s for each in known), max(each.code for each in known))
    # A failed container is restarted again and again.
    return None if worst.code and pod.spec.restart_policy == "OnFailure" else worst


def end_of_container(words: tuple[str, ...], annotations: Mapping[str, str]) -> End | None:
    """Return how a container with this command ends; None if it runs until it is stopped."""
    if annotations.get(RUNS_FOR) == FOREVER:
        return None
    return _annotated_end(annotations) or _end(words)


def annotations_for(pod: Pod, container: str) -> dict[str, str]:
    """Return a pod's annotations, with how long a container runs if its pod decides that.

    Init containers end at once; sidecars and containers of pods that always restart do not.
    Ephemeral containers end as their commands say: they are not what the pod is there for.
    """
    annotations = pod.metadata.annotations
    if any(each.name == container for each in pod.spec.ephemeral_containers):
        own = (RUNS_FOR, EXITS_WITH)
        return {key: text for key, text in annotations.items() if key not in own}
    for each in pod.spec.init_containers:
        if each.name == container:
            return {**annotations, RUNS_FOR: FOREVER if each.is_sidecar else "0s", EXITS_WITH: "0"}
    is_restarted = pod.spec.restart_policy in ("", "Always")
    return {**annotations, RUNS_FOR: FOREVER} if is_restarted else {**annotations}


def _annotated_end(annotations: Mapping[str, str]) -> End | None:
    after_s = _seconds(annotations.get(RUNS_FOR, ""))
    if after_s is None:
        return None
    return End(after_s, _code(annotations.get(EXITS_WITH, "0")))


def _end(words: tuple[str, ...]) -> End | None:
    match words:
        case (shell, "-c" | "-ec" | "-exc", text, *_) if _name(shell) in _SHELLS:
            return _script(text)
        case ("sleep", duration):
            seconds = _seconds(duration)
            return None if seconds is None else End(seconds)
        case ("false",):
            return End(0.0, 1)
        case (first, *_) if _name(first) in _FOREVER:
            return None
        case (first, *_) if _name(first) in _AT_ONCE:
            return End(0.0)
    return End(PROGRAM_S)


def _script(text: str) -> End | None:
    """Return how a line of commands ends: one after the other, until one exits."""
    after_s = 0.0
    end: End | None = End(0.0)
    for part in _BETWEEN.split(text[:TEXT_MAX]):
        try:
            words = tuple(shlex.split(part, comments=True))
        except ValueError:
            words = (part,)
        if not words:
            continue
        if words[0] == "exit":
            return End(after_s, _code(words[1] if len(words) > 1 else "0"))
        end = _end(words)
        if end is None:
            return None
        after_s += end.after_s
    return End(after_s, 0 if end is None else end.code)


def _name(program: str) -> str:
    return program.rpartition("/")[2]


def _code(text: str) -> int:
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0


def _seconds(text: str) -> float | None:
    found = _DURATION.fullmatch(text)
    return None if found is None else float(found[1]) * _UNITS_S[found[2] or "s"]
