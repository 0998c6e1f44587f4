"""A runtime on paper, with faults on demand, and someone who gives devices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from msgspec.structs import replace

from moorage.api.core import Pod
from moorage.api.timestamp import Timestamp
from moorage.kit.clock import Clock
from moorage.node.contract import DeviceRunOptions, DevicesRefusedError
from moorage.node.runtime.contract import (
    ContainerId,
    ContainerSpec,
    ContainerState,
    ContainerStats,
    LogRange,
    Phase,
    ResourceLimits,
    RuntimeRefusedError,
)

STOPPED, KILLED = 143, 137


class MemorySession:
    """A command that was run beside a container: nothing is said, and it ends at once."""

    def __init__(self, code: int, text: bytes = b"") -> None:
        self._code = code
        self._text = text

    async def write(self, data: bytes) -> None: ...

    async def close_input(self) -> None: ...

    async def resize(self, columns: int, rows: int) -> None: ...

    async def kill(self) -> None: ...

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        if self._text:
            yield 1, self._text

    async def wait(self) -> int:
        return self._code


class MemoryRuntime:
    """Containers that do as their command says: `exit 1`, `sleep 5`, else they run until stopped.

    That two attempts of one container run is a violation, which tests look for at the end.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.title = "memory://1"
        self._states: dict[ContainerId, ContainerState] = {}
        self._queues: list[asyncio.Queue[ContainerState | Exception]] = []
        self._ends: dict[ContainerId, asyncio.Event] = {}
        self.specs: dict[ContainerId, ContainerSpec] = {}
        self.refusals: dict[str, RuntimeRefusedError] = {}  # by container
        self.stubborn: set[str] = set()  # containers that must be killed
        self.unkillable: set[str] = set()  # uids of pods whose containers cannot be removed
        self.answers: dict[str, int] = {}  # exit codes of commands run beside, by the command
        self.asked: list[tuple[str, ...]] = []
        self.limits: dict[ContainerId, ResourceLimits] = {}  # that were changed
        self.log: list[str] = []
        self.trouble: Exception | None = None
        self.slow_s = 0.0  # how long everything takes
        self.violations: list[str] = []

    @property
    def name(self) -> str:
        return self.title

    async def update(self, id_: ContainerId, limits: ResourceLimits) -> None:
        if (refusal := self.refusals.get(id_.name)) is not None:
            raise refusal
        self.log.append(f"update {id_.name}")
        self.limits[id_] = limits

    async def stats(self) -> Sequence[ContainerStats]:
        return [ContainerStats(each.id, 10**9, 1024) for each in self.live()]

    def now(self) -> Timestamp:
        return Timestamp(self.clock.now())

    def state(self, name: str) -> ContainerState | None:
        """Return the last attempt of a container."""
        found = [state for id_, state in self._states.items() if id_.name == name]
        return max(found, key=lambda state: state.id.attempt, default=None)

    def running(self) -> list[str]:
        """Return the names of the containers that run."""
        return sorted(state.id.name for state in self.live())

    def live(self) -> list[ContainerState]:
        """Return the containers that run."""
        return [state for state in self._states.values() if state.phase is Phase.RUNNING]

    async def containers(self, pod_uid: str = "") -> Sequence[ContainerState]:
        if self.trouble is not None:
            raise self.trouble
        states = self._states.values()
        return tuple(each for each in states if pod_uid in ("", each.id.pod_uid))

    async def changes(self) -> AsyncIterator[ContainerState]:
        queue: asyncio.Queue[ContainerState | Exception] = asyncio.Queue()
        self._queues.append(queue)
        try:
            while True:
                each = await queue.get()
                if isinstance(each, Exception):
                    raise each
                yield each
        finally:
            self._queues.remove(queue)

    def fail(self, error: Exception) -> None:
        """Have it fail whoever listens, and whoever asks next."""
        self.trouble = error
        for queue in self._queues:
            queue.put_nowait(error)

    async def start(self, spec: ContainerSpec) -> ContainerState:
        if spec.id in self._states:
            return self._states[spec.id]
        if self.slow_s:
            await self.clock.sleep(self.slow_s)
        if (refusal := self.refusals.get(spec.id.name)) is not None:
            raise refusal
        for id_, state in self._states.items():
            is_same = (id_.pod_uid, id_.name) == (spec.id.pod_uid, spec.id.name)
            if is_same and state.phase is Phase.RUNNING:
                self.violations.append(f"{id_} runs, and {spec.id} is started")
        self.specs[spec.id] = spec
        self.log.append(f"start {spec.id.name}")
        state = ContainerState(spec.id, Phase.RUNNING, self.now(), handle=f"memory://{spec.id}")
        self._put(state)
        match spec.command:
            case ("exit", code):
                self.end(spec.id, int(code))
            case ("missing",):
                self.end(spec.id, 128, reason="StartError")
                return self._states[spec.id]
            case ("sleep", seconds):
                self.clock.call_later(float(seconds), lambda: self.end(spec.id, 0))
        if self.slow_s:
            await self.clock.sleep(self.slow_s)
        return state

    def end(self, id_: ContainerId, code: int, *, reason: str = "") -> None:
        """Have a container end by itself."""
        state = self._states.get(id_)
        if state is None or state.phase is Phase.EXITED:
            return
        reason = reason or ("Error" if code else "Completed")
        self.log.append(f"end {id_.name} {code}")
        ended = replace(state, phase=Phase.EXITED, exit_code=code, reason=reason)
        self._put(replace(ended, finished_at=self.now()))
        if (waited := self._ends.pop(id_, None)) is not None:
            waited.set()

    def _put(self, state: ContainerState) -> None:
        self._states[state.id] = state
        for queue in self._queues:
            queue.put_nowait(state)

    async def stop(self, id_: ContainerId, grace_s: float) -> None:
        if id_.name not in self.stubborn:
            self.end(id_, STOPPED)
        timer = self.clock.call_later(grace_s, lambda: self.end(id_, KILLED))
        while id_ in self._states and self._states[id_].phase is Phase.RUNNING:
            ended = self._ends.setdefault(id_, asyncio.Event())
            await ended.wait()
        timer.cancel()

    async def remove(self, pod_uid: str) -> None:
        self.log.append(f"remove {pod_uid}")
        while pod_uid in self.unkillable:
            await self.clock.sleep(1)
        for id_ in [id_ for id_ in self._states if id_.pod_uid == pod_uid]:
            self.end(id_, KILLED)
            del self._states[id_]

    async def forget(self, id_: ContainerId) -> None:
        self._states.pop(id_, None)

    async def logs(self, id_: ContainerId, log_range: LogRange) -> AsyncIterator[bytes]:
        yield b""

    async def execute(
        self, id_: ContainerId, command: Sequence[str], *, tty: bool, stdin: bool
    ) -> MemorySession:
        self.asked.append(tuple(command))
        self.log.append(f"execute {id_.name} {' '.join(command)}")
        return MemorySession(self.answers.get(" ".join(command), 0), b"said")

    async def attach(self, id_: ContainerId, *, stdin: bool, tty: bool) -> MemorySession:
        self.log.append(f"attach {id_.name}")
        return MemorySession(0, b"said")


class MemoryDevices:
    """Gives devices to pods, and knows who has them."""

    def __init__(self, runtime: MemoryRuntime) -> None:
        self.clock = runtime.clock
        self._runtime = runtime
        self.slow_s = 0.0
        self.prepared: set[str] = set()
        self.refusal = ""
        self.log: list[str] = []

    async def prepare(self, pod: Pod) -> None:
        self.log.append(f"prepare {pod.metadata.name}")
        await self._pause()
        self.prepared.add(pod.metadata.uid)

    def reconcile(self, active: frozenset[str]) -> None:
        """Take back what pods have that an agent before this one knew, as managers do."""
        self.prepared &= active

    def run_options(self, pod: Pod, container: str) -> DeviceRunOptions:
        if pod.metadata.uid not in self.prepared:
            self._runtime.violations.append(f"{container} is started without its devices")
        return DeviceRunOptions(cdi_ids=(f"example.com/gpu={container}",))

    async def before_start(self, pod: Pod, container: str) -> None:
        self.log.append(f"before start {pod.metadata.name}/{container}")

    async def unprepare(self, pod: Pod) -> None:
        self.log.append(f"unprepare {pod.metadata.name}")
        await self._pause()
        if any(each.id.pod_uid == pod.metadata.uid for each in self._runtime.live()):
            self._runtime.violations.append(f"{pod.metadata.name} runs without its devices")
        self.prepared.discard(pod.metadata.uid)

    async def _pause(self) -> None:
        if self.slow_s:
            await self.clock.sleep(self.slow_s)
        if self.refusal:
            raise DevicesRefusedError(self.refusal)
