"""Upkeep: check a store, copy it while it runs, and bring a copy back.

A restored store has the entries of its copy and none of its history, and its revision is far
beyond what the copy had: whoever watched the lost store asks for revisions that now are too old,
and lists anew. If revisions went on from the copy's, they would be given out twice.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from mooring.store.errors import DamagedError, FolderError, FormatError, LockedError, OccupiedError
from mooring.store.sqlite.folder import Folder, make_file, sync_file, sync_folder
from mooring.store.sqlite.reads import State, read_state
from mooring.store.sqlite.schema import bring_up, connect_reader, connect_writer, stored_format
from mooring.store.sqlite.writes import write_state

RESTORE_GAP = 1_000_000_000  # more writes than a store sees between a copy and its loss
FINDINGS_MAX = 100


class Law(NamedTuple):
    """A query that finds what must not be; the text is filled with its columns."""

    text: str
    query: str


_LAWS = (
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


def check(folder: Path) -> Sequence[str]:
    """Return what contradicts itself in a folder, whether a server runs on it or not."""
    with _reading(folder) as connection, _snapshot(connection):
        return findings(connection)


def backup(folder: Path, target: Path) -> int:
    """Copy the store of a folder into a file, whether a server runs on it or not."""
    with _reading(folder) as connection, _snapshot(connection):
        return copy_into(connection, target)


def restore(source: Path, folder: Path) -> int:
    """Make a store in a folder that has none, from a copy; return its revision."""
    with Folder(folder) as target:
        if target.database.exists():
            raise OccupiedError(folder, "holds a store already; move it away first")
        begun = target.database.with_suffix(".restoring")
        try:
            _copy_file(source, begun)
            revision = _start_anew(begun)
            os.replace(begun, target.database)
            sync_folder(folder)
        except sqlite3.Error as error:
            raise DamagedError(source, f"cannot be restored: {error}") from error
        finally:
            begun.unlink(missing_ok=True)
        return revision


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


def _copy_file(source: Path, target: Path) -> None:
    """Copy a database file that says what it must."""
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


def _start_anew(database: Path) -> int:
    """Forget the history of a copy and leave a gap in its revisions."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "DELETE FROM change WHERE revision NOT IN (SELECT revision FROM current)"
        )
        connection.execute("UPDATE change SET previous = 0")
        revision = read_state(connection).revision + RESTORE_GAP
        write_state(connection, State(revision, revision, revision))
        connection.execute("COMMIT")
    sync_file(database)
    return revision


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
