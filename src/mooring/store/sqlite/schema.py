"""The stored format: its tables, its version, and the steps from each version to the next.

`change` is what happened and holds every value, once. `current` says which change made each key
what it is. `state` has one row, written with every commit:

    revision    the newest; kept apart, for the newest change itself may be compacted away
    compacted   changes up to here may be gone
    swept       changes up to here that are to be gone are

# value: NULL in a change that deleted the key
# previous: revision of the change that this one supersedes, 0 if it created the key
# expires: milliseconds since 1970
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from mooring.store.errors import FormatError
from mooring.store.sqlite.folder import make_file, sync_folder

Step = Callable[[sqlite3.Connection], None]

APPLICATION_ID = 0x4D4F4F52  # "MOOR", in the header of the file
PAGE_BYTES = 4096  # small, for a commit writes whole pages
CACHE_KIB = 32 * 1024
CHECKPOINT_PAGES = 4000
BUSY_MS = 10_000


def _first_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of format 1."""
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


# Step n brings format n to n + 1; format 0 is an empty file.
STEPS: tuple[Step, ...] = (_first_tables,)


def connect_writer(database: Path, steps: Sequence[Step] = STEPS) -> sqlite3.Connection:
    """Return the one connection that writes, with the stored format brought up to date."""
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
    """Return a connection that cannot write, nor move the log into the database.

    SQLite before 3.51.3 can damage its log when two connections checkpoint at once.
    """
    return _connect(database, "ro")


def bring_up(connection: sqlite3.Connection, folder: Path, steps: Sequence[Step] = STEPS) -> None:
    """Bring the stored format up to date, wholly or not at all."""
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
    """Return the version of the stored format, 0 for an empty file; raise if it is no store."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if tables and application != APPLICATION_ID:
        raise FormatError(folder, "a database, but not of a store")
    return int(version)


def _connect(database: Path, mode: str) -> sqlite3.Connection:
    # Autocommit: transactions are begun and ended in so many words.
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
