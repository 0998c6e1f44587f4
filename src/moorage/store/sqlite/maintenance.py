"""Maintenance of a store: check, summarize, compact, copy while a server runs, and restore.

A restored store has the entries of its copy but no history, and its revision is far beyond the
copy's: clients that watched the lost store ask for revisions that are now too old, and list again.
If revisions continued from the copy's, some would be used twice.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from moorage.kit.atomic_file import sync_folder
from moorage.store.contract import Entry
from moorage.store.errors import (
    DamagedError,
    FolderError,
    FormatError,
    LockedError,
    OccupiedError,
    StoreError,
)
from moorage.store.sqlite.database import (
    Folder,
    bring_up,
    connect_reader,
    connect_to_closed,
    connect_writer,
    make_file,
    read_record,
    set_store_id,
    stored_format,
    sync_file,
)
from moorage.store.sqlite.transactions import (
    StoreState,
    read_entries,
    read_state,
    sweep,
    write_state,
)

FINDINGS_MAX = 100
RESTORE_GAP = 1_000_000_000  # more writes than a store sees between a copy and its loss
REVISION_MAX = 2**62
REPLACED = "replaced.db"  # the store that a restored one replaced

Examine = Callable[[Iterable[Entry]], Iterable[str]]  # returns findings about values


class CompactionReport(NamedTuple):
    """A store's bytes on disk and its changes, before and after compaction."""

    revision: int
    bytes_before: int
    bytes_after: int
    changes_before: int
    changes_after: int


class Summary(NamedTuple):
    """A store in numbers."""

    format: int
    revision: int
    compacted: int
    entries: int
    changes: int
    bytes: int


class Invariant(NamedTuple):
    """A query for rows that violate the invariant, and the message that their columns fill."""

    text: str
    query: str


_INVARIANTS = (
    Invariant(
        "database: {} {} does not belong to a store",
        "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view')",
    ),
    Invariant(
        "{}: current is revision {}, which is not there",
        """SELECT current.key, current.revision FROM current
           LEFT JOIN change USING (revision) WHERE change.revision IS NULL""",
    ),
    Invariant(
        "{}: current is revision {}, which belongs to {}",
        """SELECT current.key, current.revision, change.key FROM current
           JOIN change USING (revision) WHERE change.key <> current.key""",
    ),
    Invariant(
        "{}: current is revision {}, the newest is {}",
        """SELECT current.key, current.revision, newest.revision FROM current
           JOIN (SELECT key, max(revision) AS revision FROM change GROUP BY key) AS newest
           USING (key) WHERE newest.revision <> current.revision""",
    ),
    Invariant(
        "{}: current is revision {}, which deleted it",
        """SELECT current.key, current.revision FROM current
           JOIN change USING (revision) WHERE change.value IS NULL""",
    ),
    Invariant(
        "{}: revision {} is its newest and no deletion, yet the key is not current",
        """SELECT change.key, change.revision
           FROM (SELECT max(revision) AS revision FROM change GROUP BY key)
           JOIN change USING (revision) LEFT JOIN current ON current.key = change.key
           WHERE change.value IS NOT NULL AND current.key IS NULL""",
    ),
    Invariant(
        "{}: revision {} follows revision {}, which is not there",
        """SELECT change.key, change.revision, change.previous FROM change
           LEFT JOIN change AS before ON before.revision = change.previous
           WHERE change.previous <> 0 AND before.revision IS NULL
           AND change.revision > (SELECT compacted FROM state)""",
    ),
    Invariant(
        "{}: revision {} is beyond the store's, {}",
        """SELECT change.key, change.revision, state.revision FROM change
           JOIN state WHERE change.revision > state.revision""",
    ),
    Invariant(
        "state: revision {}, compacted {}, swept {} are not in order",
        """SELECT revision, compacted, swept FROM state
           WHERE NOT (0 <= swept AND swept <= compacted AND compacted <= revision)""",
    ),
)


def check(folder: Path, examine: Examine = lambda _: ()) -> Sequence[str]:
    """Return the contradictions in a store, whether a server is running or not.

    Values are only bytes here; `examine` knows what they mean.
    """
    with _reading(folder) as connection, _snapshot(connection):
        found = [*findings(connection)]
        with suppress(sqlite3.DatabaseError):  # reported by `findings`
            found += islice(examine(read_entries(connection)), FINDINGS_MAX)
    return found[:FINDINGS_MAX]


def summarize(folder: Path) -> Summary:
    """Return a store in numbers, whether a server is running or not."""
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


def compact(folder: Path) -> CompactionReport:
    """Drop all history of a store that no server uses, and free its disk space."""
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
                fact = f"compaction needs as much free space as the store has ({before:,} bytes)"
                raise FolderError(folder, fact) from error
            raise DamagedError(folder, f"cannot be compacted: {error}") from error
        return CompactionReport(revision, before, _bytes_on_disk(locked.database), changes, left)


def backup(folder: Path, target: Path) -> int:
    """Copy a store into a file, whether a server is running or not."""
    with _reading(folder) as connection, _snapshot(connection):
        return copy_into(connection, target)


def findings(connection: sqlite3.Connection) -> Sequence[str]:
    """Return contradictions, up to a number."""
    try:
        rows = connection.execute(f"PRAGMA integrity_check({FINDINGS_MAX})").fetchall()
        found = [f"database: {text}" for (text,) in rows if text != "ok"]
        for invariant in _INVARIANTS:
            broken = connection.execute(invariant.query).fetchmany(FINDINGS_MAX)
            found += [invariant.text.format(*row) for row in broken]
    except sqlite3.DatabaseError as error:
        return [f"database: {error}"]
    return found[:FINDINGS_MAX]


def copy_into(connection: sqlite3.Connection, target: Path) -> int:
    """Write the database into a complete file, or none; return its revision."""
    unfinished = target.with_name(f"{target.name}.writing")
    try:
        unfinished.unlink(missing_ok=True)
        make_file(unfinished)
        with closing(sqlite3.connect(unfinished, isolation_level=None)) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
            revision = read_state(copy).revision
        sync_file(unfinished)
        os.replace(unfinished, target)
        sync_folder(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise FolderError(target, f"cannot be written: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return revision


def _forget_history(connection: sqlite3.Connection) -> int:
    """Delete all superseded changes in one transaction; return the revision."""
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
    """Yield a connection to read a store, whether a server runs or not. Nothing is written."""
    folder = Folder(path)
    if not folder.database.is_file():
        raise FormatError(path, "holds no store")
    try:
        with closing(_connect_any(folder)) as connection:
            if stored_format(connection, path) == 0:
                raise FormatError(path, "holds a database, but no store")
            yield connection
    except sqlite3.Error as error:
        raise DamagedError(path, f"cannot be read: {error}") from error
    finally:
        folder.unlock()


def _connect_any(folder: Folder) -> sqlite3.Connection:
    try:
        folder.lock_for_reading()
    except LockedError:
        return connect_reader(folder.database)
    return connect_to_closed(folder.database)


@contextmanager
def _snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Let all reads see the same state."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


# --- restore --------------------------------------------------------------------------------------


def restore(
    source: Path, folder: Path, *, replaces: bool = False, record: Path | None = None
) -> int:
    """Restore a store into a folder from a copy; return its revision.

    An existing store raises OccupiedError, or is set aside with `replaces`. Then the new revision
    is higher than both. The restored store takes the place of the one that a record names.
    """
    with Folder(folder) as target:
        if target.database.exists() and not replaces:
            raise OccupiedError(folder, "holds a store already; move it away first")
        unfinished = target.database.with_suffix(".restoring")
        try:
            _copy_file(source, unfinished)
            revision = _start_anew(unfinished, _last_revision(target.database), read_record(record))
            _set_aside(target.database)
            os.replace(unfinished, target.database)
            sync_folder(folder)
        except sqlite3.Error as error:
            raise DamagedError(source, f"cannot be restored: {error}") from error
        except OSError as error:
            raise FolderError(folder, f"cannot be written: {error.strerror}") from error
        finally:
            unfinished.unlink(missing_ok=True)
        return revision


def make_store(database: Path, entries: Iterable[Entry], revision: int) -> None:
    """Write a database of entries, without history and times to live."""
    make_file(database)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        bring_up(connection, database)
        connection.execute("BEGIN IMMEDIATE")
        for key, value, created, at in entries:
            row = (at, key, created, value)
            connection.execute("INSERT INTO change VALUES (?, ?, ?, 0, ?)", row)
            connection.execute("INSERT INTO current VALUES (?, ?, NULL)", (key, at))
        write_state(connection, StoreState(revision, revision, revision))
        connection.execute("COMMIT")
    sync_file(database)


def _copy_file(source: Path, target: Path) -> None:
    """Copy a database file after checking it."""
    if not source.is_file():
        raise FormatError(source, "there is no such file")
    make_file(target)
    with closing(connect_reader(source)) as connection:
        if stored_format(connection, source) == 0:
            raise FormatError(source, "holds no store")
        with closing(sqlite3.connect(target, isolation_level=None)) as copy:
            connection.backup(copy)
            bring_up(copy, source)
            found = findings(copy)
    if found:
        raise DamagedError(source, f"cannot be restored: {found[0]}")


def _last_revision(database: Path) -> int:
    """Return the revision of a store that is about to be replaced; 0 if it cannot be read."""
    if not database.exists():
        return 0
    try:
        with closing(connect_writer(database)) as connection:
            revision = read_state(connection).revision
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except (sqlite3.Error, StoreError, TypeError):
        return 0
    return revision if 0 <= revision < REVISION_MAX else 0


def _set_aside(database: Path) -> None:
    """Move the log of a database away and link the database, so that a store always has its name.

    SQLite would apply a log that stayed to the database that replaces this one.
    """
    aside = database.with_name(REPLACED)
    for end in ("", "-wal", "-shm"):
        aside.with_name(f"{REPLACED}{end}").unlink(missing_ok=True)
    if database.exists():
        os.link(database, aside)
    for end in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.replace(f"{database}{end}", f"{aside}{end}")


def _start_anew(database: Path, beyond: int, known: str | None) -> int:
    """Drop the history of a copy, leave a gap in its revisions, and give it an id if known."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "DELETE FROM change WHERE revision NOT IN (SELECT revision FROM current)"
        )
        connection.execute("UPDATE change SET previous = 0")
        revision = max(read_state(connection).revision, beyond) + RESTORE_GAP
        write_state(connection, StoreState(revision, revision, revision))
        if known:
            set_store_id(connection, known)
        connection.execute("COMMIT")
    sync_file(database)
    return revision
