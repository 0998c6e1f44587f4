"""Effects: reads and writes that the binding cycle and its helpers request, and the runner of them.

A task is a generator. It does nothing itself: it yields an effect and goes on with its result.

    result = yield Update(claim, "status")

Writes are the ones of `moorage.client.writes`. Besides, a task can read an object, take the lock of
a claim, and wait. An `EffectRunner` hands out reads and writes, and resumes tasks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar

from msgspec import Struct

from moorage.client.writes import Target, Write
from moorage.kit.bulkhead import FAULTS
from moorage.scheduler.group_forest import GroupKey
from moorage.scheduler.live.queueing_hints import ClusterEvent
from moorage.scheduler.plugins.claim_needs import ClaimKey

CONFLICT = "Conflict"
NOT_FOUND = "NotFound"
ALREADY_EXISTS = "AlreadyExists"

T = TypeVar("T")


class ReadObject(Struct, frozen=True):
    """Read an object as the server has it; None if it has none."""

    target: Target


class ClaimLock(Struct, frozen=True):
    """Wait for the right to write a claim; the result is the function that unlocks it."""

    key: ClaimKey


class GroupLock(Struct, frozen=True):
    """Wait for the right to write a group's status, in the same way."""

    key: GroupKey


class Sleep(Struct, frozen=True):
    """Go on after a while."""

    for_s: float


class WaitFor(Struct, frozen=True):
    """Go on after one of these events, or after a while."""

    events: tuple[ClusterEvent, ...]
    for_s: float
    is_long: bool = False  # others may start meanwhile, however many wait like this


Effect = ReadObject | Write | ClaimLock | GroupLock | Sleep | WaitFor


class EffectDone(Struct, frozen=True):
    """The effect succeeded: the object that is stored now, if there is one."""

    value: Any = None


class EffectRefused(Struct, frozen=True):
    """The server refused it with a reason; nothing was changed."""

    reason: str
    message: str


class EffectLost(Struct, frozen=True):
    """There was no response: it may have been carried out, or may be still."""

    message: str


Unlock = Callable[[], None]
EffectResult = EffectDone | EffectRefused | EffectLost
# Reads and writes result in an EffectResult, a lock in its Unlock, waits in None.
Steps = Generator[Effect, Any, T]


class EffectTask(Struct, eq=False):
    """Effects in progress, and the callbacks for their results."""

    steps: Steps[Any]
    finished: Callable[[Any], None]
    waits: int = 0  # identifies timers and events that still count
    events: tuple[ClusterEvent, ...] = ()
    is_idle: bool = False  # it waits for long, and keeps nobody from starting

    @property
    def name(self) -> str:
        """What it does, for logs."""
        return getattr(self.steps, "__name__", "")


class EffectRequest(Struct, frozen=True, eq=False):
    """Something to be read or written for a task."""

    effect: ReadObject | Write
    task: EffectTask


class EffectRunner:
    """All tasks that are under way."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.running = 0
        self.idle = 0  # of these, that wait for long
        self._outgoing: deque[EffectRequest] = deque()
        self._locks: dict[
            ClaimKey | GroupKey, deque[EffectTask]
        ] = {}  # who waits for a lock that is taken
        self._timers: list[tuple[float, int, EffectTask, int]] = []
        self._numbers = count()
        self._waiting: dict[ClusterEvent, dict[int, EffectTask]] = {}
        self._ready: deque[tuple[EffectTask, Any]] = deque()
        self._is_running = False
        self._is_closed = False

    def close(self) -> None:
        """Resume no task any more; their pending writes are dropped."""
        self._is_closed = True

    def start(self, steps: Steps[Any], finished: Callable[[Any], None] = lambda _: None) -> None:
        """Begin a task; it runs up to its first effect."""
        self.running += 1
        self._resume(EffectTask(steps, finished), None)

    def outgoing(self) -> list[EffectRequest]:
        """Return the effects to run, each once."""
        if not self._outgoing:
            return []
        found = list(self._outgoing)
        self._outgoing.clear()
        return found

    def answer(self, request: EffectRequest, result: EffectResult) -> None:
        """Resume a task with the result of its effect."""
        self._resume(request.task, result)

    def notify(self, events: Iterable[ClusterEvent]) -> None:
        """Resume the tasks that wait for one of the events, in their order."""
        if not self._waiting:
            return
        for event in events:
            waiting = self._waiting.get(event)
            if waiting:
                for task in tuple(waiting.values()):
                    self._wake(task)

    def tick(self, now_s: float) -> None:
        """Resume the tasks whose time has come."""
        self.now_s = now_s
        while self._timers and self._timers[0][0] <= now_s:
            _, _, task, waits = heappop(self._timers)
            if task.waits == waits:
                self._wake(task)

    def next_s(self) -> float | None:
        """Return when the next task's time comes."""
        return self._timers[0][0] if self._timers else None

    def _wake(self, task: EffectTask) -> None:
        task.waits += 1
        if task.is_idle:
            task.is_idle = False
            self.idle -= 1
        for event in task.events:
            waiting = self._waiting[event]
            waiting.pop(id(task), None)
            if not waiting:
                del self._waiting[event]
        task.events = ()
        self._resume(task, None)

    def _resume(self, task: EffectTask, result: Any) -> None:
        """Resume a task, and all that this makes ready."""
        self._ready.append((task, result))
        if self._is_running or self._is_closed:
            return
        self._is_running = True
        try:
            while self._ready:
                self._advance(*self._ready.popleft())
        finally:
            self._is_running = False

    def _advance(self, task: EffectTask, result: Any) -> None:
        """Resume a task until its next effect; one that fails ends, and no other."""
        try:
            effect = task.steps.send(result)
        except StopIteration as stop:
            self.running -= 1
            with FAULTS.guard("the end of a task", task.name):
                task.finished(stop.value)
            return
        except Exception as error:
            self.running -= 1
            FAULTS.note("a task", task.name, error, "ends")
            return
        match effect:
            case ClaimLock(key=key) | GroupLock(key=key):
                self._lock(task, key)
            case Sleep(for_s=for_s):
                self._set_timer(task, for_s)
            case WaitFor(events=events, for_s=for_s, is_long=is_long):
                task.events = events
                task.is_idle = is_long
                self.idle += is_long
                for event in events:
                    self._waiting.setdefault(event, {})[id(task)] = task
                self._set_timer(task, for_s)
            case _:
                self._outgoing.append(EffectRequest(effect, task))

    def _set_timer(self, task: EffectTask, for_s: float) -> None:
        heappush(self._timers, (self.now_s + for_s, next(self._numbers), task, task.waits))

    def _lock(self, task: EffectTask, key: ClaimKey | GroupKey) -> None:
        others = self._locks.get(key)
        if others is None:
            self._locks[key] = deque()
            self._ready.append((task, lambda: self._unlock(key)))
        else:
            others.append(task)

    def _unlock(self, key: ClaimKey | GroupKey) -> None:
        others = self._locks[key]
        if others:
            self._resume(others.popleft(), lambda: self._unlock(key))
        else:
            del self._locks[key]
