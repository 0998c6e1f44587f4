"""The contract of every store, on one page.

A store maps keys to values. Each write is one *change* and has one *revision*; revisions are
shared by all keys and only ever grow. What happened is kept until it is compacted.

1. A write that returned is durable. A write that raised RefusedError changed nothing. After
   UnavailableError, or when the caller was cancelled, it may have happened, wholly or not at all.
2. `get` and `list` see every write that returned before they were called. A list is the state at
   exactly one revision, which it names; its further pages are read at that revision.
3. `watch(prefix, after=r)` delivers every change with a revision above r once and in order. With
   what a list at r returned, changes replayed give what a later list returns.
4. After `compact(c)`, states before c and changes up to c are gone: asking for them is
   TooOldError. The state at c, and all that came later, are kept.
5. A key with a time to live is deleted some time after it has passed, by a change like any other.
   An update gives a new time to live, or none.
6. A reader that leaves more changes lying than the watch may keep is cut off: SlowWatcherError.

# key: text, ordered by code points; see `keys` for the bounds
# revision: of a store, the newest; of an entry, that of its last change; 0: before any
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
    """An entry was deleted; `previous` is what it was."""

    previous: Entry
    revision: int

    @property
    def key(self) -> str:
        """Return the key that changed."""
        return self.previous.key


class Progress(NamedTuple):
    """All changes up to this revision were delivered."""

    revision: int


Change = Put | Deletion
Event = Put | Deletion | Progress


class Page(NamedTuple):
    """Entries in the order of their keys, as of `revision`; `remaining` more come after them."""

    entries: Sequence[Entry]
    revision: int
    remaining: int = 0


class Watch(Protocol):
    """Changes below a prefix; for one reader."""

    async def batch(self) -> Sequence[Event]:
        """Return the events that are there, at least one; wait for the first."""

    def request_progress(self) -> None:
        """Have a Progress delivered, after all changes up to now."""

    def close(self) -> None:
        """End the watch; a reader that waits gets ClosedError."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Event: ...


class Store(Protocol):
    """Keys, values, revisions and changes."""

    async def revision(self) -> int:
        """Return the newest revision."""

    async def get(self, key: str, *, at: int | None = None) -> Entry | None:
        """Return what the key holds, now or at a revision."""

    async def list(
        self, prefix: str, *, limit: int | None = None, after: str = "", at: int | None = None
    ) -> Page:
        """Return entries below the prefix whose keys come after a key, now or at a revision."""

    async def create(self, key: str, value: bytes, *, ttl_s: int | None = None) -> Entry:
        """Write a key that is not there, or raise KeyExistsError."""

    async def update(
        self, key: str, value: bytes, *, expected: int, ttl_s: int | None = None
    ) -> Entry:
        """Write a key that has the expected revision, or raise ConflictError or KeyMissingError."""

    async def delete(self, key: str, *, expected: int) -> Deletion:
        """Delete a key that has the expected revision, or raise as update does."""

    async def watch(self, prefix: str, *, after: int, events_max: int = 10_000) -> Watch:
        """Return a watch of all changes after a revision; raises TooOldError if some are gone."""

    async def compact(self, revision: int) -> None:
        """Forget what happened up to a revision; without effect if that is forgotten already."""

    async def close(self) -> None:
        """Finish what was begun and close; all watches end with ClosedError."""
