"""Objects kept up to date: list once, then follow what happens, for ever.

    list ─► objects, synced ─► watch ─► changes, one by one, in order
      ▲                          │
      ├── 410: too old ◄─────────┤   what was deleted meanwhile is found by its absence
      └── (after a while) ◄──────┘   cut off, ended, refused: watch again from the last change

Handlers get (old, new): (None, new) came, (old, new) changed, (old, None) went. An object that was
made anew under the same name first goes and then comes. Handlers are called one after the other,
must not wait, and may read `objects`, which have the change already. One that raises is logged, and
the next is called.

Nothing is kept but the objects themselves. What goes wrong is logged once for each cause, and tried
again after a delay that grows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from mooring.client.contract import Added, Bookmark, Client, Event, Removed
from mooring.client.errors import ClientError, ExpiredError, NotFoundError
from mooring.client.objects import Objects, key_of
from mooring.client.paging import PAGE, list_all
from mooring.kit.backoff import Backoff
from mooring.kit.clock import REAL, Clock

LOG = logging.getLogger(__name__)

Handler = Callable[[Any | None, Any | None], None]

BACKOFF = Backoff(first_s=0.2, longest_s=30.0, factor=2.0, jitter=1.0)
TOO_LARGE = "ResourceVersionTooLarge"
BRIEF_S = 1.0  # a watch that ends sooner, with nothing told, counts as a failure


class Informer:
    """Keeps the objects of one kind, or a selection of them."""

    def __init__(
        self,
        client: Client,
        struct: type[Any],
        objects: Objects,
        *,
        random: Callable[[], float],
        namespace: str = "",
        fields: str = "",
        labels: str = "",
        optional: bool = False,
        clock: Clock = REAL,
        backoff: Backoff = BACKOFF,
        page: int = PAGE,
    ) -> None:
        self._client = client
        self._struct = struct
        self._objects = objects
        self._selection = {"namespace": namespace, "fields": fields, "labels": labels}
        self._is_optional = optional  # a server that does not have the kind has no objects of it
        self._random = random
        self._clock = clock
        self._backoff = backoff
        self._page = page
        self._handlers: list[Handler] = []
        self._keys: set[tuple[str, str]] = set()  # of ours in `objects`; others may be there, too
        self._revision: str | None = None
        self._failures = 0
        self._cause = ""
        self._has_synced = asyncio.Event()
        self._is_listing = False

    @property
    def is_listing(self) -> bool:
        """Whether what handlers are told just now is from a list: in any order, with gaps."""
        return self._is_listing

    @property
    def struct(self) -> type[Any]:
        """The kind that is followed."""
        return self._struct

    @property
    def selection(self) -> dict[str, str]:
        """Which objects of the kind: namespace, fields, labels."""
        return self._selection

    @property
    def synced(self) -> bool:
        """Whether all objects that there were at the start are there."""
        return self._has_synced.is_set()

    @property
    def revision(self) -> str:
        """The resource version up to which everything is known; empty before."""
        return self._revision or ""

    @property
    def cause(self) -> str:
        """Why it does not follow right now; empty if it does."""
        return self._cause

    def on_change(self, handler: Handler) -> None:
        """Have a handler called with every change; what is there already comes as new at once."""
        self._handlers.append(handler)
        was_listing, self._is_listing = self._is_listing, True
        for value in tuple(self._objects.all(self._struct)):
            if key_of(value) in self._keys:
                self._call(handler, None, value)
        self._is_listing = was_listing

    async def wait_synced(self) -> None:
        """Wait until all objects that there were at the start are there."""
        await self._has_synced.wait()

    async def run(self) -> None:
        """Keep up until cancelled."""
        while True:
            started = self._clock.monotonic()
            try:
                if self._failures and self._revision is not None:
                    await self._check_time()
                if self._revision is None:
                    await self._list()
                told = await self._watch()
                if not told and self._clock.monotonic() - started < BRIEF_S:
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
                    self._revision = None  # the server went back in time
            except Exception as error:  # a bug in what reads or keeps the objects
                self._failures += 1
                self._revision = None
                if self._cause != repr(error):
                    LOG.exception("following %s: it is tried again", self._struct.__name__)
                self._cause = repr(error)
            if self._failures:
                await self._clock.sleep(self._backoff.delay_s(self._failures, self._random))

    # --- listing ----------------------------------------------------------------------------------

    async def _list(self) -> None:
        """Take in all that there is, and find out what is gone."""
        page = await list_all(self._client, self._struct, limit=self._page, **self._selection)
        self._is_listing = True
        try:
            self._take_all(page.values)
        finally:
            self._is_listing = False
        self._revision = page.revision
        self._has_synced.set()
        self._note("")

    def _take_all(self, values: Iterable[Any]) -> None:
        found = set()
        for value in values:
            found.add(key_of(value))
            self._put(value)
        for key in sorted(self._keys - found):  # in the same order every time
            self._remove(key)

    async def _check_time(self) -> None:
        """See whether the server went back in time, as with a restored backup: then list anew.

        A watch that begins in the future would say nothing until that has come.
        """
        now = (await self._client.list(self._struct, limit=1, **self._selection)).revision
        if now.isdigit() and str(self._revision).isdigit() and int(now) < int(str(self._revision)):
            self._revision = None

    # --- watching ---------------------------------------------------------------------------------

    async def _watch(self) -> bool:
        """Follow what happens until the server ends it; return whether anything was told."""
        told = False
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
                self._take(event)
                if not told:
                    told = True
                    self._failures = 0
                    self._note("")
        finally:
            await _close(events)
        return told

    def _take(self, event: Event) -> None:
        match event:
            case Added(value=value):
                self._put(value)
                self._revision = value.metadata.resource_version
            case Removed(value=value):
                self._remove(key_of(value))
                self._revision = value.metadata.resource_version
            case Bookmark(revision=revision) if revision:
                self._revision = revision

    # --- changes ----------------------------------------------------------------------------------

    def _put(self, value: Any) -> None:
        key = key_of(value)
        old = self._objects.find(self._struct, *key)
        if old is not None:
            before, after = old.metadata, value.metadata
            if before.uid != after.uid:
                self._remove(key)  # another object under the same name
                old = None
            elif before.resource_version == after.resource_version:
                self._keys.add(key)
                return
        self._keys.add(key)
        self._objects.put(value)
        self._tell(old, value)

    def _remove(self, key: tuple[str, str]) -> None:
        self._keys.discard(key)
        old = self._objects.remove(self._struct, *key)
        if old is not None:
            self._tell(old, None)

    def _tell(self, old: Any | None, new: Any | None) -> None:
        for handler in self._handlers:
            self._call(handler, old, new)

    def _call(self, handler: Handler, old: Any | None, new: Any | None) -> None:
        try:
            handler(old, new)
        except Exception:
            LOG.exception(
                "a handler of %s failed with %s", self._struct.__name__, key_of(new or old)
            )

    # --- what is wrong ----------------------------------------------------------------------------

    def _note(self, cause: str) -> None:
        """Log a cause once, and once that it is over."""
        if cause == self._cause:
            return
        self._cause = cause
        if cause:
            LOG.warning("following %s: %s; it is tried again", self._struct.__name__, cause)
        else:
            LOG.info("following %s again", self._struct.__name__)

    def _note_missing(self, error: NotFoundError) -> None:
        """Take that the server does not have the kind: nothing is there, if that is allowed."""
        if not self._is_optional:
            self._note(str(error))
            return
        for key in sorted(self._keys):
            self._remove(key)
        self._cause = str(error)
        self._has_synced.set()


class Informers:
    """Informers of many kinds that share their objects."""

    def __init__(
        self,
        client: Client,
        *,
        random: Callable[[], float],
        clock: Clock = REAL,
        objects: Objects | None = None,
        backoff: Backoff = BACKOFF,
        page: int = PAGE,
    ) -> None:
        self.objects = objects if objects is not None else Objects()
        self._client = client
        self._random = random
        self._clock = clock
        self._backoff = backoff
        self._page = page
        self._informers: dict[type[Any], Informer] = {}

    def follow(
        self,
        struct: type[Any],
        *,
        namespace: str = "",
        fields: str = "",
        labels: str = "",
        optional: bool = False,
    ) -> Informer:
        """Follow a kind and return its informer; asking twice gives the first one.

        That must be of the same selection: objects of a kind are kept in one place.
        """
        found = self._informers.get(struct)
        wanted = {"namespace": namespace, "fields": fields, "labels": labels}
        if found is not None and any(wanted.values()) and found.selection != wanted:
            raise ValueError(f"{struct.__name__} is followed already, in another selection")
        if found is None:
            found = self._informers[struct] = Informer(
                self._client,
                struct,
                self.objects,
                namespace=namespace,
                fields=fields,
                labels=labels,
                optional=optional,
                random=self._random,
                clock=self._clock,
                backoff=self._backoff,
                page=self._page,
            )
        return found

    def on_change(self, struct: type[Any], handler: Handler) -> None:
        """Have a handler called with every change of a kind, which is followed from now on."""
        self.follow(struct).on_change(handler)

    @property
    def synced(self) -> bool:
        """Whether all kinds are there."""
        return all(informer.synced for informer in self._informers.values())

    @property
    def causes(self) -> dict[str, str]:
        """Why kinds are not followed right now, by their names."""
        return {
            struct.__name__: informer.cause
            for struct, informer in self._informers.items()
            if informer.cause
        }

    async def wait_synced(self) -> None:
        """Wait until all kinds are there."""
        for informer in tuple(self._informers.values()):
            await informer.wait_synced()

    async def run(self) -> None:
        """Keep up with all kinds until cancelled; those asked for later do not run."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers.values():
                tasks.create_task(informer.run())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Objects]:
        """Keep up for as long as a block lasts, which begins when all kinds are there."""
        task = asyncio.create_task(self.run())
        waiting = asyncio.create_task(self.wait_synced())
        try:
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
            yield self.objects
        finally:
            task.cancel()
            waiting.cancel()
            await asyncio.gather(task, waiting, return_exceptions=True)


async def _close(events: AsyncIterator[Event]) -> None:
    """End a watch now, not when somebody collects what is left of it."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()
