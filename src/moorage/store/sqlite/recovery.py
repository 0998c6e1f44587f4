"""After a failure of the disk: what it was, and whether the database is whole again.

A sync that failed may have lost pages that can still be read, and a later sync that succeeds says
nothing about them. So everything that is only in the log is written to the database anew, and the
log begins again, before another commit is appended to it.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from moorage.store.contract import KeyChange
from moorage.store.errors import UnavailableError
from moorage.store.sqlite.database import connect_again
from moorage.store.sqlite.disk import disk_trouble
from moorage.store.sqlite.transactions import StoreState, read_history, read_state, write_state

# What SQLite calls failures of the disk, which may pass.
DISK_FAILURES = ("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_NOMEM")


class LostDataError(UnavailableError):
    """The database lacks what was answered, or contradicts itself; waiting does not help."""


class WriterFault(NamedTuple):
    """Why nothing is written, and whether that may pass."""

    error: UnavailableError
    may_pass: bool


def fault_of(error: Exception, folder: Path) -> WriterFault:
    """Return what a failure means for later writes; its text is for callers."""
    name = str(getattr(error, "sqlite_errorname", ""))
    if isinstance(error, UnavailableError):
        return WriterFault(error, not isinstance(error, LostDataError))
    may_pass = isinstance(error, OSError) or name.startswith(DISK_FAILURES)
    said = disk_trouble(folder) if may_pass else "open the store again"
    about = f"{error} ({name})" if name else str(error)
    text = f"writing failed: {about}; {said}" if said else f"writing failed: {about}"
    return WriterFault(UnavailableError(text), may_pass)


def open_again(failed: sqlite3.Connection, database: Path, state: StoreState) -> sqlite3.Connection:
    """Return a new connection to a database that is whole; `state` is what was answered.

    Raises what keeps it from being whole; then the connection that failed is closed.
    """
    with suppress(sqlite3.Error):
        failed.close()
    connection = connect_again(database)
    try:
        found = read_state(connection)
        if found.revision < state.revision:
            fact = f"the database went back from revision {state.revision} to {found.revision}"
            raise LostDataError(f"{fact}; open the store again")
        (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise UnavailableError("readers keep the log from being applied")
        (finding,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if finding != "ok":
            raise LostDataError(f"the database is damaged: {finding}; open the store again")
    except BaseException:
        connection.close()
        raise
    return connection


def commit_nothing(connection: sqlite3.Connection) -> None:
    """Commit the state as it is, or raise why that is not possible."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        state = read_state(connection)
        # SQLite leaves out a write that changes nothing, so there are two that change something.
        write_state(connection, state._replace(revision=state.revision + 1))
        write_state(connection, state)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def read_missed(connection: sqlite3.Connection, after: int, through: int) -> list[KeyChange]:
    """Return the changes of commits that failed and are there nevertheless."""
    changes: list[KeyChange] = []
    while after < through:
        page = read_history(connection, "", after, through)
        changes += page.changes
        after = page.through
    return changes
