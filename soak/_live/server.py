"""The server in memory, whose answers and changes wait until somebody lets them through.

    program ──► request ──► let through: carried out, refused, or carried out and not answered
    program ◄── watch ◄──── let through: some changes of one kind, an end, or "too old"

# ghost: a request of a program that is dead; it may be carried out all the same, later
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.scheduling import PodGroup
from moorage.api.timestamp import Timestamp
from moorage.client.contract import Added, Event, ObjectList, Removed
from moorage.client.errors import (
    AlreadyExistsError,
    ClientError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)
from moorage.client.writes import Apply, Create, Delete, Patch, RecordEvent, Update
from moorage.controllers.controller import ObjectChange
from moorage.kit.clock import ManualClock
from tests.controllers.model import Model, RefusedError

Sent = Create | Update | Patch | Apply | Delete

ERRORS: dict[str, tuple[type[ClientError], int]] = {
    "Conflict": (ConflictError, 409),
    "AlreadyExists": (AlreadyExistsError, 409),
    "NotFound": (NotFoundError, 404),
    "Forbidden": (ForbiddenError, 403),
    "TooManyRequests": (TooManyRequestsError, 429),
    "Unavailable": (UnavailableError, 503),
}
BATCH_MAX = 6  # changes that a watch brings at once


def error_of(reason: str, message: str) -> ClientError:
    """Return the exception that a client raises."""
    struct, code = ERRORS.get(reason, (ClientError, 422))
    return struct(message, code=code, reason="" if reason == "Unavailable" else reason)


class Request:
    """Something that a program waits for."""

    def __init__(self, client: SimClient, call: Callable[[], Any], sent: Sent | None) -> None:
        self.client = client
        self.call = call
        self.sent = sent
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    @property
    def is_wanted(self) -> bool:
        """Whether somebody still waits for the answer."""
        return not self.answer.done()


class Stream:
    """A watch of one kind."""

    def __init__(self, client: SimClient, changes: list[tuple[int, Event]], place: int) -> None:
        self.client = client
        self._changes = changes
        self._place = place
        self._waiting: asyncio.Future[list[Event]] | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether somebody waits for changes."""
        return self._waiting is not None and not self._waiting.done()

    @property
    def has_changes(self) -> bool:
        """Whether something can be let through."""
        return self.is_waiting and self._place < len(self._changes)

    async def take(self) -> list[Event]:
        """Wait for changes; an empty list is the end."""
        self._waiting = asyncio.get_running_loop().create_future()
        return await self._waiting

    def let_through(self, number: int) -> None:
        """Bring some changes."""
        assert self._waiting is not None
        end = min(self._place + number, len(self._changes))
        events = [event for _, event in self._changes[self._place : end]]
        self._place = end
        self._waiting.set_result(events)

    def cut(self, error: ClientError | None) -> None:
        """End the watch, with an error or without."""
        assert self._waiting is not None
        if error is None:
            self._waiting.set_result([])
        else:
            self._waiting.set_exception(error)


class Server:
    """Objects, requests and watches."""

    def __init__(self, random: Random, clock: ManualClock, used: frozenset[type[Any]]) -> None:
        self.random = random
        self.clock = clock
        self.model = Model(Timestamp(clock.now()).truncated())
        self.model.follow = self._follow
        self.counts: Counter[str] = Counter()
        self.requests: list[Request] = []
        self.streams: list[Stream] = []
        self.faults = 0.0  # the part of requests that go wrong
        self.checks: list[Callable[[ObjectChange], None]] = []
        self.author = ""  # who writes at the moment
        self.moved = 0  # the revision of the last change beyond conditions
        self.used = used
        self._changes: dict[type[Any], list[tuple[int, Event]]] = {kind: [] for kind in used}
        self._forgotten = 0  # changes up to this revision can no longer be watched

    # --- steps of the history -------------------------------------------------------------------

    def act(self, sent: Sent, author: str = "") -> Any:
        """Carry out a write now, for someone outside."""
        self.author = author
        return self.write(sent)

    def serve(self) -> bool:
        """Let one request or some changes of a watch through; False if nothing waits."""
        waiting = [each for each in self.streams if each.has_changes]
        number = len(self.requests) + len(waiting)
        if not number:
            return False
        chosen = self.random.randrange(number)
        if chosen < len(self.requests):
            self._answer(self.requests.pop(chosen))
        else:
            waiting[chosen - len(self.requests)].let_through(self.random.randint(1, BATCH_MAX))
        return True

    def cut(self, *, is_forgotten: bool) -> None:
        """Cut some watches off; with what happened meanwhile forgotten, or not."""
        if is_forgotten:
            self._forgotten = self.model.revision
        for each in self.streams:
            if each.is_waiting and self.random.random() < 0.7:
                expired = ExpiredError("too old", code=410, reason="Expired")
                lost = error_of("Unavailable", "the watch was cut off")
                each.cut(expired if is_forgotten else self.random.choice([None, lost]))
                self.counts["watches cut"] += 1

    def bury(self, client: SimClient) -> None:
        """Forget the pending requests of a dead program, except some writes in flight."""
        client.is_dead = True
        self.streams = [each for each in self.streams if each.client is not client]
        kept = []
        for each in self.requests:
            if each.client is client and (each.sent is None or self.random.random() < 0.5):
                continue
            kept.append(each)
        self.requests = kept

    # --- what programs do -----------------------------------------------------------------------

    async def ask(self, client: SimClient, call: Callable[[], Any], sent: Sent | None) -> Any:
        """Wait until a request is let through."""
        request = Request(client, call, sent)
        self.requests.append(request)
        return await request.answer

    def open(self, client: SimClient, struct: type[Any], after: str) -> Stream:
        """Begin a watch."""
        changes = self._changes.setdefault(struct, [])
        if int(after) < self._forgotten:
            raise ExpiredError("too old", code=410, reason="Expired")
        place = next((n for n, (revision, _) in enumerate(changes) if revision > int(after)), None)
        stream = Stream(client, changes, len(changes) if place is None else place)
        self.streams.append(stream)
        return stream

    def close(self, stream: Stream) -> None:
        """End a watch."""
        if stream in self.streams:
            self.streams.remove(stream)

    def list(self, struct: type[Any]) -> ObjectList:
        """Return all objects of a kind."""
        return ObjectList(tuple(self.model.objects.list(struct)), str(self.model.revision))

    # --- within ---------------------------------------------------------------------------------

    def _answer(self, request: Request) -> None:
        """Carry out a request, or not, and answer it, or not."""
        self.author = request.client.name
        is_ghost = not request.is_wanted
        self.counts["ghosts"] += is_ghost
        trouble = self._trouble(request)
        try:
            if trouble is not None and trouble != "lost":
                raise error_of(trouble, f"trouble: {trouble}")
            value = request.call()
            if trouble == "lost":
                self.counts["lost answers"] += 1
                raise error_of("Unavailable", "trouble: no answer")
        except ClientError as error:
            if not is_ghost:
                request.answer.set_exception(error)
        else:
            if not is_ghost:
                request.answer.set_result(value)

    def _trouble(self, request: Request) -> str | None:
        if self.random.random() >= self.faults:
            return None
        self.counts["faults of the server"] += 1
        if request.sent is None:
            return self.random.choice(["Unavailable", "TooManyRequests"])
        if isinstance(request.sent, Create) and request.sent.value.kind != "Binding":
            return self.random.choice(["lost", "lost", "Unavailable", "Forbidden"])
        return self.random.choice(
            ["lost", "lost", "lost", "Unavailable", "TooManyRequests", "Conflict", "Forbidden"]
        )

    def write(self, sent: Sent) -> Any:
        """Carry out a write now."""
        self.counts["writes"] += 1
        self.counts["displaced"] += _displaces(sent, self.author)
        self.model.now = Timestamp(self.clock.now()).truncated()
        try:
            return self.model.write(sent)
        except RefusedError as error:
            raise error_of(error.refused.reason, error.refused.message) from None

    def _follow(self, change: ObjectChange) -> None:
        struct = type(change.value)
        changes = self._changes.setdefault(struct, [])
        revision = self.model.revision
        if not _only_says(change):
            self.moved = revision
        if change.new is None:
            metadata = replace(change.value.metadata, resource_version=str(revision))
            changes.append((revision, Removed(replace(change.value, metadata=metadata))))
        else:
            changes.append((revision, Added(change.new)))
        for check in self.checks:
            check(change)


class SimClient:
    """A program's client; every request waits until the story lets it through."""

    def __init__(self, server: Server, name: str) -> None:
        self.name = name
        self.is_dead = False
        self._server = server

    async def get(self, struct: type[Any], namespace: str, name: str) -> Any:
        """Return an object, or None."""
        model = self._server.model
        return await self._server.ask(self, lambda: model.get(struct, namespace, name), None)

    async def list(self, struct: type[Any], namespace: str = "", **_: Any) -> ObjectList:
        """Return all objects of a kind."""
        del namespace
        if struct not in self._server.used:  # nobody ever makes one
            return ObjectList((), str(self._server.model.revision))
        page: ObjectList = await self._server.ask(self, lambda: self._server.list(struct), None)
        return page

    async def watch(
        self, struct: type[Any], namespace: str = "", *, after: str, **_: Any
    ) -> AsyncIterator[Event]:
        """Yield what happens."""
        del namespace
        stream = self._server.open(self, struct, after)
        try:
            while events := await stream.take():
                for event in events:
                    yield event
        finally:
            self._server.close(stream)

    async def write(self, write: Sent) -> Any:
        """Carry out a write."""
        assert not isinstance(write, RecordEvent)
        if _is_event(write):  # logged, and of no further consequence
            self._server.counts["events"] += 1
            return None
        return await self._server.ask(self, lambda: self._server.write(write), write)


def _only_says(change: ObjectChange) -> bool:
    """Return whether of a pod or a group nothing but its conditions have changed."""
    old, new = change.old, change.new
    if not isinstance(old, Pod | PodGroup) or not isinstance(new, Pod | PodGroup):
        return False
    version, conditions = new.metadata.resource_version, new.status.conditions
    metadata = replace(old.metadata, resource_version=version)
    return replace(old, metadata=metadata, status=replace(old.status, conditions=conditions)) == new


def _displaces(sent: Sent, author: str) -> bool:
    return isinstance(sent, Delete) and sent.target.struct is Pod and "scheduler" in author


def _is_event(write: Sent) -> bool:
    match write:
        case Create(value=value) | Update(value=value):
            return bool(value.kind == "Event")
        case _:
            return write.target.struct.__name__ == "Event"
