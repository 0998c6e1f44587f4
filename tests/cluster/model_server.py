"""A server in memory with watches, for whole programs: objects go in and out, and nothing is JSON.

It counts requests, and measures the CPU time that is its own, so that the rest is the programs'.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from time import process_time
from typing import Any

from msgspec.structs import replace

from moorage.api.core.namespace import Binding
from moorage.api.core.pod import Pod
from moorage.api.timestamp import Timestamp
from moorage.client.contract import Added, Event, ObjectList, Removed
from moorage.client.errors import (
    AlreadyExistsError,
    ClientError,
    ConflictError,
    NotFoundError,
)
from moorage.client.writes import Apply, Create, Delete, Patch, Update
from moorage.controllers.controller import ObjectChange
from tests.controllers.model import Model, RefusedError

ERRORS: dict[str, type[ClientError]] = {
    "AlreadyExists": AlreadyExistsError,
    "Conflict": ConflictError,
    "NotFound": NotFoundError,
}


class ModelServer:
    """A server, and the client of all programs."""

    def __init__(self, now: Timestamp) -> None:
        self.model = Model(now)
        self.model.follow = self._follow
        self.requests: Counter[str] = Counter()  # by what is done to which kind
        self.bound: set[str] = set()  # uids of pods
        self.spent_s = 0.0  # CPU time of the server
        self._streams: dict[type[Any], list[_Stream]] = {}

    # --- the client -----------------------------------------------------------------------------

    async def get(self, struct: type[Any], namespace: str, name: str) -> Any:
        """Return an object, or None."""
        self.requests[f"get {struct.__name__}"] += 1
        await asyncio.sleep(0)
        return self.model.get(struct, namespace, name)

    async def list(self, struct: type[Any], namespace: str = "", **_: Any) -> ObjectList:
        """Return all objects of a kind."""
        del namespace
        self.requests[f"list {struct.__name__}"] += 1
        return ObjectList(tuple(self.model.objects.list(struct)), str(self.model.revision))

    async def watch(
        self, struct: type[Any], namespace: str = "", *, after: str, **_: Any
    ) -> AsyncIterator[Event]:
        """Yield what happens from now on."""
        del namespace, after
        stream = _Stream()
        self._streams.setdefault(struct, []).append(stream)
        try:
            while True:
                for event in await stream.take():
                    yield event
        finally:
            self._streams[struct].remove(stream)

    async def write(self, write: Create | Update | Patch | Apply | Delete) -> Any:
        """Carry out a write; its answer takes a turn of the event loop."""
        await asyncio.sleep(0)
        start_s = process_time()
        try:
            return self._write(write)
        finally:
            self.spent_s += process_time() - start_s

    # --- within ---------------------------------------------------------------------------------

    def _write(self, write: Create | Update | Patch | Apply | Delete) -> Any:
        self.requests[_name(write)] += 1
        if isinstance(write, Create) and write.value.kind == "Event":
            return write.value  # nobody reads events
        try:
            return self.model.write(write)
        except RefusedError as error:
            reason, message = error.refused.reason, error.refused.message
            raise ERRORS.get(reason, ClientError)(message, reason=reason) from None

    def _follow(self, change: ObjectChange) -> None:
        value = change.value
        event: Event = Added(value)
        if change.new is None:
            revision = str(self.model.revision)
            metadata = replace(value.metadata, resource_version=revision)
            event = Removed(replace(value, metadata=metadata))
        if isinstance(value, Pod) and value.spec.node_name:
            self.bound.add(value.metadata.uid)
        for stream in self._streams.get(type(value), ()):
            stream.put(event)


class _Stream:
    """The events of a watch."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._waiting: asyncio.Future[None] | None = None

    def put(self, event: Event) -> None:
        self._events.append(event)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def take(self) -> list[Event]:
        """Wait for events, and return all that there are."""
        if not self._events:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        events, self._events = self._events, []
        return events


def _name(write: Create | Update | Patch | Apply | Delete) -> str:
    verb = type(write).__name__.lower()
    part = getattr(write, "subresource", "")
    if isinstance(write, Update) and write.with_status:
        part = "and status"
    if isinstance(write, Create | Update):
        kind = "Pod/binding" if isinstance(write.value, Binding) else type(write.value).__name__
    else:
        kind = write.target.struct.__name__
    return f"{verb} {kind}" + (f"/{part}" if part else "")
