"""Faults of the store.

StoreError
├── RefusedError             nothing was written
│   ├── KeyExistsError       create: the key is there already
│   ├── KeyMissingError      update, delete: the key is not there
│   ├── ConflictError        update, delete: the entry has another revision than expected
│   ├── BadRequestError      a key, value, limit or time to live beyond what the store takes
│   ├── OverloadedError      too many requests are waiting
│   └── NoRoomError          the disk is full
├── RevisionError
│   ├── TooOldError          what happened since then is no longer all there: list anew
│   └── FutureRevisionError  the store has not come so far
├── SlowWatcherError         a watch that was cut off: its reader left too much lying
├── ClosedError              the store or the watch was closed
├── UnavailableError         the backend cannot be reached or failed; a write may have happened
└── FolderError              the folder of a store cannot be used
    ├── LockedError          another server has it
    ├── FormatError          what is there is not a store, or one of a newer version
    ├── DamagedError         what is there contradicts itself
    └── OccupiedError        restore: something is there already
"""

from __future__ import annotations

from pathlib import Path

from mooring.store.contract import Entry


class StoreError(Exception):
    """A fault of the store."""


class RefusedError(StoreError):
    """Nothing was written."""


class KeyExistsError(RefusedError):
    """The key to create is there already; `current` is what is there."""

    def __init__(self, current: Entry) -> None:
        super().__init__(f"{current.key}: already exists")
        self.current = current


class KeyMissingError(RefusedError):
    """The key to update or delete is not there."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key}: not found")
        self.key = key


class ConflictError(RefusedError):
    """The entry has another revision than expected; `current` is what is there."""

    def __init__(self, current: Entry, expected: int) -> None:
        super().__init__(f"{current.key}: expected revision {expected}, is {current.revision}")
        self.current = current
        self.expected = expected


class BadRequestError(RefusedError):
    """Something is asked for that no store takes."""


class OverloadedError(RefusedError):
    """Too many requests are waiting; try again later."""


class NoRoomError(RefusedError):
    """The disk is full."""


class RevisionError(StoreError):
    """A revision that cannot be read."""


class TooOldError(RevisionError):
    """A revision of which not all that changed since then is there; list anew."""

    def __init__(self, revision: int, compacted: int | None = None) -> None:
        oldest = "" if compacted is None else f"; the oldest kept is {compacted}"
        super().__init__(f"revision {revision} was compacted{oldest}")
        self.revision = revision
        self.compacted = compacted  # None: the backend does not tell


class FutureRevisionError(RevisionError):
    """A revision that the store has not reached."""

    def __init__(self, revision: int, current: int | None = None) -> None:
        newest = "" if current is None else f"; the newest is {current}"
        super().__init__(f"revision {revision} is not reached yet{newest}")
        self.revision = revision
        self.current = current  # None: the backend does not tell


class SlowWatcherError(StoreError):
    """A watch that was cut off; `revision` is the last one its reader was given all of."""

    def __init__(self, events_max: int, revision: int) -> None:
        super().__init__(
            f"more than {events_max} changes were waiting to be read; "
            f"watch anew after revision {revision}"
        )
        self.revision = revision


class ClosedError(StoreError):
    """The store or the watch was closed."""

    def __init__(self, what: str = "store") -> None:
        super().__init__(f"the {what} is closed")


class UnavailableError(StoreError):
    """The backend cannot be reached or failed; whether a write happened is not known."""


class FolderError(StoreError):
    """The folder of a store cannot be used."""

    def __init__(self, folder: Path, fact: str) -> None:
        super().__init__(f"{folder}: {fact}")
        self.folder = folder
        self.fact = fact


class LockedError(FolderError):
    """Another server has the folder."""


class FormatError(FolderError):
    """What is in the folder is not a store, or one of a newer version."""


class DamagedError(FolderError):
    """What is in the folder contradicts itself."""


class OccupiedError(FolderError):
    """The folder to restore into holds a store already."""
