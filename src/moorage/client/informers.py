"""Informers keep a cache of objects current: they list once, then watch.

    list ─► cache, synced ─► watch ─► changes, one by one, in order
      ▲                        │
      ├── 410: too old ◄───────┤   deletions meanwhile are found by absence from the list
      └── (after a delay) ◄────┘   interrupted, ended, rejected: watch again from the last change

Event handlers get (old, new): (None, new) for an addition, (old, new) for a change, (old, None) for
a deletion. An object that was recreated under its name is first deleted and then added. Handlers
are called one after the other, must not wait, and may read the cache, which has the change already.

An object that a handler fails with is named once, and the next handler is called. An object that
cannot be read is named once, too: the cache keeps its last readable version, if it had one, until
it is deleted. Neither keeps other objects from their handlers.

An informer logs each cause of a failure once, and retries with backoff.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from msgspec.structs import replace

from moorage.api.meta import object_text
from moorage.client.contract import (
    PAGE,
    Added,
    Bookmark,
    Client,
    Event,
    Removed,
    Unreadable,
    list_all,
)
from moorage.client.errors import ClientError, ExpiredError, NotFoundError, UnreadableError
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.kit.backoff import Backoff
from moorage.kit.bulkhead import FAULTS, cause_text
from moorage.kit.clock import REAL, Clock

LOG = logging.getLogger(__name__)

Handler = Callable[[Any | None, Any | None], None]

BACKOFF = Backoff(first_s=0.2, longest_s=30.0, factor=2.0, jitter=1.0)
TOO_LARGE = "ResourceVersionTooLarge"
BRIEF_S = 1.0  # a watch that ends sooner, without an event, counts as a failure


class Informer:
    """Caches the objects of one kind, or a selection of them."""

    def __init__(
        self,
        client: Client,
        struct: type[Any],
        objects: Indexer,
        *,
        random: Callable[[], float],
        namespace: str = "",
        fields: str = "",
        labels: str = "",
        optional: bool = False,
        clock: Clock = REAL,
        backoff: Backoff = BACKOFF,
        page: int = PAGE,
        transform: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self._client = client
        self._struct = struct
        self._objects = objects
        self._selection = {"namespace": namespace, "fields": fields, "labels": labels}
        self._is_optional = optional  # the server need not have the kind
        self._random = random
        self._clock = clock
        self._backoff = backoff
        self._page = page
        self._transform = transform  # what is cached of an object
        self._handlers: list[Handler] = []
        self._unreadable_handlers: list[Callable[[Unreadable], None]] = []
        self._keys: set[ObjectKey] = set()  # of our selection; the cache may have others
        self._unreadable: dict[ObjectKey, Unreadable] = {}
        self._revision: str | None = None
        self._failures = 0
        self._cause = ""
        self._has_synced = asyncio.Event()
        self._is_listing = False

    @property
    def is_listing(self) -> bool:
        """Whether handlers are called for a list now: in any order, with gaps."""
        return self._is_listing

    @property
    def struct(self) -> type[Any]:
        """The kind."""
        return self._struct

    @property
    def selection(self) -> dict[str, str]:
        """The selection of objects: namespace, fields, labels."""
        return self._selection

    @property
    def synced(self) -> bool:
        """Whether the first list is in the cache."""
        return self._has_synced.is_set()

    @property
    def revision(self) -> str:
        """The resource version of the cache; empty before the first list."""
        return self._revision or ""

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """The objects that exist and cannot be read now."""
        return tuple(self._unreadable.values())

    @property
    def cause(self) -> str:
        """Why the cache is not current; empty if it is."""
        return self._cause

    def add_event_handler(self, handler: Handler) -> None:
        """Add an event handler; it is called immediately for the objects in the cache."""
        self._handlers.append(handler)
        was_listing, self._is_listing = self._is_listing, True
        for value in tuple(self._objects.list(self._struct)):
            if object_key(value) in self._keys:
                self._call(handler, None, value)
        self._is_listing = was_listing

    def add_unreadable_handler(self, handler: Callable[[Unreadable], None]) -> None:
        """Add a handler of objects of which the cache has no version, as none could be read.

        It is called again when one is gone. One that can be read later is an addition.
        """
        self._unreadable_handlers.append(handler)
        for key, item in self._unreadable.items():
            if self._objects.get(self._struct, *key) is None:
                self._call_unreadable(handler, item)

    async def wait_for_sync(self) -> None:
        """Wait until the first list is in the cache."""
        await self._has_synced.wait()

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            started = self._clock.monotonic()
            try:
                if self._failures and self._revision is not None:
                    await self._check_revision()
                if self._revision is None:
                    await self._list()
                has_events = await self._watch()
                if not has_events and self._clock.monotonic() - started < BRIEF_S:
                    self._failures += 1
            except ExpiredError:
                self._revision = None
                self._failures += 1
            except NotFoundError as error:
                self._failures += 1
                self._revision = None
                self._note_missing(error)
            except ClientError as error:
                self._failures += 1
                self._note(str(error))
                if any(cause.reason == TOO_LARGE for cause in error.causes):
                    self._revision = None  # the server was restored from a backup
            except Exception as error:  # a bug in decoding or in the cache
                self._failures += 1
                self._revision = None
                FAULTS.note(self._place, "the informer", error, "lists again")
                self._cause = cause_text(error)
            if self._failures:
                await self._clock.sleep(self._backoff.delay_s(self._failures, self._random))

    # --- listing ----------------------------------------------------------------------------------

    async def _list(self) -> None:
        """Replace the cached objects by a list."""
        page = await list_all(
            self._client, self._struct, limit=self._page, allows_gaps=True, **self._selection
        )
        self._is_listing = True
        try:
            self._replace_all(page.values, page.unreadable)
        finally:
            self._is_listing = False
        self._revision = page.revision
        self._has_synced.set()
        self._note("")

    def _replace_all(self, values: Iterable[Any], unreadable: Iterable[Unreadable]) -> None:
        found = set()
        before, self._unreadable = self._unreadable, {}
        for value in values:
            found.add(object_key(value))
            self._put(value)
        for each in unreadable:
            found.add((each.namespace, each.name))
            self._set_aside(each)
        for key in sorted(self._keys - found):  # deterministic
            self._remove(key)
        for key in sorted(before.keys() - found):
            self._tell_unreadable(replace(before[key], is_gone=True))

    async def _check_revision(self) -> None:
        """List again if the server's revision went back, as with a restored backup.

        A watch from a future revision would be silent until the server reaches it.
        """
        now = (await self._client.list(self._struct, limit=1, **self._selection)).revision
        if now.isdigit() and str(self._revision).isdigit() and int(now) < int(str(self._revision)):
            self._revision = None

    # --- watching ---------------------------------------------------------------------------------

    async def _watch(self) -> bool:
        """Watch until the server ends it; return whether there were events."""
        has_events = False
        assert self._revision is not None
        selection = self._selection
        events = self._client.watch(
            self._struct,
            selection["namespace"],
            after=self._revision,
            fields=selection["fields"],
            labels=selection["labels"],
        )
        try:
            async for event in events:
                self._apply(event)
                if not has_events:
                    has_events = True
                    self._failures = 0
                    self._note("")
        finally:
            await _close(events)
        return has_events

    def _apply(self, event: Event) -> None:
        match event:
            case Added(value=value):
                self._put(value)
                self._revision = value.metadata.resource_version
            case Removed(value=value):
                self._remove(object_key(value))
                self._revision = value.metadata.resource_version
            case Bookmark(revision=revision) if revision:
                self._revision = revision
            case Unreadable(revision=revision):
                self._set_aside(event)
                self._revision = revision or self._revision

    # --- changes ----------------------------------------------------------------------------------

    def _set_aside(self, item: Unreadable) -> None:
        """Keep the last readable version of an object, unless it is gone or another one."""
        key = (item.namespace, item.name)
        old = self._objects.get(self._struct, *key)
        if old is not None and (item.is_gone or old.metadata.uid != item.uid):
            self._remove(key)
        if item.is_gone:
            self._unreadable.pop(key, None)
        else:
            self._unreadable[key] = item
            FAULTS.note(self._place, str(item), UnreadableError(item.cause))
        if self._objects.get(self._struct, *key) is None:
            self._tell_unreadable(item)

    def _put(self, value: Any) -> None:
        value = self._transform(value)
        key = object_key(value)
        if self._unreadable:
            self._unreadable.pop(key, None)
        old = self._objects.get(self._struct, *key)
        if old is not None:
            before, after = old.metadata, value.metadata
            if before.uid != after.uid:
                self._remove(key)  # recreated under its name
                old = None
            elif before.resource_version == after.resource_version:
                self._keys.add(key)
                return
        self._keys.add(key)
        self._objects.put(value)
        self._notify(old, value)

    def _remove(self, key: ObjectKey) -> None:
        self._keys.discard(key)
        item = self._unreadable.pop(key, None)
        old = self._objects.remove(self._struct, *key)
        if old is not None:
            self._notify(old, None)
        elif item is not None:
            self._tell_unreadable(replace(item, is_gone=True))

    def _notify(self, old: Any | None, new: Any | None) -> None:
        for handler in self._handlers:
            try:
                handler(old, new)
            except Exception as error:
                self._note_fault(error, old, new)

    def _call(self, handler: Handler, old: Any | None, new: Any | None) -> None:
        try:
            handler(old, new)
        except Exception as error:
            self._note_fault(error, old, new)

    def _note_fault(self, error: Exception, old: Any | None, new: Any | None) -> None:
        FAULTS.note(self._place, lambda: object_text(old if new is None else new), error)

    def _tell_unreadable(self, item: Unreadable) -> None:
        for handler in self._unreadable_handlers:
            self._call_unreadable(handler, item)

    def _call_unreadable(self, handler: Callable[[Unreadable], None], item: Unreadable) -> None:
        with FAULTS.guard(self._place, str(item)):
            handler(item)

    # --- failures ---------------------------------------------------------------------------------

    @property
    def _place(self) -> str:
        return f"watching {self._struct.__name__}"

    def _note(self, cause: str) -> None:
        """Log a cause once, and once when it is resolved."""
        if cause == self._cause:
            return
        self._cause = cause
        if cause:
            LOG.warning("watching %s: %s; retrying", self._struct.__name__, cause)
        else:
            LOG.info("watching %s again", self._struct.__name__)

    def _note_missing(self, error: NotFoundError) -> None:
        """Handle that the server does not have the kind: the cache is empty, if that is allowed."""
        if not self._is_optional:
            self._note(str(error))
            return
        for key in sorted(self._keys):
            self._remove(key)
        self._cause = str(error)
        self._has_synced.set()


async def _close(events: AsyncIterator[Event]) -> None:
    """End a watch now, not when it is garbage-collected."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()
