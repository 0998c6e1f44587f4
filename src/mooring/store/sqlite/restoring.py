"""Bringing a copy of a store back.

A restored store has the entries of its copy and none of its history, and its revision is far
beyond what the copy had: whoever watched the lost store asks for revisions that now are too old,
and lists anew. If revisions went on from the copy's, they would be given out twice.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path

from mooring.store.contract import Entry
from mooring.store.errors import (
    DamagedError,
    FolderError,
    FormatError,
    OccupiedError,
    StoreError,
)
from mooring.store.sqlite.folder import Folder, make_file, sync_file, sync_folder
from mooring.store.sqlite.reads import State, read_state
from mooring.store.sqlite.schema import bring_up, connect_reader, connect_writer, stored_format
from mooring.store.sqlite.upkeep import findings
from mooring.store.sqlite.writes import write_state

RESTORE_GAP = 1_000_000_000  # more writes than a store sees between a copy and its loss
REVISION_MAX = 2**62
REPLACED = "replaced.db"  # what a restored store took the place of


def restore(source: Path, folder: Path, *, replaces: bool = False) -> int:
    """Make a store in a folder from a copy; return its revision.

    A store that is there is an OccupiedError, or is set aside if it is to be replaced. Then the
    new revision is beyond that of both.
    """
    with Folder(folder) as target:
        if target.database.exists() and not replaces:
            raise OccupiedError(folder, "holds a store already; move it away first")
        begun = target.database.with_suffix(".restoring")
        try:
            _copy_file(source, begun)
            revision = _start_anew(begun, _last_revision(target.database))
            _set_aside(target.database)
            os.replace(begun, target.database)
            sync_folder(folder)
        except sqlite3.Error as error:
            raise DamagedError(source, f"cannot be restored: {error}") from error
        except OSError as error:
            raise FolderError(folder, f"cannot be written: {error.strerror}") from error
        finally:
            begun.unlink(missing_ok=True)
        return revision


def make_store(database: Path, entries: Iterable[Entry], revision: int) -> None:
    """Make a database of entries, without history and without times to live."""
    make_file(database)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        bring_up(connection, database)
        connection.execute("BEGIN IMMEDIATE")
        for key, value, created, at in entries:
            row = (at, key, created, value)
            connection.execute("INSERT INTO change VALUES (?, ?, ?, 0, ?)", row)
            connection.execute("INSERT INTO current VALUES (?, ?, NULL)", (key, at))
        write_state(connection, State(revision, revision, revision))
        connection.execute("COMMIT")
    sync_file(database)


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


def _last_revision(database: Path) -> int:
    """Return how far a store came that is about to be replaced; 0 if nobody can tell."""
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
    """Move the log of a database away, and link the database: its name is never without a store.

    A log that stayed would be taken for that of whatever comes in its place.
    """
    aside = database.with_name(REPLACED)
    for end in ("", "-wal", "-shm"):
        aside.with_name(f"{REPLACED}{end}").unlink(missing_ok=True)
    if database.exists():
        os.link(database, aside)
    for end in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.replace(f"{database}{end}", f"{aside}{end}")


def _start_anew(database: Path, beyond: int) -> int:
    """Forget the history of a copy and leave a gap in its revisions."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "DELETE FROM change WHERE revision NOT IN (SELECT revision FROM current)"
        )
        connection.execute("UPDATE change SET previous = 0")
        revision = max(read_state(connection).revision, beyond) + RESTORE_GAP
        write_state(connection, State(revision, revision, revision))
        connection.execute("COMMIT")
    sync_file(database)
    return revision
