"""The store on SQLite: the contract's verbs, each run by the writer or by a reader thread.

Recently used entries are cached. One server uses the folder, and the cache learns of every write
before its caller is answered, so a cached entry is what the database holds. A read may see a commit
before the cache does: therefore each cached entry has the revision up to which it is valid, and an
older one never replaces it.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Concatenate, ParamSpec, TypeVar

from msgspec import Struct

from moorage.kit.lru import LRU
from moorage.store.broadcaster import Broadcaster, BroadcastWatch, HistoryPage
from moorage.store.contract import Deletion, Entry, KeyChange, Page, Put
from moorage.store.errors import (
    ClosedError,
    DamagedError,
    FolderError,
    OverloadedError,
    UnavailableError,
)
from moorage.store.keys import check_key, check_list, check_prefix, check_revision, check_write
from moorage.store.sqlite import maintenance, transactions
from moorage.store.sqlite.database import (
    RESTORE_REMEDY,
    Folder,
    check_record,
    connect_reader,
    connect_writer,
    keep_record,
)
from moorage.store.sqlite.disk import disk_trouble
from moorage.store.sqlite.jobs import Compact, Expire, Stop
from moorage.store.sqlite.transactions import CreateKey, DeleteKey, UpdateKey
from moorage.store.sqlite.writer import Writer

READERS = 4
WAITING_READS_MAX = 20_000
CACHE_BYTES_MAX = 32 * 2**20
KEY_COST_BYTES = 300  # of a cached key, beside its text and value

Clock = Callable[[], float]  # seconds since 1970
P = ParamSpec("P")
R = TypeVar("R")


@asynccontextmanager
async def open_sqlite(
    folder: Path, *, clock: Clock = time.time, record: Path | None = None
) -> AsyncIterator[SqliteStore]:
    """Open the store in a folder, which is created if necessary; close it at the end.

    With a record, a file outside the folder, a store that was there before is never created anew.
    """
    store = await SqliteStore.open(folder, clock=clock, record=record)
    try:
        yield store
    finally:
        await store.close()


class SqliteStore:
    """A store in a folder that no other server uses, for the event loop that opened it."""

    def __init__(self, folder: Folder, connection: sqlite3.Connection, clock: Clock) -> None:
        self._folder = folder
        self._readers = Readers(folder.database)
        self._cache = EntryCache()
        self._broadcaster = Broadcaster(transactions.read_revision(connection), self._read_history)
        self._writer = Writer(
            connection,
            folder.database,
            loop=asyncio.get_running_loop(),
            publish=self._publish,
            clock=clock,
        )
        self._is_closed = False

    @classmethod
    async def open(
        cls, path: Path, *, clock: Clock = time.time, record: Path | None = None
    ) -> SqliteStore:
        """Return the store in a folder, or raise FolderError."""
        folder = Folder(path)
        try:
            check_record(folder.database, record)  # before a folder is made in place of one
        except OSError as error:
            raise _unopened(path, error) from error
        await asyncio.to_thread(folder.lock)
        try:
            connection = await asyncio.to_thread(connect_writer, folder.database)
            try:
                await asyncio.to_thread(keep_record, connection, path, record)
                return cls(folder, connection, clock)
            except BaseException:
                connection.close()
                raise
        except (sqlite3.Error, OSError) as error:
            folder.unlock()
            raise _unopened(path, error) from error
        except BaseException:
            folder.unlock()
            raise

    # --- reading

    async def revision(self) -> int:
        """Return the newest revision."""
        return await self._readers.run(transactions.read_revision)

    async def get(self, key: str, *, at: int | None = None) -> Entry | None:
        """Return the entry of a key, now or at a revision."""
        check_key(key)
        check_revision(at or 0)
        if at is not None:
            return await self._readers.run(transactions.read_entry, key, at)
        cached = self._cache.find(key)
        if cached is None:
            entry, revision = await self._readers.run(transactions.read_now, key)
            self._cache.add(key, entry, revision)
            cached = self._cache.find(key) or CachedEntry(entry, revision)
        return cached.entry

    async def list(
        self, prefix: str, *, limit: int | None = None, after: str = "", at: int | None = None
    ) -> Page:
        """Return entries below the prefix whose keys come after a key, now or at a revision."""
        check_list(prefix, limit, after)
        check_revision(at or 0)
        return await self._readers.run(transactions.read_page, prefix, limit, after, at)

    async def watch(self, prefix: str, *, after: int, events_max: int = 10_000) -> BroadcastWatch:
        """Watch all changes after a revision, or raise RevisionError."""
        check_prefix(prefix)
        check_revision(after)
        await self._readers.run(transactions.read_kept, after)
        return self._broadcaster.watch(prefix, after, events_max)

    async def _read_history(self, prefix: str, after: int, through: int) -> HistoryPage:
        return await self._readers.run(transactions.read_history, prefix, after, through)

    # --- writing

    async def create(self, key: str, value: bytes, *, ttl_s: int | None = None) -> Entry:
        """Create a key, or raise KeyExistsError."""
        check_write(key, value, ttl_s)
        return _put(await self._writer.submit(CreateKey(key, value, ttl_s)))

    async def update(
        self, key: str, value: bytes, *, expected: int, ttl_s: int | None = None
    ) -> Entry:
        """Update a key at the expected revision, or raise ConflictError or KeyMissingError."""
        check_write(key, value, ttl_s)
        return _put(await self._writer.submit(UpdateKey(key, value, expected, ttl_s)))

    async def delete(self, key: str, *, expected: int) -> Deletion:
        """Delete a key at the expected revision, or raise as update does."""
        check_key(key)
        change = await self._writer.submit(DeleteKey(key, expected))
        assert isinstance(change, Deletion)
        return change

    async def compact(self, revision: int) -> None:
        """Drop the history up to a revision; return when its space is free."""
        check_revision(revision)
        await self._writer.submit(Compact(revision))

    async def expire(self) -> None:
        """Delete expired keys now; the writer also does so by itself, a little later."""
        await self._writer.submit(Expire())

    def _publish(self, changes: Sequence[KeyChange]) -> None:
        self._cache.add_changes(changes)
        self._broadcaster.publish(changes)

    # --- maintenance

    async def trouble(self) -> str:
        """Return why nothing can be written now; empty: it can."""
        return self._writer.trouble or await asyncio.to_thread(self._look_at_disk)

    def _look_at_disk(self) -> str:
        try:
            self._writer.files.check()
        except UnavailableError as error:
            return str(error)
        except OSError as error:
            return error.strerror or str(error)
        return disk_trouble(self._folder.path)

    async def check(self) -> Sequence[str]:
        """Return the contradictions in the store."""
        return await self._readers.run(maintenance.findings)

    async def backup(self, target: Path) -> int:
        """Copy the store into a file; return the revision of the copy."""
        return await self._readers.run(maintenance.copy_into, target)

    async def close(self) -> None:
        """Finish running writes and close; all watches end with ClosedError."""
        if self._is_closed:
            return
        self._is_closed = True
        await self._writer.submit(Stop())
        self._broadcaster.close(ClosedError())
        await asyncio.to_thread(self._close_files)

    def _close_files(self) -> None:
        # Readers first: the last connection to close checkpoints the log.
        self._readers.close()
        self._connection.close()
        self._writer.files.forget_log()
        self._folder.unlock()

    @property
    def _connection(self) -> sqlite3.Connection:
        return self._writer.connection


def _unopened(folder: Path, error: Exception) -> FolderError:
    name = str(getattr(error, "sqlite_errorname", ""))
    if name.startswith("SQLITE_CORRUPT"):
        return DamagedError(folder, f"cannot be opened: {error}; {RESTORE_REMEDY}")
    return FolderError(folder, f"cannot be opened: {error}")


def _put(change: KeyChange | None) -> Entry:
    assert isinstance(change, Put)
    return change.entry


class Readers:
    """Runs reads in a few threads, each read in a transaction of its own."""

    def __init__(self, database: Path) -> None:
        self._connections = [connect_reader(database) for _ in range(READERS)]
        self._idle: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        for connection in self._connections:
            self._idle.put(connection)
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="store-reader")
        self._waiting = 0
        self._is_closed = False

    async def run(
        self,
        read: Callable[Concatenate[sqlite3.Connection, P], R],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> R:
        """Return the result of a read, which sees everything committed before."""
        if self._is_closed:
            raise ClosedError
        if self._waiting >= WAITING_READS_MAX:
            raise OverloadedError(f"{self._waiting} requests are waiting; try again later")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(
                self._threads,
                self._read,
                lambda connection: read(connection, *arguments, **options),
            )
        except sqlite3.Error as error:
            raise UnavailableError(f"reading failed: {error}") from error
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Finish running reads and close; called in a thread."""
        self._is_closed = True
        self._threads.shutdown(cancel_futures=True)
        for connection in self._connections:
            connection.close()

    def _read(self, read: Callable[[sqlite3.Connection], R]) -> R:
        connection = self._idle.get()
        try:
            connection.execute("BEGIN")
            try:
                return read(connection)
            finally:
                connection.execute("ROLLBACK")  # nothing to commit; frees the snapshot
        finally:
            self._idle.put(connection)


class CachedEntry(Struct, frozen=True):
    """The entry of a key, None if it does not exist, as of a revision."""

    entry: Entry | None
    revision: int


class EntryCache:
    """The entries of recently used keys, bounded in bytes."""

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._entries: LRU[str, CachedEntry] = LRU(bytes_max // KEY_COST_BYTES, bytes_max)
        self.find = self._entries.get

    def add(self, key: str, entry: Entry | None, revision: int) -> None:
        """Cache the entry of a key as of a revision, unless a newer one is cached."""
        cached = self._entries.get(key)
        if cached is None or cached.revision < revision:
            size = KEY_COST_BYTES + len(key) + (0 if entry is None else len(entry.value))
            self._entries.put(key, CachedEntry(entry, revision), size)

    def add_changes(self, changes: Iterable[KeyChange]) -> None:
        """Cache the entries that changes made."""
        for change in changes:
            entry = change.entry if isinstance(change, Put) else None
            self.add(change.key, entry, change.revision)
