"""Errors of the store.

StoreError
├── RefusedError             nothing was written
│   ├── KeyExistsError       create: the key exists already
│   ├── KeyMissingError      update, delete: the key does not exist
│   ├── ConflictError        update, delete: the entry has another revision than expected
│   ├── BadRequestError      a key, value, limit or time to live is out of bounds
│   ├── OverloadedError      too many requests are waiting
│   └── NoSpaceError         the disk is full
├── RevisionError
│   ├── TooOldError          the revision was compacted: list again
│   └── FutureRevisionError  the store has not reached the revision
├── SlowWatcherError         a watch was ended because its reader was too slow
├── ClosedError              the store or the watch was closed
├── UnavailableError         the backend cannot be reached or failed; a write may have happened
└── FolderError              the folder of a store cannot be used
    ├── LockedError          another server uses it
    ├── FormatError          it holds no store, or one of a newer version
    ├── DamagedError         the store contradicts itself
    └── OccupiedError        restore: a store exists already
"""

from __future__ import annotations

from pathlib import Path

from moorage.store.contract import Entry


class StoreError(Exception):
    """An error of the store."""


class RefusedError(StoreError):
    """Nothing was written."""


class KeyExistsError(RefusedError):
    """The key to create exists already; `current` is its entry."""

    def __init__(self, current: Entry) -> None:
        super().__init__(f"{current.key}: already exists")
        self.current = current


class KeyMissingError(RefusedError):
    """The key to update or delete does not exist."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key}: not found")
        self.key = key


class ConflictError(RefusedError):
    """The entry has another revision than expected; `current` is the entry."""

    def __init__(self, current: Entry, expected: int) -> None:
        super().__init__(f"{current.key}: expected revision {expected}, is {current.revision}")
        self.current = current
        self.expected = expected


class BadRequestError(RefusedError):
    """The request is out of bounds for every store."""


class OverloadedError(RefusedError):
    """Too many requests are waiting; try again later."""


class NoSpaceError(RefusedError):
    """The disk is full."""


class RevisionError(StoreError):
    """A revision cannot be read."""


class TooOldError(RevisionError):
    """Some changes since the revision are compacted; list again."""

    def __init__(self, revision: int, compacted: int | None = None) -> None:
        oldest = "" if compacted is None else f"; the oldest kept is {compacted}"
        super().__init__(f"revision {revision} was compacted{oldest}")
        self.revision = revision
        self.compacted = compacted  # None: the backend does not say


class FutureRevisionError(RevisionError):
    """The store has not reached the revision."""

    def __init__(self, revision: int, current: int | None = None) -> None:
        newest = "" if current is None else f"; the newest is {current}"
        super().__init__(f"revision {revision} is not reached yet{newest}")
        self.revision = revision
        self.current = current  # None: the backend does not say


class SlowWatcherError(StoreError):
    """A watch was ended; its reader received all changes up to `revision`."""

    def __init__(self, limit: str, revision: int) -> None:
        super().__init__(
            f"more than {limit} were waiting to be read; watch anew after revision {revision}"
        )
        self.revision = revision


class ClosedError(StoreError):
    """The store or the watch was closed."""

    def __init__(self, what: str = "store") -> None:
        super().__init__(f"the {what} is closed")


class UnavailableError(StoreError):
    """The backend cannot be reached or failed; whether a write happened is unknown."""


class FolderError(StoreError):
    """The folder of a store cannot be used."""

    def __init__(self, folder: Path, fact: str) -> None:
        super().__init__(f"{folder}: {fact}")
        self.folder = folder
        self.fact = fact


class LockedError(FolderError):
    """Another server uses the folder."""


class FormatError(FolderError):
    """The folder holds no store, or one of a newer version."""


class DamagedError(FolderError):
    """The store in the folder contradicts itself."""


class OccupiedError(FolderError):
    """The folder to restore into holds a store already."""
