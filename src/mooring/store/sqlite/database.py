"""The folder of a store: its lock, its database, and the format of its tables.

`change` is the history and holds every value once. `current` maps each key to the change that made
its value. `state` has one row, updated by every commit:

    revision    the newest; kept apart, because the newest change itself may be compacted
    compacted   changes up to here may be gone
    swept       up to here, compacted changes are deleted

# value: NULL in a change that deleted the key
# previous: revision of the change that this one supersedes, 0 if it created the key
# expires: milliseconds since 1970
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from mooring.kit.atomic_file import sync_folder
from mooring.store.errors import FolderError, FormatError, LockedError

DATABASE_FILE = "store.db"
LOCK_FILE = "lock"
APPLICATION_ID = 0x4D4F4F52  # "MOOR", in the header of the file
PAGE_BYTES = 4096  # small, because a commit writes whole pages
CACHE_KIB = 32 * 1024
CHECKPOINT_PAGES = 4000
BUSY_MS = 10_000

Step = Callable[[sqlite3.Connection], None]


class Folder:
    """A folder that stays locked until `unlock`; the kernel unlocks it if the process dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = -1

    @property
    def database(self) -> Path:
        """The path of the database."""
        return self.path / DATABASE_FILE

    def lock(self) -> None:
        """Create the folder if necessary and lock it, or raise FolderError."""
        try:
            make_folder(self.path)
            self._lock = os.open(
                self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise FolderError(self.path, f"cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._lock, 20, 0).decode(errors="replace").strip() or "?"
            self.unlock()
            raise LockedError(self.path, f"in use by process {holder}; stop it first") from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def unlock(self) -> None:
        """Unlock the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        self.lock()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.unlock()


def make_folder(path: Path) -> None:
    """Create a folder that only its owner can read, because it will hold secrets."""
    if not path.is_dir():
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(path.parent)


def make_file(path: Path) -> None:
    """Create an empty file that only its owner can read; SQLite copies its mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def sync_file(path: Path) -> None:
    """Return once the content of a file is on disk."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _first_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of format 1."""
    for statement in (
        """CREATE TABLE change (
               revision INTEGER PRIMARY KEY,
               key TEXT NOT NULL,
               created INTEGER NOT NULL,
               previous INTEGER NOT NULL,
               value BLOB)""",
        """CREATE TABLE current (
               key TEXT PRIMARY KEY,
               revision INTEGER NOT NULL,
               expires INTEGER) WITHOUT ROWID""",
        "CREATE INDEX current_expires ON current (expires) WHERE expires IS NOT NULL",
        """CREATE TABLE state (
               only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
               revision INTEGER NOT NULL,
               compacted INTEGER NOT NULL,
               swept INTEGER NOT NULL)""",
        "INSERT INTO state VALUES (1, 0, 0, 0)",
        f"PRAGMA application_id = {APPLICATION_ID}",
    ):
        connection.execute(statement)


# Step n migrates format n to n + 1; format 0 is an empty file.
STEPS: tuple[Step, ...] = (_first_tables,)


def connect_writer(database: Path, steps: Sequence[Step] = STEPS) -> sqlite3.Connection:
    """Return the one connection that writes, with the stored format migrated."""
    make_file(database)
    connection = _connect(database, "rw")
    try:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        bring_up(connection, database.parent, steps)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {4 * CHECKPOINT_PAGES * PAGE_BYTES}")
        sync_folder(database.parent)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(database: Path) -> sqlite3.Connection:
    """Return a connection that can neither write nor checkpoint.

    SQLite before 3.51.3 can damage its log when two connections checkpoint at once.
    """
    return _connect(database, "ro")


def bring_up(connection: sqlite3.Connection, folder: Path, steps: Sequence[Step] = STEPS) -> None:
    """Migrate the stored format to the newest in one transaction."""
    found = stored_format(connection, folder)
    if found > len(steps):
        fact = f"stored in format {found}, this version reads up to {len(steps)}; use a newer one"
        raise FormatError(folder, fact)
    if found == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[found:]:
            step(connection)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def stored_format(connection: sqlite3.Connection, folder: Path) -> int:
    """Return the version of the stored format, 0 for an empty file, or raise FormatError."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if tables and application != APPLICATION_ID:
        raise FormatError(folder, "a database, but not of a store")
    return int(version)


def _connect(database: Path, mode: str) -> sqlite3.Connection:
    # Autocommit: transactions begin and end explicitly.
    uri = f"{database.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    except sqlite3.DatabaseError as error:
        connection.close()
        if error.sqlite_errorname == "SQLITE_NOTADB":
            raise FormatError(database, "not a database") from error
        raise
    return connection
