"""Watches: changes of the store as events about objects that are selected.

    before   after     event
    no       yes       ADDED
    yes      yes       MODIFIED
    yes      no        DELETED, with the object as it was and the revision of the change
    no       no        none

A watch without a resourceVersion begins with what is there, as ADDED, as does one that asks for
initial events; then comes a bookmark that says so, if bookmarks are allowed. Others come every
minute, and shortly before the watch's time is up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from mooring.apiserver.listing import ListOptions, Page, list_entries, read_revision
from mooring.apiserver.registry import Registry, with_revision
from mooring.apiserver.resources import Resource
from mooring.apiserver.selectors import Selection
from mooring.apiserver.status import Status, too_new, too_old
from mooring.store.contract import Deletion, Entry, Event, Progress, Put, Watch
from mooring.store.errors import ClosedError, SlowWatcherError, TooOldError

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
BOOKMARK, ERROR = "BOOKMARK", "ERROR"
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

BOOKMARK_EVERY_S = 60
BOOKMARK_BEFORE_END_S = 2

TOO_OLD = "too old resource version: {wanted} ({current})"


class WatchOptions(NamedTuple):
    """What a watch is asked for."""

    revision: str = ""
    allows_bookmarks: bool = False
    wants_initial: bool | None = None
    timeout_s: float = BOOKMARK_EVERY_S


class Notice(NamedTuple):
    """One event: about an object, a bookmark at a revision, or the error that ends the watch."""

    type: str
    value: Any = None
    revision: int = 0
    is_initial_end: bool = False
    status: Status | None = None


async def open_watch(
    registry: Registry,
    resource: Resource,
    namespace: str,
    selection: Selection,
    options: WatchOptions,
) -> AsyncIterator[Notice]:
    """Return the events of a watch, until the store ends it or the caller has enough."""
    wanted = read_revision(options.revision)
    current = await registry.store.revision()
    if options.wants_initial is None and wanted == 0:
        options = options._replace(wants_initial=True)
    if wanted > current and options.wants_initial:
        return _ended(Notice(ERROR, status=too_new(wanted, current).status))
    page = None
    after = min(wanted or current, current)
    if options.wants_initial:
        page = await list_entries(registry, resource, namespace, selection, ListOptions())
        after = page.revision
    try:
        events = await registry.store.watch(resource.below(namespace), after=after)
    except TooOldError:
        text = TOO_OLD.format(wanted=wanted, current=current)
        return _ended(Notice(ERROR, status=too_old(text).status))
    follower = _Follower(registry, resource, selection, wanted)
    return _events(follower, page, events, options)


async def _ended(notice: Notice) -> AsyncIterator[Notice]:
    yield notice


async def _events(
    follower: _Follower, page: Page | None, events: Watch, options: WatchOptions
) -> AsyncIterator[Notice]:
    ticks = None
    if options.allows_bookmarks:
        ticks = asyncio.create_task(_tick(events, options.timeout_s))
    try:
        if page is not None:
            for entry in page.entries:
                yield Notice(ADDED, follower.read(entry), entry.revision)
            if options.wants_initial and options.allows_bookmarks:
                yield Notice(BOOKMARK, revision=page.revision, is_initial_end=True)
        async for event in events:
            notice = follower.notice(event)
            if notice is not None and (notice.type != BOOKMARK or options.allows_bookmarks):
                yield notice
    except SlowWatcherError:
        # The client did not keep up; it lists again and begins anew.
        yield Notice(ERROR, status=too_old("the watch did not keep up").status)
    except ClosedError:
        return  # The server stops; clients come again.
    finally:
        if ticks is not None:
            ticks.cancel()
        events.close()


async def _tick(events: Watch, timeout_s: float) -> None:
    """Have a bookmark sent from time to time, so that clients need not go far back."""
    clock = asyncio.get_running_loop().time
    last = clock() + timeout_s - BOOKMARK_BEFORE_END_S
    while (left_s := last - clock()) > 0:
        await asyncio.sleep(min(BOOKMARK_EVERY_S, left_s))
        events.request_progress()


class _Follower:
    """Turns changes into events about what is selected."""

    def __init__(
        self, registry: Registry, resource: Resource, selection: Selection, wanted: int
    ) -> None:
        self._wanted = wanted  # may be to come: what is until then is not told
        self._registry = registry
        self._resource = resource
        self._selection = selection

    def read(self, entry: Entry) -> Any:
        """Return the object of an entry."""
        return self._registry.read(self._resource, entry)

    def notice(self, event: Event) -> Notice | None:
        """Return what a change means for the watch, if anything."""
        if event.revision <= self._wanted and not isinstance(event, Progress):
            return None
        match event:
            case Progress(revision=revision):
                return Notice(BOOKMARK, revision=revision)
            case Deletion(previous=previous, revision=revision):
                old = self._selected(previous)
                return None if old is None else self._gone(old, revision)
            case Put(entry=entry, previous=previous):
                new = self._selected(entry)
                old = None if previous is None else self._selected(previous)
                if new is not None:
                    kind = ADDED if old is None else MODIFIED
                    return Notice(kind, new, entry.revision)
                return None if old is None else self._gone(old, entry.revision)

    def _gone(self, old: Any, revision: int) -> Notice:
        return Notice(DELETED, with_revision(old, revision), revision)

    def _selected(self, entry: Entry) -> Any | None:
        value = self.read(entry)
        return value if self._selection.means(value, self._resource) else None
