"""Runs jobs: hands out what they ask for, and lets them go on with the answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

from msgspec import Struct

from mooring.client.writes import Write
from mooring.scheduler.cluster import ClaimKey
from mooring.scheduler.live.asks import Answer, Read, Sleep, Steps, Turn, Until
from mooring.scheduler.live.hints import Topic


class Job(Struct, eq=False):
    """Steps that are under way, and what is done with their result."""

    steps: Steps[Any]
    finished: Callable[[Any], None]
    waits: int = 0  # tells whether a timer or topic still counts
    topics: tuple[Topic, ...] = ()
    is_idle: bool = False  # it waits for long, and keeps nobody from starting


class Request(Struct, frozen=True, eq=False):
    """Something to be read or written for a job."""

    ask: Read | Write
    job: Job


class Jobs:
    """All jobs that are under way."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.running = 0
        self.idle = 0  # of these, that wait for long
        self._outgoing: deque[Request] = deque()
        self._turns: dict[ClaimKey, deque[Job]] = {}  # whoever has the turn is not in it
        self._timers: list[tuple[float, int, Job, int]] = []
        self._numbers = count()
        self._waiting: dict[Topic, dict[int, Job]] = {}
        self._ready: deque[tuple[Job, Any]] = deque()
        self._is_running = False
        self._is_closed = False

    def close(self) -> None:
        """Let no job go on any more; what they were to write is not written."""
        self._is_closed = True

    def start(self, steps: Steps[Any], finished: Callable[[Any], None] = lambda _: None) -> None:
        """Begin a job; it runs up to its first ask."""
        self.running += 1
        self._go(Job(steps, finished), None)

    def outgoing(self) -> list[Request]:
        """Return what is to be carried out, each once."""
        found = list(self._outgoing)
        self._outgoing.clear()
        return found

    def answer(self, request: Request, answer: Answer) -> None:
        """Let a job go on with what became of its ask."""
        self._go(request.job, answer)

    def notify(self, topic: Topic) -> None:
        """Let jobs go on that wait for this."""
        for job in tuple(self._waiting.get(topic, {}).values()):
            self._wake(job)

    def tick(self, now_s: float) -> None:
        """Let jobs go on whose time has come."""
        self.now_s = now_s
        while self._timers and self._timers[0][0] <= now_s:
            _, _, job, waits = heappop(self._timers)
            if job.waits == waits:
                self._wake(job)

    def next_s(self) -> float | None:
        """Return when the next job's time comes."""
        return self._timers[0][0] if self._timers else None

    # --- within -----------------------------------------------------------------------------------

    def _wake(self, job: Job) -> None:
        job.waits += 1
        if job.is_idle:
            job.is_idle = False
            self.idle -= 1
        for topic in job.topics:
            waiting = self._waiting[topic]
            waiting.pop(id(job), None)
            if not waiting:
                del self._waiting[topic]
        job.topics = ()
        self._go(job, None)

    def _go(self, job: Job, answer: Any) -> None:
        """Let a job go on, and all that this makes ready."""
        self._ready.append((job, answer))
        if self._is_running or self._is_closed:
            return
        self._is_running = True
        try:
            while self._ready:
                self._advance(*self._ready.popleft())
        finally:
            self._is_running = False

    def _advance(self, job: Job, answer: Any) -> None:
        try:
            ask = job.steps.send(answer)
        except StopIteration as stop:
            self.running -= 1
            job.finished(stop.value)
            return
        match ask:
            case Turn(key=key):
                self._take_turn(job, key)
            case Sleep(for_s=for_s):
                self._set_timer(job, for_s)
            case Until(topics=topics, for_s=for_s, is_long=is_long):
                job.topics = topics
                job.is_idle = is_long
                self.idle += is_long
                for topic in topics:
                    self._waiting.setdefault(topic, {})[id(job)] = job
                self._set_timer(job, for_s)
            case _:
                self._outgoing.append(Request(ask, job))

    def _set_timer(self, job: Job, for_s: float) -> None:
        heappush(self._timers, (self.now_s + for_s, next(self._numbers), job, job.waits))

    def _take_turn(self, job: Job, key: ClaimKey) -> None:
        others = self._turns.get(key)
        if others is None:
            self._turns[key] = deque()
            self._ready.append((job, lambda: self._end_turn(key)))
        else:
            others.append(job)

    def _end_turn(self, key: ClaimKey) -> None:
        others = self._turns[key]
        if others:
            self._go(others.popleft(), lambda: self._end_turn(key))
        else:
            del self._turns[key]
