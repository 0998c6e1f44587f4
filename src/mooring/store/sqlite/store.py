"""The store on SQLite: the contract's verbs, each handed to the writer or to a reader."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from mooring.store.contract import Change, Deletion, Entry, Page, Put
from mooring.store.errors import ClosedError, FolderError
from mooring.store.hub import Hub, HubWatch, Stretch
from mooring.store.keys import check_key, check_list, check_prefix, check_revision, check_write
from mooring.store.sqlite import reads, upkeep
from mooring.store.sqlite.folder import Folder
from mooring.store.sqlite.jobs import Compact, Expire, Stop
from mooring.store.sqlite.readers import Readers
from mooring.store.sqlite.recent import Known, Recent
from mooring.store.sqlite.schema import connect_writer
from mooring.store.sqlite.writer import Writer
from mooring.store.sqlite.writes import Create, Delete, Update, Write

Clock = Callable[[], float]  # seconds since 1970


@asynccontextmanager
async def open_sqlite(folder: Path, *, clock: Clock = time.time) -> AsyncIterator[SqliteStore]:
    """Open the store in a folder, which is made if it is not there; close it at the end."""
    store = await SqliteStore.open(folder, clock=clock)
    try:
        yield store
    finally:
        await store.close()


class SqliteStore:
    """A store in a folder that no other server has; belongs to the event loop that opened it."""

    def __init__(self, folder: Folder, connection: sqlite3.Connection, clock: Clock) -> None:
        self._folder = folder
        self._connection = connection
        self._readers = Readers(folder.database)
        self._recent = Recent()
        self._hub = Hub(reads.read_revision(connection), self._past)
        self._writer = Writer(
            connection,
            loop=asyncio.get_running_loop(),
            publish=self._publish,
            clock=clock,
        )
        self._is_closed = False

    @classmethod
    async def open(cls, path: Path, *, clock: Clock = time.time) -> SqliteStore:
        """Return the store in a folder, or raise FolderError."""
        folder = Folder(path)
        await asyncio.to_thread(folder.lock)
        try:
            connection = await asyncio.to_thread(connect_writer, folder.database)
            try:
                return cls(folder, connection, clock)
            except BaseException:
                connection.close()
                raise
        except (sqlite3.Error, OSError) as error:
            folder.unlock()
            raise FolderError(path, f"cannot be opened: {error}") from error
        except BaseException:
            folder.unlock()
            raise

    # --- reading

    async def revision(self) -> int:
        """Return the newest revision."""
        return await self._readers.run(reads.read_revision)

    async def get(self, key: str, *, at: int | None = None) -> Entry | None:
        """Return what the key holds, now or at a revision."""
        check_key(key)
        check_revision(at or 0)
        if at is not None:
            return await self._readers.run(reads.read_entry, key, at)
        known = self._recent.find(key)
        if known is None:
            entry, revision = await self._readers.run(reads.read_now, key)
            self._recent.note(key, entry, revision)
            known = self._recent.find(key) or Known(entry, revision)
        return known.entry

    async def list(
        self, prefix: str, *, limit: int | None = None, after: str = "", at: int | None = None
    ) -> Page:
        """Return entries below the prefix whose keys come after a key, now or at a revision."""
        check_list(prefix, limit, after)
        check_revision(at or 0)
        return await self._readers.run(reads.read_page, prefix, limit, after, at)

    async def watch(self, prefix: str, *, after: int, events_max: int = 10_000) -> HubWatch:
        """Return a watch of all changes after a revision; raises RevisionError if it cannot be."""
        check_prefix(prefix)
        check_revision(after)
        await self._readers.run(reads.read_kept, after)
        return self._hub.watch(prefix, after, events_max)

    async def _past(self, prefix: str, after: int, through: int) -> Stretch:
        return await self._readers.run(reads.read_stretch, prefix, after, through)

    # --- writing

    async def create(self, key: str, value: bytes, *, ttl_s: int | None = None) -> Entry:
        """Write a key that is not there, or raise KeyExistsError."""
        check_write(key, value, ttl_s)
        return _put(await self._write(Create(key, value, ttl_s)))

    async def update(
        self, key: str, value: bytes, *, expected: int, ttl_s: int | None = None
    ) -> Entry:
        """Write a key that has the expected revision, or raise ConflictError or KeyMissingError."""
        check_write(key, value, ttl_s)
        return _put(await self._write(Update(key, value, expected, ttl_s)))

    async def delete(self, key: str, *, expected: int) -> Deletion:
        """Delete a key that has the expected revision, or raise as update does."""
        check_key(key)
        change = await self._write(Delete(key, expected))
        assert isinstance(change, Deletion)
        return change

    async def compact(self, revision: int) -> None:
        """Forget what happened up to a revision; returns when its room is free."""
        check_revision(revision)
        await self._writer.submit(Compact(revision))

    async def expire(self) -> None:
        """Delete keys whose time is over now; the writer does so by itself before long."""
        await self._writer.submit(Expire())

    async def _write(self, write: Write) -> Change | None:
        return await self._writer.submit(write)

    def _publish(self, changes: Sequence[Change]) -> None:
        self._recent.note_all(changes)
        self._hub.publish(changes)

    # --- upkeep

    async def check(self) -> Sequence[str]:
        """Return what contradicts itself in the store; nothing, if all is well."""
        return await self._readers.run(upkeep.findings)

    async def backup(self, target: Path) -> int:
        """Copy the store as it is now into a file; return the revision of the copy."""
        return await self._readers.run(upkeep.copy_into, target)

    async def close(self) -> None:
        """Finish what was begun and close; all watches end with ClosedError."""
        if self._is_closed:
            return
        self._is_closed = True
        await self._writer.submit(Stop())
        self._hub.close(ClosedError())
        await asyncio.to_thread(self._close_files)

    def _close_files(self) -> None:
        # Readers first: the last connection to close moves the log into the database.
        self._readers.close()
        self._connection.close()
        self._folder.unlock()


def _put(change: Change | None) -> Entry:
    assert isinstance(change, Put)
    return change.entry
