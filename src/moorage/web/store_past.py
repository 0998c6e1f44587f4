"""The past that a store still keeps: what happened before somebody looked.

    compacted ──► state ──► change … change ──► first state of the page's own history
     is gone      └────────── read once ─────┘

A store knows revisions and no times. Each write leaves one in its object: that of its creation or
of a field manager. So a change happened at the newest time that was written until then; the leases
of nodes, which are renewed every few seconds, keep it going. Deletions take the time of the write
before them, and the first state takes the newest time in it.

It is read when it is asked for, so that it is not in the way of the first picture and the first
questions, or a while later, before the store compacts it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct

from moorage.api.errors import ApiError
from moorage.api.meta import without_managed_fields
from moorage.api.timestamp import Timestamp
from moorage.apiserver.http.status import StatusError
from moorage.apiserver.resources import Resource, Resources
from moorage.apiserver.storage.registry import Registry
from moorage.insight.history import Change, History
from moorage.insight.snapshot.snapshot import FIELDS
from moorage.store.contract import Entry, Event, Progress, Put, Store, Watch
from moorage.store.errors import StoreError, TooOldError
from moorage.web.feed import Feed, ObjectKey

LOG = logging.getLogger(__name__)
PREFIX: Final = "/registry/"
CHANGES_MAX: Final = 20_000  # of all kinds
BYTES_MAX: Final = 96 * 2**20  # of the values that are read
TRIES_MAX: Final = 12
PAGE: Final = 2000
READ_S_MAX: Final = 60.0
UNASKED_S: Final = 15.0


async def read_past(feed: Feed, registry: Registry, resources: Resources) -> None:
    """Let the history of a feed begin with what the store still keeps, if that can be read."""
    await feed.is_ready.wait()
    with suppress(TimeoutError):
        await asyncio.wait_for(feed.wants_past.wait(), UNASKED_S)
    history = feed.history
    try:
        if history is not None and len(history):
            async with asyncio.timeout(READ_S_MAX):
                feed.begin_before(await _past(feed, history, registry, resources))
    except (StoreError, TimeoutError) as error:
        LOG.info("the history begins with its first viewer: %s", error)
    except Exception:
        LOG.exception("the history begins with its first viewer")
    finally:
        feed.has_past.set()


async def _past(
    feed: Feed, history: History, registry: Registry, resources: Resources
) -> History | None:
    """Return the history up to the first state of another one, None if nothing of it is kept."""
    end, time = history.first
    end = min(end, await registry.store.revision() + 1)
    begin = max(0, end - CHANGES_MAX)
    for _ in range(TRIES_MAX):
        if begin >= end - 1:
            break
        reader = _Reader(registry, resources, feed.objects, time)
        try:
            await reader.read(begin, end)
        except TooOldError as error:
            oldest = error.compacted or await _oldest_kept(registry.store, begin + 1, end)
            begin = max(begin, oldest)
        except _TooMuchError:
            begin = (begin + end) // 2
        else:
            return await asyncio.to_thread(History, reader.changes)
    return None


async def _oldest_kept(store: Store, low: int, high: int) -> int:
    """Return the oldest revision that a store keeps, for one that does not say so."""
    while low < high:
        middle = (low + high) // 2
        try:
            await store.list(PREFIX, limit=1, at=middle)
            high = middle
        except TooOldError:
            low = middle + 1
    return low


class _TooMuchError(Exception):
    """The values have more bytes than are read."""


class _Reader:
    """Reads a state and the changes after it."""

    def __init__(
        self,
        registry: Registry,
        resources: Resources,
        known: Mapping[ObjectKey, Any],
        until: Timestamp,
    ) -> None:
        """Take the objects of today: those that have not changed since are the same."""
        self._registry = registry
        self._shown = {
            resource.prefix: resource
            for resource in resources.all()
            if resource.definition is None and resource.hub_struct in FIELDS
        }
        self._known = {
            (*key, value.metadata.resource_version): value for key, value in known.items()
        }
        self._until = until
        self._time: Timestamp | None = None
        self._bytes = 0
        self.changes: list[Change] = []

    async def read(self, begin: int, end: int) -> None:
        """Read the state at a revision and the changes after it, before another revision."""
        store = self._registry.store
        # First the watch, because it says which revision is the oldest; it keeps what comes.
        watch = await store.watch(PREFIX, after=begin)
        try:
            batch = await watch.batch()
            values = await self._state(store, begin)
            newest = self._time
            await asyncio.to_thread(self._take, batch, end)
            first = newest or (self.changes[0].time if self.changes else self._until)
            self.changes.insert(0, Change(begin, first, tuple(values)))
            await self._follow(watch, batch, end)
        finally:
            watch.close()

    async def _follow(self, watch: Watch, batch: Sequence[Event], end: int) -> None:
        while batch[-1].revision < end - 1:
            batch = await watch.batch()
            await asyncio.to_thread(self._take, batch, end)

    async def _state(self, store: Store, revision: int) -> list[Any]:
        found: list[Any] = []
        for resource in self._shown.values():
            after, remaining = "", 1
            while remaining:
                page = await store.list(resource.prefix, limit=PAGE, after=after, at=revision)
                found += await asyncio.to_thread(self._values, resource, page.entries)
                after, remaining = page.entries[-1].key if page.entries else "", page.remaining
        return found

    def _values(self, resource: Resource, entries: Iterable[Entry]) -> list[Any]:
        values = []
        for entry in entries:
            self._note_time(entry.value)
            value = self._value(resource, entry)
            if value is not None:
                values.append(value)
        return values

    def _value(self, resource: Resource, entry: Entry) -> Any:
        """Return the object of an entry, None if it cannot be read."""
        key = (*_key(resource, entry), str(entry.revision))
        known = self._known.get(key)
        if known is not None:
            return known
        self._bytes += len(entry.value)
        if self._bytes > BYTES_MAX:
            raise _TooMuchError
        try:
            return without_managed_fields(self._registry.read(resource, entry))
        except StatusError:
            return None

    def _take(self, events: Sequence[Event], end: int) -> None:
        for event in events:
            if isinstance(event, Progress) or event.revision >= end:
                continue
            if isinstance(event, Put):
                self._note_time(event.entry.value)
            resource = self._shown.get("/".join(event.key.split("/", 4)[:4]) + "/")
            if resource is None:
                continue
            time = self._time or self._until
            if isinstance(event, Put):
                value = self._value(resource, event.entry)
                if value is not None:
                    self.changes.append(Change(event.revision, time, (value,)))
            else:
                key = _key(resource, event.previous)
                self.changes.append(Change(event.revision, time, (), (key,)))

    def _note_time(self, value: bytes) -> None:
        """Let the time go on to the newest that an object tells, but not back and not too far."""
        for text in _times(value):
            try:
                time = Timestamp.parse(text)
            except ApiError:
                continue
            if not self._until < time and (self._time is None or self._time < time):
                self._time = time


def _key(resource: Resource, entry: Entry) -> ObjectKey:
    namespace, _, name = entry.key.removeprefix(resource.prefix).rpartition("/")
    return resource.any_kind.name, namespace, name


# --- the times of an object -----------------------------------------------------------------------


class _Manager(Struct):
    time: str | None = None


class _Metadata(Struct, rename="camel"):
    creation_timestamp: str | None = None
    managed_fields: list[_Manager] = []


class _Dated(Struct):
    metadata: _Metadata


_DATED = msgspec.json.Decoder(_Dated)


def _times(value: bytes) -> list[str]:
    try:
        found = _DATED.decode(value).metadata
    except msgspec.DecodeError:
        return []
    times = (found.creation_timestamp, *(each.time for each in found.managed_fields))
    return [each for each in times if each]
