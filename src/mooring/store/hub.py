"""Fan-out: what was written reaches every watch whose prefix it is below.

One hub a store. The backend publishes changes in order; the hub hands each batch to the watches
that follow. A watch that starts in the past first reads the past, page by page and only as fast
as its reader, and follows once it has seen all that the hub has published. So a watch keeps at
most one page, or `events_max` changes; one that is to keep more is cut off.

Everything here happens in the event loop. Between looking at `hub.revision` and following there
is no await, so nothing is missed and nothing comes twice.

# published: delivered to the hub; the hub's revision is that of the last published change
# to follow: to be handed what is published, as it is published
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self
from weakref import WeakSet

from mooring.store.contract import Change, Event, Progress
from mooring.store.errors import ClosedError, SlowWatcherError, StoreError


class Stretch(NamedTuple):
    """Changes in order, and the revision up to which there are no others below the prefix."""

    changes: Sequence[Change]
    through: int


class History(Protocol):
    """What the backend knows of the past."""

    async def __call__(self, prefix: str, after: int, through: int) -> Stretch:
        """Return the next changes after a revision, not beyond another; or raise TooOldError."""


class Hub:
    """Hands published changes to watches."""

    def __init__(self, revision: int, history: History) -> None:
        self.revision = revision
        self._history = history
        self._watches: dict[str, set[HubWatch]] = {}
        # Weak: a watch that nobody reads any more and that was not closed just goes.
        self._open: WeakSet[HubWatch] = WeakSet()
        self._fault: StoreError | None = None

    def watch(self, prefix: str, after: int, events_max: int) -> HubWatch:
        """Return a watch of what changes below the prefix after a revision."""
        if self._fault is not None:
            raise self._fault
        watch = HubWatch(self, prefix, after, events_max)
        self._open.add(watch)
        return watch

    def publish(self, changes: Sequence[Change]) -> None:
        """Hand over changes, which come after all that were published before."""
        if not changes:
            return
        self.revision = changes[-1].revision
        for prefix, watches in list(self._watches.items()):
            below = [change for change in changes if change.key.startswith(prefix)]
            if below:
                for watch in tuple(watches):
                    watch.receive(below)

    def close(self, fault: StoreError) -> None:
        """End all watches, and refuse new ones."""
        self._fault = fault
        self.cut_all(fault)

    def cut_all(self, fault: StoreError) -> None:
        """End all watches; new ones may be made."""
        for watch in tuple(self._open):
            watch.end(fault)

    async def past(self, watch: HubWatch) -> Stretch:
        """Return the next part of the past that a watch has not seen."""
        return await self._history(watch.prefix, watch.seen, self.revision)

    def follow(self, watch: HubWatch) -> None:
        """Hand the watch whatever is published from now on."""
        self._watches.setdefault(watch.prefix, set()).add(watch)

    def forget(self, watch: HubWatch) -> None:
        """Hand the watch nothing more."""
        self._open.discard(watch)
        watches = self._watches.get(watch.prefix)
        if watches is not None:
            watches.discard(watch)
            if not watches:
                del self._watches[watch.prefix]


class HubWatch:
    """One reader's changes: the past in pages, then what is published."""

    def __init__(self, hub: Hub, prefix: str, after: int, events_max: int) -> None:
        self.prefix = prefix
        self.seen = after  # all changes up to here were handed to the reader
        self._hub = hub
        self._events_max = events_max
        self._waiting: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._page_through = 0  # what is waiting is all up to here
        self._follows = False
        self._progress_wanted = False
        self._fault: StoreError | None = None

    # --- the reader's side

    async def batch(self) -> Sequence[Event]:
        """Return the events that are there, at least one; wait for the first."""
        await self._fill()
        events = list(self._waiting)
        self._waiting.clear()
        self._note_seen(events[-1])
        return events

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if not self._waiting:
            await self._fill()
        event = self._waiting.popleft()
        self._note_seen(event)
        return event

    def request_progress(self) -> None:
        """Have a Progress delivered, after all changes up to now."""
        if self._follows:
            self._append_progress()
        else:
            self._progress_wanted = True

    def close(self) -> None:
        """End the watch."""
        self.end(ClosedError("watch"))

    # --- the hub's side

    def receive(self, changes: Sequence[Change]) -> None:
        """Take changes that were published."""
        if changes[0].revision <= self.seen:  # the reader knows more than the hub did
            changes = [change for change in changes if change.revision > self.seen]
        if len(self._waiting) + len(changes) > self._events_max:
            self.end(SlowWatcherError(self._events_max, self.seen))
            return
        self._waiting.extend(changes)
        self._arrived.set()

    def end(self, fault: StoreError) -> None:
        """Drop what is waiting and tell the reader why."""
        if self._fault is None:
            self._fault = fault
            self._waiting.clear()
            self._hub.forget(self)
            self._arrived.set()

    async def _fill(self) -> None:
        """Wait until something is there for the reader."""
        while not self._waiting:
            if self._fault is not None:
                raise self._fault
            if self._follows:
                self._arrived.clear()
                await self._arrived.wait()
            elif max(self.seen, self._page_through) < self._hub.revision:
                self.seen = max(self.seen, self._page_through)  # the page was read to its end
                await self._read_past()
            else:
                self._start_following()
        if self._fault is not None:
            raise self._fault

    async def _read_past(self) -> None:
        try:
            changes, through = await self._hub.past(self)
        except StoreError as fault:
            self.end(fault)
            return
        if self._fault is None:
            self._waiting.extend(changes)
            self._page_through = through

    def _start_following(self) -> None:
        self.seen = max(self.seen, self._page_through)
        self._follows = True
        self._hub.follow(self)
        if self._progress_wanted:
            self._append_progress()

    def _append_progress(self) -> None:
        self._progress_wanted = False
        if self._fault is not None:
            return
        if self._waiting and isinstance(self._waiting[-1], Progress):
            self._waiting.pop()  # The newer one says it, too; so none pile up.
        self._waiting.append(Progress(max(self._hub.revision, self.seen)))
        self._arrived.set()

    def _note_seen(self, event: Event) -> None:
        self.seen = max(self.seen, event.revision)
