"""Fan-out: every change reaches each watch whose prefix its key has.

Each store has one broadcaster. The backend publishes changes in order; the broadcaster hands each
batch to the subscribed watches. A watch that starts in the past first reads history, page by page
and only as fast as its reader, and subscribes once it has seen everything published. So a watch
keeps at most one page, or `events_max` changes with values of `PENDING_BYTES_MAX` bytes; a watch
that exceeds this ends. Watches share what they keep: together they keep no more than one does.

Everything here happens in the event loop. There is no await between looking at the broadcaster's
revision and subscribing, so a watch misses no change and sees none twice.

# published: delivered to the broadcaster, whose revision is the revision of the last published
# change
# subscribed: receives changes as they are published
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self
from weakref import WeakSet

from moorage.store.contract import Event, KeyChange, Progress, Put
from moorage.store.errors import ClosedError, SlowWatcherError, StoreError

PENDING_BYTES_MAX = 64 * 1024 * 1024  # of the values of changes that wait for a reader
FOLDERS_MAX = 1024  # whose watched prefixes are kept
BATCH_BYTES = 1024 * 1024  # of one batch, unless one change alone has more


class HistoryPage(NamedTuple):
    """Changes in order; below the prefix there are no others up to the revision `through`."""

    changes: Sequence[KeyChange]
    through: int


class ReadHistory(Protocol):
    """Reads past changes from the backend."""

    async def __call__(self, prefix: str, after: int, through: int) -> HistoryPage:
        """Return the next changes after a revision up to another, or raise TooOldError."""


class Broadcaster:
    """Hands published changes to watches."""

    def __init__(self, revision: int, history: ReadHistory) -> None:
        self.revision = revision
        self._history = history
        self._watches: dict[str, set[BroadcastWatch]] = {}
        # By the folder of a key: watched prefixes of all keys in it, and those of some.
        self._known: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        # Weak, so that a watch without a reader disappears even if it was not closed.
        self._open: WeakSet[BroadcastWatch] = WeakSet()
        self._fault: StoreError | None = None

    def watch(self, prefix: str, after: int, events_max: int) -> BroadcastWatch:
        """Return a watch of the changes below the prefix after a revision."""
        if self._fault is not None:
            raise self._fault
        watch = BroadcastWatch(self, prefix, after, events_max)
        self._open.add(watch)
        return watch

    def publish(self, changes: Sequence[KeyChange]) -> None:
        """Hand changes to the subscribed watches; they follow all published before."""
        if not changes:
            return
        self.revision = changes[-1].revision
        below: dict[str, list[KeyChange]] = {}
        for change in changes:
            for prefix in self._prefixes_of(change.key):
                below.setdefault(prefix, []).append(change)
        for prefix, found in below.items():
            size = sum(map(_size, found))
            for watch in tuple(self._watches.get(prefix, ())):
                watch.receive(found, size)

    def _prefixes_of(self, key: str) -> tuple[str, ...]:
        """Return the prefixes of a key that are watched; keys of one folder mostly share them."""
        folder = key[: key.rfind("/") + 1]
        known = self._known.get(folder)
        if known is None:
            if len(self._known) >= FOLDERS_MAX:
                self._known.clear()
            above = tuple(each for each in self._watches if folder.startswith(each))
            below = tuple(
                each for each in self._watches if each.startswith(folder) and each != folder
            )
            known = self._known[folder] = (above, below)
        above, below = known
        return (*above, *filter(key.startswith, below)) if below else above

    def close(self, fault: StoreError) -> None:
        """End all watches and reject new ones."""
        self._fault = fault
        self.cut_all(fault)

    def cut_all(self, fault: StoreError) -> None:
        """End all watches; new ones may start."""
        for watch in tuple(self._open):
            watch.end(fault)

    async def history(self, watch: BroadcastWatch) -> HistoryPage:
        """Return the next page of history that a watch has not seen."""
        return await self._history(watch.prefix, watch.seen, self.revision)

    def subscribe(self, watch: BroadcastWatch) -> None:
        """Hand the watch all changes published from now on."""
        if watch.prefix not in self._watches:
            self._watches[watch.prefix] = set()
            self._known.clear()
        self._watches[watch.prefix].add(watch)

    def unsubscribe(self, watch: BroadcastWatch) -> None:
        """Hand the watch no more changes."""
        self._open.discard(watch)
        watches = self._watches.get(watch.prefix)
        if watches is not None:
            watches.discard(watch)
            if not watches:
                del self._watches[watch.prefix]
                self._known.clear()


class BroadcastWatch:
    """One reader's changes: history in pages, then changes as they are published."""

    def __init__(self, broadcaster: Broadcaster, prefix: str, after: int, events_max: int) -> None:
        self.prefix = prefix
        self.seen = after  # the reader received all changes up to here
        self._broadcaster = broadcaster
        self._events_max = events_max
        self._pending: deque[Event] = deque()
        self._pending_bytes = 0
        self._arrived = asyncio.Event()
        self._page_through = 0  # the pending events are complete up to here
        self._is_subscribed = False
        self._is_progress_requested = False
        self._fault: StoreError | None = None

    # --- the reader's side

    async def batch(self) -> Sequence[Event]:
        """Return pending events, at least one; wait for the first.

        A reader holds what it takes, also when it stops reading, so it gets no more than it needs.
        """
        if not self._pending:
            await self._fill()
        events: list[Event] = []
        size = 0
        if self._pending_bytes < BATCH_BYTES:  # as nearly always
            events.extend(self._pending)
            self._pending.clear()
            self._pending_bytes = 0
        while self._pending and size < BATCH_BYTES:
            event = self._take()
            events.append(event)
            size += _size(event)
        self._note_seen(events[-1])
        return events

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if not self._pending:
            await self._fill()
        event = self._take()
        self._note_seen(event)
        return event

    def request_progress(self) -> None:
        """Request a Progress after all changes up to now."""
        if self._is_subscribed:
            self._append_progress()
        else:
            self._is_progress_requested = True

    def close(self) -> None:
        """End the watch."""
        self.end(ClosedError("watch"))

    # --- the broadcaster's side

    def receive(self, changes: Sequence[KeyChange], size: int) -> None:
        """Receive published changes that keep some bytes."""
        if changes[0].revision <= self.seen:  # the reader is ahead of the broadcaster
            changes = [change for change in changes if change.revision > self.seen]
            size = sum(map(_size, changes))
        size += self._pending_bytes
        if len(self._pending) + len(changes) > self._events_max:
            self.end(SlowWatcherError(f"{self._events_max} changes", self.seen))
            return
        if self._pending and size > PENDING_BYTES_MAX:
            self.end(SlowWatcherError(f"{PENDING_BYTES_MAX} bytes of changes", self.seen))
            return
        self._pending.extend(changes)
        self._pending_bytes = size
        self._arrived.set()

    def end(self, fault: StoreError) -> None:
        """Drop pending events and raise the error in the reader."""
        if self._fault is None:
            self._fault = fault
            self._pending.clear()
            self._pending_bytes = 0
            self._broadcaster.unsubscribe(self)
            self._arrived.set()

    def _take(self) -> Event:
        event = self._pending.popleft()
        self._pending_bytes -= _size(event)
        return event

    async def _fill(self) -> None:
        """Wait until an event is pending."""
        while not self._pending:
            if self._fault is not None:
                raise self._fault
            if self._is_subscribed:
                self._arrived.clear()
                await self._arrived.wait()
            elif max(self.seen, self._page_through) < self._broadcaster.revision:
                self.seen = max(self.seen, self._page_through)  # the page was read to its end
                await self._read_history()
            else:
                self._subscribe()
        if self._fault is not None:
            raise self._fault

    async def _read_history(self) -> None:
        try:
            changes, through = await self._broadcaster.history(self)
        except StoreError as fault:
            self.end(fault)
            return
        if self._fault is None:
            self._pending.extend(changes)
            self._pending_bytes += sum(map(_size, changes))
            self._page_through = through

    def _subscribe(self) -> None:
        self.seen = max(self.seen, self._page_through)
        self._is_subscribed = True
        self._broadcaster.subscribe(self)
        if self._is_progress_requested:
            self._append_progress()

    def _append_progress(self) -> None:
        self._is_progress_requested = False
        if self._fault is not None:
            return
        if self._pending and isinstance(self._pending[-1], Progress):
            self._pending.pop()  # The newer one replaces it, so none pile up.
        self._pending.append(Progress(max(self._broadcaster.revision, self.seen)))
        self._arrived.set()

    def _note_seen(self, event: Event) -> None:
        self.seen = max(self.seen, event.revision)


def _size(event: Event) -> int:
    """Return the bytes that an event keeps; the value before is that of an earlier change."""
    if isinstance(event, Progress):
        return 0
    return len(event.entry.value if isinstance(event, Put) else event.previous.value)
