"""Containers on paper: they run for as long as their commands say, and nothing happens.

How long a container runs and how it ends is said by `mooring.node.runtime.durations`. What is on
paper is kept in a file, so that an agent that starts again finds its containers, and those that
have ended meanwhile have ended in time.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from mooring.api.timestamp import Timestamp
from mooring.kit.clock import REAL, Clock, Timer
from mooring.node.runtime.contract import (
    NOT_SUPPORTED,
    ContainerId,
    ContainerSpec,
    ContainerState,
    ExecSession,
    LogRange,
    Phase,
    RuntimeRefusedError,
    check_id,
)
from mooring.node.runtime.durations import end_of_container
from mooring.node.runtime.telling import Teller

STOPPED = 143  # ended by SIGTERM
TERMINATED = 15
LONG_S = 10 * 365 * 86400.0  # what runs longer never ends


class _Paper(Struct, frozen=True):
    """A container, as it is written down."""

    id: ContainerId
    image: str
    said: tuple[str, ...]  # its log
    started_at: datetime
    ends_at: datetime | None  # None: it runs until it is stopped
    exit_code: int = 0
    signal: int = 0
    has_ended: bool = False

    def state(self) -> ContainerState:
        """Return what is known of it."""
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
    """Keeps containers on paper."""

    def __init__(self, path: Path, clock: Clock = REAL) -> None:
        self._path = path
        self._clock = clock
        self._papers: dict[ContainerId, _Paper] | None = None  # None: not read yet
        self._timers: dict[ContainerId, Timer] = {}
        self._ended: dict[ContainerId, asyncio.Event] = {}
        self._teller = Teller()
        self._is_saving = False

    @property
    def name(self) -> str:
        """What it is called."""
        return "sim://1"

    async def containers(self, pod_uid: str = "") -> Sequence[ContainerState]:
        """Return the containers on paper."""
        states = [each.state() for each in self._all().values()]
        return [each for each in states if pod_uid in ("", each.id.pod_uid)]

    def changes(self) -> AsyncIterator[ContainerState]:
        """Yield each container that starts or ends, from now on."""
        return self._teller.follow()

    async def start(self, spec: ContainerSpec) -> ContainerState:
        """Write a container down, unless it is there."""
        check_id(spec.id)
        papers = self._all()
        if spec.id not in papers:
            now = self._clock.now()
            end = end_of_container((*spec.command, *spec.args), spec.annotations)
            if end is None or end.after_s > LONG_S:
                paper = _Paper(spec.id, spec.image, _said(spec), now, None)
            else:
                ends_at = now + timedelta(seconds=end.after_s)
                paper = _Paper(spec.id, spec.image, _said(spec), now, ends_at, end.code % 256)
            self._put(paper)
            self._await(paper)
        return papers[spec.id].state()

    async def stop(self, id_: ContainerId, grace_s: float) -> None:  # noqa: ARG002
        """End a container; on paper none needs its grace."""
        self._end(id_, self._clock.now(), STOPPED, TERMINATED)

    async def remove(self, pod_uid: str) -> None:
        """Forget the containers of a pod."""
        for id_ in [id_ for id_ in self._all() if id_.pod_uid == pod_uid]:
            await self.stop(id_, 0)
            self._forget(id_)

    async def forget(self, id_: ContainerId) -> None:
        """Forget one ended container."""
        paper = self._all().get(id_)
        if paper is not None and paper.has_ended:
            self._forget(id_)

    async def logs(self, id_: ContainerId, wanted: LogRange) -> AsyncIterator[bytes]:
        """Yield what would have run."""
        paper = self._all().get(id_)
        if paper is None:
            raise RuntimeRefusedError("NotFound", f"there is no container {id_}")
        is_wanted = wanted.since is None or not Timestamp(paper.started_at) < wanted.since
        lines = list(paper.said) if is_wanted else []
        if wanted.tail_lines is not None:
            lines = lines[max(len(lines) - wanted.tail_lines, 0) :]
        time = f"{paper.started_at.isoformat()} " if wanted.has_times else ""
        content = "".join(f"{time}{line}\n" for line in lines).encode()
        yield content[: wanted.bytes_max]
        if wanted.follow and not paper.has_ended:
            await self._ended.setdefault(id_, asyncio.Event()).wait()

    async def execute(
        self, id_: ContainerId, command: Sequence[str], *, tty: bool, stdin: bool
    ) -> ExecSession:
        """Refuse: there is nothing to run a command in."""
        del command, tty, stdin
        text = f"container {id_} is simulated: no command can run in it"
        raise RuntimeRefusedError(NOT_SUPPORTED, text)

    async def attach(self, id_: ContainerId, *, stdin: bool, tty: bool) -> ExecSession:
        """Refuse: nothing runs that could be told something."""
        del stdin, tty
        raise RuntimeRefusedError(
            NOT_SUPPORTED, f"container {id_} is simulated: nothing runs in it"
        )

    async def close(self) -> None:
        """Let go of the containers; they stay on paper."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._papers is not None:
            self._write()

    # --- paper --------------------------------------------------------------------------------

    def _all(self) -> dict[ContainerId, _Paper]:
        """Return what is on paper; at first what another agent left there."""
        if self._papers is None:
            self._papers = {each.id: each for each in _read(self._path)}
            for paper in list(self._papers.values()):
                self._await(paper)
        return self._papers

    def _await(self, paper: _Paper) -> None:
        """Have a container end in time; one that is overdue ends now, as of then."""
        if paper.has_ended or paper.ends_at is None:
            return
        due_s = (paper.ends_at - self._clock.now()).total_seconds()
        if due_s <= 0:
            self._end(paper.id, paper.ends_at, paper.exit_code, 0)
        else:
            self._timers[paper.id] = self._clock.call_later(due_s, lambda: self._end_in_time(paper))

    def _end_in_time(self, paper: _Paper) -> None:
        assert paper.ends_at is not None
        self._end(paper.id, paper.ends_at, paper.exit_code, 0)

    def _end(self, id_: ContainerId, at: datetime, code: int, signal: int) -> None:
        paper = self._all().get(id_)
        timer = self._timers.pop(id_, None)
        if timer is not None:
            timer.cancel()
        if paper is not None and not paper.has_ended:
            changes = {"ends_at": at, "exit_code": code, "signal": signal, "has_ended": True}
            self._put(structs.replace(paper, **changes))
            self._ended.pop(id_, asyncio.Event()).set()

    def _put(self, paper: _Paper) -> None:
        self._all()[paper.id] = paper
        self._teller.tell(paper.state())
        self._save()

    def _forget(self, id_: ContainerId) -> None:
        self._all().pop(id_, None)
        self._save()

    def _save(self) -> None:
        """Write all down, once for what happens in the same moment."""
        if not self._is_saving:
            self._is_saving = True
            asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        self._is_saving = False
        content = msgspec.json.encode(list(self._all().values()))
        new = self._path.with_name(f".{self._path.name}.new")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(content)
        new.replace(self._path)


def _read(path: Path) -> list[_Paper]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[_Paper])
    except FileNotFoundError:
        return []
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        text = f"{path}: what is on paper cannot be read: {error}"
        raise RuntimeRefusedError("CreateContainerError", text) from None


def _said(spec: ContainerSpec) -> tuple[str, ...]:
    command = shlex.join((*spec.command, *spec.args)) or "(what the image says)"
    devices = [*spec.cdi_ids, *(each.path for each in spec.edits.device_nodes)]
    given = f", with {', '.join(devices)}" if devices else ""
    return (f"simulated: {spec.image or 'no image'} would run {command}{given}",)
