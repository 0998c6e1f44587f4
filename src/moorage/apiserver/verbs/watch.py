"""Watches: changes of the store as events about the selected objects.

    before   after     event
    no       yes       ADDED
    yes      yes       MODIFIED
    yes      no        DELETED, with the old object and the revision of the change
    no       no        none

A watch without a resourceVersion, or with initial events, begins with the current objects as ADDED;
then a bookmark marks their end, if bookmarks are allowed. More bookmarks come every minute, and
shortly before the watch ends.

Events come in batches, as the store has them, so that many changes are sent at once. All watches
share the decoded objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct

from moorage.apiserver.http.status import Status, StatusError, too_new, too_old
from moorage.apiserver.resources import Resource
from moorage.apiserver.storage.registry import Registry, identity_of, with_revision
from moorage.apiserver.verbs.list import (
    AT_ONCE,
    ListOptions,
    ListPage,
    Reading,
    encode_token,
    list_entries,
    read_revision,
    size_of,
)
from moorage.apiserver.verbs.selectors import Selection
from moorage.store.contract import Entry, Event, Progress, Put, Watch
from moorage.store.errors import ClosedError, SlowWatcherError, TooOldError

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
BOOKMARK, ERROR = "BOOKMARK", "ERROR"
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

BOOKMARK_EVERY_S = 60
BOOKMARK_BEFORE_END_S = 2
INITIAL_BATCH = 100  # initial events in one batch
FIRST_PAGE = 10  # initial objects that are read before it is known how large they are
INITIAL_PAGE = 500  # initial objects that are read at once, unless they are large
INITIAL_PAGE_BYTES = 512 * 1024
INITIAL_BATCH_BYTES = 64 * 1024  # of their stored objects, unless one alone has more

TOO_OLD = "too old resource version: {wanted} ({current})"


class WatchOptions(NamedTuple):
    """The options of a watch."""

    revision: str = ""
    allows_bookmarks: bool = False
    wants_initial: bool | None = None
    timeout_s: float | None = None


class WatchEvent(Struct, frozen=True):
    """An event: an object, a bookmark at a revision, or the error that ends the watch."""

    type: str
    value: Any = None
    revision: int = 0
    is_initial_end: bool = False
    status: Status | None = None
    is_change: bool = False  # other watches may send the same event
    size: int = 0  # bytes of the stored object


Batch = Sequence[WatchEvent]


async def open_watch(
    registry: Registry,
    resource: Resource,
    namespace: str,
    selection: Selection,
    options: WatchOptions,
    reading: Reading = AT_ONCE,
) -> AsyncIterator[Batch]:
    """Return the events of a watch, until the store or the caller ends it."""
    wanted = read_revision(options.revision)
    current = await registry.store.revision()
    if options.wants_initial is None and wanted == 0:
        options = options._replace(wants_initial=True)
    if wanted > current and options.wants_initial:
        return _ended(WatchEvent(ERROR, status=too_new(wanted, current).status))
    page = None
    read_page = partial(_read_page, registry, resource, namespace, selection, reading)
    after = min(wanted or current, current)
    if options.wants_initial:
        page = await read_page(FIRST_PAGE, "")
        after = page.revision
    try:
        events = await registry.store.watch(resource.below(namespace), after=after)
    except TooOldError:
        text = TOO_OLD.format(wanted=wanted, current=current)
        return _ended(WatchEvent(ERROR, status=too_old(text).status))
    follower = _Follower(registry, resource, selection, wanted)
    return _events(follower, page, read_page, events, options)


ReadPage = Callable[[int, str], Awaitable[ListPage]]  # with a limit and a continue token


async def _read_page(
    registry: Registry,
    resource: Resource,
    namespace: str,
    selection: Selection,
    reading: Reading,
    limit: int,
    token: str,
) -> ListPage:
    options = ListOptions(limit=limit, continue_=token)
    page = await list_entries(registry, resource, namespace, selection, options, reading)
    return beginning_of(page, resource.below(namespace))


def beginning_of(page: ListPage, prefix: str) -> ListPage:
    """Return the first objects of a page, as many as a client that does not read may hold.

    How large the objects of a page are is known only when it is read.
    """
    size = 0
    for position, entry in enumerate(page.entries):
        size += len(entry.value)
        if position and size > INITIAL_PAGE_BYTES:
            last = page.entries[position - 1].key
            token = encode_token(page.revision, last.removeprefix(prefix))
            return page._replace(entries=page.entries[:position], continue_=token)
    return page


async def _initial(page: ListPage, read_page: ReadPage) -> AsyncIterator[list[Entry]]:
    """Yield the objects at the revision of a page, in batches; read them as the client does.

    A client that does not read holds one page, which is smaller the larger the objects are.
    """
    while True:
        for batch in batches_of(page.entries):
            yield batch
        if not page.continue_:
            return
        bytes_each = size_of(page.entries) // len(page.entries) + 1
        limit = max(1, min(INITIAL_PAGE_BYTES // bytes_each, INITIAL_PAGE))
        page = await read_page(limit, page.continue_)


async def _ended(notice: WatchEvent) -> AsyncIterator[Batch]:
    yield (notice,)


async def _events(
    follower: _Follower,
    page: ListPage | None,
    read_page: ReadPage,
    events: Watch,
    options: WatchOptions,
) -> AsyncIterator[Batch]:
    timers = _Timers(events, options)
    try:
        if page is not None:
            revision, batches = page.revision, _initial(page, read_page)
            del page  # It may be large, and a watch may be long.
            async for batch in batches:
                yield follower.initial(batch)
            if options.wants_initial and options.allows_bookmarks:
                yield (WatchEvent(BOOKMARK, revision=revision, is_initial_end=True),)
        while True:
            notices = follower.notices(await events.batch())
            if not options.allows_bookmarks:
                notices = [notice for notice in notices if notice.type != BOOKMARK]
            if notices:
                yield notices
    except SlowWatcherError:
        # The client did not keep up; it lists again.
        yield (WatchEvent(ERROR, status=too_old("the watch did not keep up").status),)
    except StatusError as error:  # The history went while the client read the initial objects.
        yield (WatchEvent(ERROR, status=error.status),)
    except ClosedError:
        return  # Its time is up, or the server stops; clients reconnect.
    finally:
        timers.cancel()
        events.close()


def batches_of(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Yield entries in batches that one turn of the event loop can take."""
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        if batch and (len(batch) == INITIAL_BATCH or size + len(entry.value) > INITIAL_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += len(entry.value)
    if batch:
        yield batch


class _Timers:
    """Requests bookmarks, so that clients need not go far back, and ends the watch in time."""

    def __init__(self, events: Watch, options: WatchOptions) -> None:
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._handles: dict[str, asyncio.TimerHandle] = {}
        if options.allows_bookmarks:
            self._tick()
        if options.timeout_s is not None:
            self._handles["end"] = self._loop.call_later(options.timeout_s, events.close)
        if options.allows_bookmarks and options.timeout_s is not None:
            last_s = options.timeout_s - BOOKMARK_BEFORE_END_S
            if last_s > 0:
                self._handles["last"] = self._loop.call_later(last_s, events.request_progress)

    def cancel(self) -> None:
        """Cancel all timers."""
        for handle in self._handles.values():
            handle.cancel()

    def _tick(self) -> None:
        if "tick" in self._handles:
            self._events.request_progress()
        self._handles["tick"] = self._loop.call_later(BOOKMARK_EVERY_S, self._tick)


class _Follower:
    """Turns changes into events about the selected objects."""

    def __init__(
        self, registry: Registry, resource: Resource, selection: Selection, wanted: int
    ) -> None:
        self._wanted = wanted  # may be in the future: earlier changes are skipped
        self._registry = registry
        self._resource = resource
        self._selection = selection
        self._is_all = selection.is_everything

    def initial(self, entries: Sequence[Entry]) -> list[WatchEvent]:
        """Return the events of objects that were there when the watch began."""
        sizes = {entry.revision: len(entry.value) for entry in entries}
        values = self._registry.complete(self._resource, entries).values
        revisions = [int(each.metadata.resource_version) for each in values]
        return [
            WatchEvent(ADDED, each, revision, size=sizes[revision])
            for each, revision in zip(values, revisions, strict=True)
        ]

    def notices(self, events: Iterable[Event]) -> list[WatchEvent]:
        """Return the events of changes."""
        return [notice for notice in map(self.notice, events) if notice is not None]

    def notice(self, event: Event) -> WatchEvent | None:
        """Return the event of a change; None if it is not selected."""
        if isinstance(event, Progress):
            return WatchEvent(BOOKMARK, revision=event.revision)
        revision = event.revision
        if revision <= self._wanted:
            return None
        if isinstance(event, Put):
            return self._put(event.entry, event.previous, revision)
        previous = event.previous
        old = self._registry.find_readable(self._resource, previous)
        if old is None:  # Clients may have an earlier version of it.
            old = identity_of(self._resource, previous)
        elif not self._selection.means(old, self._resource):
            return None
        return self._gone(old, revision, len(previous.value))

    def _put(self, entry: Entry, previous: Entry | None, revision: int) -> WatchEvent | None:
        new = self._registry.find_readable(self._resource, entry)
        if new is None:
            return None  # Clients keep the last version: it is not gone.
        size = len(entry.value)
        if self._is_all:
            kind = ADDED if previous is None else MODIFIED
            return WatchEvent(kind, new, revision, False, None, True, size)
        old = None if previous is None else self._selected(previous)
        if self._selection.means(new, self._resource):
            kind = ADDED if old is None else MODIFIED
            return WatchEvent(kind, new, revision, False, None, True, size)
        if previous is None or old is None:
            return None
        return self._gone(old, revision, len(previous.value))

    def _gone(self, old: Any, revision: int, size: int) -> WatchEvent:
        gone = with_revision(old, revision)
        return WatchEvent(DELETED, gone, revision, is_change=True, size=size)

    def _selected(self, entry: Entry) -> Any | None:
        value = self._registry.find_readable(self._resource, entry)
        if value is None:
            return None
        return value if self._selection.means(value, self._resource) else None
