"""A store in memory, gone when the process ends: for tests, suites and experiments.

It never waits for a disk or a thread. So with simulated time (`moorage.kit.clock`) the same
steps give the same history.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import islice

from moorage.store.broadcaster import Broadcaster, BroadcastWatch, HistoryPage
from moorage.store.contract import Deletion, Entry, KeyChange, Page, Put
from moorage.store.errors import (
    ClosedError,
    FutureRevisionError,
    KeyExistsError,
    TooOldError,
)
from moorage.store.keys import (
    check_expected,
    check_key,
    check_list,
    check_prefix,
    check_revision,
    check_write,
)

PAGE_CHANGES_MAX = 500
EXPIRE_EVERY_S = 10.0


@asynccontextmanager
async def open_memory(*, clock: Callable[[], float] = time.time) -> AsyncIterator[MemoryStore]:
    """Open an empty store; close it at the end."""
    store = MemoryStore(clock)
    expiring = asyncio.create_task(store.expire_regularly())
    try:
        yield store
    finally:
        expiring.cancel()
        await asyncio.gather(expiring, return_exceptions=True)
        await store.close()


class MemoryStore:
    """Entries by key, and the changes since the last compaction."""

    def __init__(self, clock: Callable[[], float], of: MemoryStore | None = None) -> None:
        """Begin empty, or with the content of a closed store."""
        self._clock = clock  # seconds since 1970
        self._entries: dict[str, Entry] = {} if of is None else of._entries
        self._expires: dict[str, float] = {} if of is None else of._expires
        # Revisions have no gaps.
        self._changes: list[KeyChange] = [] if of is None else of._changes
        self._compacted: int = 0 if of is None else of._compacted
        self._broadcaster = Broadcaster(self._revision, self._read_history)
        self._is_closed = False

    # --- reading

    async def trouble(self) -> str:
        """Return nothing: memory can always be written."""
        return ""

    async def revision(self) -> int:
        """Return the newest revision."""
        return self._revision

    async def get(self, key: str, *, at: int | None = None) -> Entry | None:
        """Return the entry of a key, now or at a revision."""
        check_key(key)
        return self._state_at(at).get(key)

    async def list(
        self, prefix: str, *, limit: int | None = None, after: str = "", at: int | None = None
    ) -> Page:
        """Return entries below the prefix whose keys come after a key, now or at a revision."""
        check_list(prefix, limit, after)
        state = self._state_at(at)
        keys = sorted(key for key in state if key.startswith(prefix) and key > after)
        entries = [state[key] for key in islice(keys, limit)]
        revision = self._revision if at is None else at
        return Page(entries, revision, len(keys) - len(entries))

    async def watch(self, prefix: str, *, after: int, events_max: int = 10_000) -> BroadcastWatch:
        """Watch all changes after a revision, or raise RevisionError."""
        check_prefix(prefix)
        self._check_kept(after)
        return self._broadcaster.watch(prefix, after, events_max)

    # --- writing

    async def create(self, key: str, value: bytes, *, ttl_s: int | None = None) -> Entry:
        """Create a key, or raise KeyExistsError."""
        check_write(key, value, ttl_s)
        self._check_open()
        if key in self._entries:
            raise KeyExistsError(self._entries[key])
        revision = self._revision + 1
        return self._put(Entry(key, value, revision, revision), None, ttl_s)

    async def update(
        self, key: str, value: bytes, *, expected: int, ttl_s: int | None = None
    ) -> Entry:
        """Update a key at the expected revision, or raise ConflictError or KeyMissingError."""
        check_write(key, value, ttl_s)
        previous = self._as_expected(key, expected)
        return self._put(Entry(key, value, previous.created, self._revision + 1), previous, ttl_s)

    async def delete(self, key: str, *, expected: int) -> Deletion:
        """Delete a key at the expected revision, or raise as update does."""
        check_key(key)
        return self._delete(self._as_expected(key, expected))

    async def compact(self, revision: int) -> None:
        """Drop the history up to a revision, if that was not done before."""
        check_revision(revision)
        self._check_open()
        if revision > self._revision:
            raise FutureRevisionError(revision, self._revision)
        if revision > self._compacted:
            del self._changes[: revision - self._compacted]
            self._compacted = revision

    # --- time

    async def expire(self) -> None:
        """Delete expired keys now."""
        now = self._clock()
        for key in [key for key, due in self._expires.items() if due <= now]:
            self._delete(self._entries[key])

    async def expire_regularly(self) -> None:
        """Delete expired keys every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(EXPIRE_EVERY_S)
            await self.expire()

    async def close(self) -> None:
        """Close; all watches end with ClosedError."""
        self._is_closed = True
        self._broadcaster.close(ClosedError())

    # --- internals

    @property
    def _revision(self) -> int:
        return self._compacted + len(self._changes)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError

    def _check_kept(self, revision: int) -> None:
        check_revision(revision)
        self._check_open()
        if revision < self._compacted:
            raise TooOldError(revision, self._compacted)
        if revision > self._revision:
            raise FutureRevisionError(revision, self._revision)

    def _state_at(self, at: int | None) -> dict[str, Entry]:
        """Return all entries as of a revision: the current ones, with later changes undone."""
        self._check_open()
        if at is None:
            return self._entries
        self._check_kept(at)
        state = dict(self._entries)
        for change in reversed(self._changes[at - self._compacted :]):
            if change.previous is None:
                del state[change.key]
            else:
                state[change.key] = change.previous
        return state

    def _as_expected(self, key: str, expected: int) -> Entry:
        self._check_open()
        return check_expected(self._entries.get(key), key, expected)

    def _put(self, entry: Entry, previous: Entry | None, ttl_s: int | None) -> Entry:
        self._entries[entry.key] = entry
        self._expires.pop(entry.key, None)
        if ttl_s is not None:
            self._expires[entry.key] = self._clock() + ttl_s
        self._record(Put(entry, previous))
        return entry

    def _delete(self, previous: Entry) -> Deletion:
        del self._entries[previous.key]
        self._expires.pop(previous.key, None)
        deletion = Deletion(previous, self._revision + 1)
        self._record(deletion)
        return deletion

    def _record(self, change: KeyChange) -> None:
        self._changes.append(change)
        self._broadcaster.publish([change])

    async def _read_history(self, prefix: str, after: int, through: int) -> HistoryPage:
        self._check_kept(after)
        kept = self._changes[after - self._compacted : through - self._compacted]
        below = (change for change in kept if change.key.startswith(prefix))
        changes = list(islice(below, PAGE_CHANGES_MAX))
        is_all = len(changes) < PAGE_CHANGES_MAX
        return HistoryPage(changes, through if is_all else changes[-1].revision)
