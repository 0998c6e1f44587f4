"""The contract of every store, on one page.

A store maps keys to values. Each write is one *change* and has one *revision*; all keys share the
revisions, which only grow. The store keeps changes until they are compacted.

1. A write that returned is durable. A write that raised RefusedError changed nothing. After
   UnavailableError, or when the caller was cancelled, it may have happened, completely or not.
2. `get` and `list` see every write that returned before they were called. A list is the state at
   exactly one revision, which it names; its further pages are read at that revision.
3. `watch(prefix, after=r)` delivers every change with a revision above r once and in order. Changes
   replayed on a list at r give what a later list returns.
4. After `compact(c)`, states before c and changes up to c are gone: reading them raises
   TooOldError. The state at c and all later changes are kept.
5. A key with a time to live is deleted some time after it has passed, by a change like any other.
   An update sets a new time to live, or none.
6. A watch whose reader falls too far behind ends with SlowWatcherError.

# key: text, ordered by code points; see `keys` for the bounds
# revision: of a store, the newest; of an entry, its last change; 0: before the first
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self


class Entry(NamedTuple):
    """A key and its value, as of `revision`; the key was created at `created`."""

    key: str
    value: bytes
    created: int
    revision: int


class Put(NamedTuple):
    """An entry was created (no `previous`) or updated."""

    entry: Entry
    previous: Entry | None

    @property
    def key(self) -> str:
        """Return the key that changed."""
        return self.entry.key

    @property
    def revision(self) -> int:
        """Return the revision of the change."""
        return self.entry.revision


class Deletion(NamedTuple):
    """An entry was deleted; `previous` is its last value."""

    previous: Entry
    revision: int

    @property
    def key(self) -> str:
        """Return the key that changed."""
        return self.previous.key


class Progress(NamedTuple):
    """All changes up to this revision were delivered."""

    revision: int


KeyChange = Put | Deletion
Event = Put | Deletion | Progress


class Page(NamedTuple):
    """Entries in the order of their keys, as of `revision`; `remaining` more come after them."""

    entries: Sequence[Entry]
    revision: int
    remaining: int = 0


class Watch(Protocol):
    """Changes below a prefix; for one reader."""

    async def batch(self) -> Sequence[Event]:
        """Return pending events, at least one; wait for the first."""

    def request_progress(self) -> None:
        """Request a Progress after all changes up to now."""

    def close(self) -> None:
        """End the watch; a waiting reader gets ClosedError."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Event: ...


class Store(Protocol):
    """Keys, values, revisions and changes."""

    async def revision(self) -> int:
        """Return the newest revision."""

    async def get(self, key: str, *, at: int | None = None) -> Entry | None:
        """Return the entry of a key, now or at a revision."""

    async def list(
        self, prefix: str, *, limit: int | None = None, after: str = "", at: int | None = None
    ) -> Page:
        """Return entries below the prefix whose keys come after a key, now or at a revision."""

    async def create(self, key: str, value: bytes, *, ttl_s: int | None = None) -> Entry:
        """Create a key, or raise KeyExistsError."""

    async def update(
        self, key: str, value: bytes, *, expected: int, ttl_s: int | None = None
    ) -> Entry:
        """Update a key at the expected revision, or raise ConflictError or KeyMissingError."""

    async def delete(self, key: str, *, expected: int) -> Deletion:
        """Delete a key at the expected revision, or raise as update does."""

    async def watch(self, prefix: str, *, after: int, events_max: int = 10_000) -> Watch:
        """Watch all changes after a revision, or raise TooOldError if some are gone."""

    async def trouble(self) -> str:
        """Return why nothing can be written now; empty: it can, as far as is known."""

    async def compact(self, revision: int) -> None:
        """Drop the history up to a revision, if that was not done before."""

    async def close(self) -> None:
        """Finish running writes and close; all watches end with ClosedError."""
