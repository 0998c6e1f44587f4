"""Upkeep: check a store, shrink it, and copy it while it runs."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from mooring.store.contract import Entry
from mooring.store.errors import DamagedError, FolderError, FormatError, LockedError
from mooring.store.sqlite.folder import Folder, make_file, sync_file, sync_folder
from mooring.store.sqlite.reads import read_entries, read_state
from mooring.store.sqlite.schema import connect_reader, connect_writer, stored_format
from mooring.store.sqlite.writes import sweep, write_state

FINDINGS_MAX = 100

Examine = Callable[[Iterable[Entry]], Iterable[str]]  # says what is wrong with values


class Shrunk(NamedTuple):
    """What compaction made of a store: its bytes on disk and its changes, before and after."""

    revision: int
    bytes_before: int
    bytes_after: int
    changes_before: int
    changes_after: int


class Summary(NamedTuple):
    """How a store is, in numbers."""

    format: int
    revision: int
    compacted: int
    entries: int
    changes: int
    bytes: int


class Law(NamedTuple):
    """A query that finds what must not be; the text is filled with its columns."""

    text: str
    query: str


_LAWS = (
    Law(
        "database: {} {} does not belong to a store",
        "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view')",
    ),
    Law(
        "{}: current is revision {}, which is not there",
        """SELECT current.key, current.revision FROM current
           LEFT JOIN change USING (revision) WHERE change.revision IS NULL""",
    ),
    Law(
        "{}: current is revision {}, which belongs to {}",
        """SELECT current.key, current.revision, change.key FROM current
           JOIN change USING (revision) WHERE change.key <> current.key""",
    ),
    Law(
        "{}: current is revision {}, the newest is {}",
        """SELECT current.key, current.revision, newest.revision FROM current
           JOIN (SELECT key, max(revision) AS revision FROM change GROUP BY key) AS newest
           USING (key) WHERE newest.revision <> current.revision""",
    ),
    Law(
        "{}: current is revision {}, which deleted it",
        """SELECT current.key, current.revision FROM current
           JOIN change USING (revision) WHERE change.value IS NULL""",
    ),
    Law(
        "{}: revision {} is its newest and no deletion, yet the key is not current",
        """SELECT change.key, change.revision
           FROM (SELECT max(revision) AS revision FROM change GROUP BY key)
           JOIN change USING (revision) LEFT JOIN current ON current.key = change.key
           WHERE change.value IS NOT NULL AND current.key IS NULL""",
    ),
    Law(
        "{}: revision {} follows revision {}, which is not there",
        """SELECT change.key, change.revision, change.previous FROM change
           LEFT JOIN change AS before ON before.revision = change.previous
           WHERE change.previous <> 0 AND before.revision IS NULL
           AND change.revision > (SELECT compacted FROM state)""",
    ),
    Law(
        "{}: revision {} is beyond the store's, {}",
        """SELECT change.key, change.revision, state.revision FROM change
           JOIN state WHERE change.revision > state.revision""",
    ),
    Law(
        "state: revision {}, compacted {}, swept {} are not in order",
        """SELECT revision, compacted, swept FROM state
           WHERE NOT (0 <= swept AND swept <= compacted AND compacted <= revision)""",
    ),
)


def check(folder: Path, examine: Examine = lambda _: ()) -> Sequence[str]:
    """Return what contradicts itself in a folder, whether a server runs on it or not.

    Values are only bytes here; whoever knows what they mean examines them.
    """
    with _reading(folder) as connection, _snapshot(connection):
        found = [*findings(connection)]
        with suppress(sqlite3.DatabaseError):  # A damaged database was told of.
            found += islice(examine(read_entries(connection)), FINDINGS_MAX)
    return found[:FINDINGS_MAX]


def summarize(folder: Path) -> Summary:
    """Return how the store of a folder is, whether a server runs on it or not."""
    database = Folder(folder).database
    with _reading(folder) as connection, _snapshot(connection):
        state = read_state(connection)
        (entries,) = connection.execute("SELECT count(*) FROM current").fetchone()
        return Summary(
            stored_format(connection, folder),
            state.revision,
            state.compacted,
            int(entries),
            _changes(connection),
            _bytes_on_disk(database),
        )


def compact(folder: Path) -> Shrunk:
    """Forget all history of a folder that no server has, and give its room back."""
    if not Folder(folder).database.is_file():
        raise FormatError(folder, "holds no store")
    with Folder(folder) as locked:
        before = _bytes_on_disk(locked.database)
        try:
            with closing(connect_writer(locked.database)) as connection:
                changes = _changes(connection)
                revision = _forget_history(connection)
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                left = _changes(connection)
        except sqlite3.Error as error:
            if error.sqlite_errorname == "SQLITE_FULL":
                fact = f"as much room again as the store has ({before:,} bytes) must be free"
                raise FolderError(folder, fact) from error
            raise DamagedError(folder, f"cannot be compacted: {error}") from error
        return Shrunk(revision, before, _bytes_on_disk(locked.database), changes, left)


def backup(folder: Path, target: Path) -> int:
    """Copy the store of a folder into a file, whether a server runs on it or not."""
    with _reading(folder) as connection, _snapshot(connection):
        return copy_into(connection, target)


def findings(connection: sqlite3.Connection) -> Sequence[str]:
    """Return what contradicts itself, up to a number; an empty list if all is well."""
    try:
        rows = connection.execute(f"PRAGMA integrity_check({FINDINGS_MAX})").fetchall()
        found = [f"database: {text}" for (text,) in rows if text != "ok"]
        for law in _LAWS:
            broken = connection.execute(law.query).fetchmany(FINDINGS_MAX)
            found += [law.text.format(*row) for row in broken]
    except sqlite3.DatabaseError as error:
        return [f"database: {error}"]
    return found[:FINDINGS_MAX]


def copy_into(connection: sqlite3.Connection, target: Path) -> int:
    """Write what a connection sees into a file, wholly or not at all; return its revision."""
    begun = target.with_name(f"{target.name}.writing")
    try:
        begun.unlink(missing_ok=True)
        make_file(begun)
        with closing(sqlite3.connect(begun, isolation_level=None)) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
            revision = read_state(copy).revision
        sync_file(begun)
        os.replace(begun, target)
        sync_folder(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise FolderError(target, f"cannot be written: {error}") from error
    finally:
        begun.unlink(missing_ok=True)
    return revision


def _forget_history(connection: sqlite3.Connection) -> int:
    """Remove all that was superseded, in one transaction; return the revision."""
    connection.execute("BEGIN IMMEDIATE")
    state = read_state(connection)
    state = state._replace(compacted=state.revision)
    while state.swept < state.compacted:
        state = sweep(connection, state)
    write_state(connection, state)
    connection.execute("COMMIT")
    return state.revision


def _changes(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM change").fetchone()
    return int(count)


def _bytes_on_disk(database: Path) -> int:
    files = (database, Path(f"{database}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection to read a store with.

    Where a server runs, it only reads. Where none does, a log may have been left behind that is
    to be taken in first, which needs the lock and the right to write.
    """
    folder = Folder(path)
    if not folder.database.is_file():
        raise FormatError(path, "holds no store")
    try:
        with closing(_connect(folder)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise DamagedError(path, f"cannot be read: {error}") from error
    finally:
        folder.unlock()


def _connect(folder: Folder) -> sqlite3.Connection:
    try:
        folder.lock()
    except LockedError:
        return connect_reader(folder.database)
    return connect_writer(folder.database)


@contextmanager
def _snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Have all reads see the same state."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
