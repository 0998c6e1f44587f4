"""The folder of a store: its lock, its database, and the format of its tables.

A database is made beside its place and renamed into it. So one that is empty was emptied by
somebody, and is refused as one that is missing is where there was one: the *record*, a file outside
the folder, has the id of the store that belongs there.

`change` is the history and holds every value once. `current` maps each key to the change that made
its value. `state` has one row, updated by every commit:

    revision    the newest; kept apart, because the newest change itself may be compacted
    compacted   changes up to here may be gone
    swept       up to here, compacted changes are deleted

`identity` has one row with the id of the store, a UUID. Stores of older versions get it when they
are opened.

# value: NULL in a change that deleted the key
# previous: revision of the change that this one supersedes, 0 if it created the key
# expires: milliseconds since 1970
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from moorage.kit.atomic_file import read_bounded, replace_file, sync_folder
from moorage.store.errors import DamagedError, FolderError, FormatError, LockedError

DATABASE_FILE = "store.db"
LOCK_FILE = "lock"
APPLICATION_ID = 0x4D4F4F52  # "MOOR", in the header of the file
PAGE_BYTES = 4096  # small, because a commit writes whole pages
CACHE_KIB = 32 * 1024
CHECKPOINT_PAGES = 4000
BUSY_MS = 10_000

HEADER = b"SQLite format 3\0"
HEADER_BYTES = 100
RECORD_FILE = "store.id"
RECORD_BYTES_MAX = 100
RESTORE_REMEDY = (
    "restore a backup (moor store restore), or remove what is left of the cluster (moor reset)"
)

_IDENTITY = """CREATE TABLE IF NOT EXISTS identity (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1), id TEXT NOT NULL)"""

LOG = logging.getLogger(__name__)

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
        with suppress(OSError):  # a full disk: the lock holds without the number
            os.ftruncate(self._lock, os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0))

    def lock_for_reading(self) -> None:
        """Keep servers out without writing anything, or raise LockedError if there is one."""
        try:
            self._lock = os.open(self.path / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return  # no server was ever here
        except BlockingIOError:
            self.unlock()
            raise LockedError(self.path, "in use by a server") from None
        except OSError as error:
            raise FolderError(self.path, f"cannot be used: {error.strerror}") from error

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
    """Return the one connection that writes, with the stored format migrated.

    Without a database there is a new one, or FolderError if there must have been one.
    """
    if is_database_missing(database):
        _make_database(database, steps)
    check_header(database)
    connection = _connect(database, "rw")
    try:
        bring_up(connection, database.parent, steps)
        _set_up_writer(connection)
        _check_size(connection, database)
        sync_folder(database.parent)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_again(database: Path) -> sqlite3.Connection:
    """Return another connection that writes, after the one before failed."""
    connection = _connect(database, "rw")
    try:
        _set_up_writer(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up_writer(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {4 * CHECKPOINT_PAGES * PAGE_BYTES}")


def is_database_missing(database: Path) -> bool:
    """Return whether there is no database, or raise DamagedError if its log says there was one."""
    if database.exists():
        return False
    if is_filled(Path(f"{database}-wal")):
        raise _gone(database, "is missing, but its log is there")
    return True


def is_filled(path: Path) -> bool:
    """Return whether a file exists and is not empty."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def check_header(database: Path) -> None:
    """Return if a file begins as a database does, or raise FolderError. Nothing is written."""
    with database.open("rb") as file:
        header = file.read(HEADER_BYTES)
    if not header:
        raise _gone(database, "is empty (0 bytes)")
    if not header.startswith(HEADER):
        raise FormatError(database, "not a database")
    page_bytes, pages = (int.from_bytes(header[at : at + size]) for at, size in ((16, 2), (28, 4)))
    if not is_filled(Path(f"{database}-wal")):  # else the log may have what is missing
        _compare_size(database, pages * page_bytes)


def _gone(database: Path, fact: str) -> DamagedError:
    return DamagedError(database, f"{fact}; {RESTORE_REMEDY}")


def _make_database(database: Path, steps: Sequence[Step]) -> None:
    """Make an empty store, as a whole or not at all."""
    unfinished = database.with_suffix(".creating")
    for end in ("", "-journal"):
        Path(f"{unfinished}{end}").unlink(missing_ok=True)
    make_file(unfinished)
    with closing(_connect(unfinished, "rw")) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        bring_up(connection, database.parent, steps)
    sync_file(unfinished)
    os.replace(unfinished, database)
    sync_folder(database.parent)


def _check_size(connection: sqlite3.Connection, database: Path) -> None:
    """Raise DamagedError if a database whose log is applied is smaller than it should be."""
    try:
        _, in_log, applied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.OperationalError:  # a full disk; the log has the pages that are missing
        return
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    if in_log == applied:
        _compare_size(database, pages * page_bytes)


def _compare_size(database: Path, wanted: int) -> None:
    found = database.stat().st_size
    if found < wanted:
        raise _gone(database, f"has {found:,} bytes, should have {wanted:,}")


def connect_reader(database: Path) -> sqlite3.Connection:
    """Return a connection that can neither write nor checkpoint, with all its files open.

    SQLite before 3.51.3 can damage its log when two connections checkpoint at once.
    """
    connection = _connect(database, "ro")
    try:
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()  # opens the log, too
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_closed(database: Path) -> sqlite3.Connection:
    """Return a connection to a database that no server uses; it leaves no file behind or changed.

    Only a log that is left needs its index, which SQLite makes beside it.
    """
    check_header(database)
    if is_filled(Path(f"{database}-wal")):
        return connect_reader(database)
    return _connect(database, "ro", "&immutable=1")


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


# --- the store that belongs into a folder ---------------------------------------------------------


def read_record(record: Path | None) -> str | None:
    """Return the id of the store that belongs into a folder; None: there was none so far."""
    if record is None:
        return None
    try:
        return read_bounded(record, RECORD_BYTES_MAX).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FolderError(record, f"cannot be read: {error}") from error


def check_record(database: Path, record: Path | None) -> None:
    """Raise DamagedError if a store was here and its database is missing."""
    if read_record(record) is not None and is_database_missing(database):
        raise _gone(database, "is missing")


def keep_record(connection: sqlite3.Connection, folder: Path, record: Path | None) -> None:
    """Note which store belongs into a folder, or raise DamagedError if it is another one."""
    known, found = read_record(record), store_id(connection)
    if record is None or known == found or not found:
        return
    if known:
        fact = f"holds the store {found}, but {known} belongs here"
        remedy = f"put that one back, or remove {record} to go on with this one"
        raise DamagedError(folder, f"{fact}; {remedy}")
    try:
        replace_file(record, f"{found}\n".encode())
    except OSError as error:
        LOG.warning("%s cannot be written: %s", record, error.strerror or error)


def store_id(connection: sqlite3.Connection) -> str:
    """Return the id of a store, which gets one if it has none; empty if it cannot."""
    try:
        connection.execute(_IDENTITY)
        connection.execute("INSERT OR IGNORE INTO identity VALUES (1, ?)", (str(uuid4()),))
        (found,) = connection.execute("SELECT id FROM identity").fetchone()
    except sqlite3.OperationalError as error:  # a full disk
        LOG.warning("the store gets no id: %s", error)
        return ""
    return str(found)


def set_store_id(connection: sqlite3.Connection, known: str) -> None:
    """Give a store the id of another one, whose place it takes."""
    connection.execute(_IDENTITY)
    connection.execute("INSERT OR REPLACE INTO identity VALUES (1, ?)", (known,))


def stored_format(connection: sqlite3.Connection, folder: Path) -> int:
    """Return the version of the stored format, 0 for an empty file, or raise FormatError."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if tables and application != APPLICATION_ID:
        raise FormatError(folder, "a database, but not of a store")
    return int(version)


def _connect(database: Path, mode: str, options: str = "") -> sqlite3.Connection:
    # Autocommit: transactions begin and end explicitly.
    uri = f"{database.absolute().as_uri()}?mode={mode}{options}"
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
