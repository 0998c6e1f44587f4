"""Writing: what each write does within a transaction, and the steps of compaction and expiry."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from mooring.store.contract import Change, Deletion, Entry, Put
from mooring.store.errors import ConflictError, KeyExistsError, KeyMissingError
from mooring.store.sqlite.reads import State, current_entry

SWEEP_CHANGES_MAX = 500  # looked at in one step, so that writers wait no longer than that takes
EXPIRE_KEYS_MAX = 500


class Create(NamedTuple):
    """Write a key that is not there."""

    key: str
    value: bytes
    ttl_s: int | None


class Update(NamedTuple):
    """Write a key that has the expected revision."""

    key: str
    value: bytes
    expected: int
    ttl_s: int | None


class Delete(NamedTuple):
    """Delete a key that has the expected revision."""

    key: str
    expected: int


Write = Create | Update | Delete


def apply(connection: sqlite3.Connection, write: Write, revision: int, now_ms: int) -> Change:
    """Make the change of a write, or raise RefusedError and change nothing."""
    previous = current_entry(connection, write.key)
    match write:
        case Create(key, value, ttl_s):
            if previous is not None:
                raise KeyExistsError(previous)
            entry = Entry(key, value, revision, revision)
            return _put(connection, entry, None, _expires(now_ms, ttl_s))
        case Update(key, value, expected, ttl_s):
            previous = _as_expected(previous, key, expected)
            entry = Entry(key, value, previous.created, revision)
            return _put(connection, entry, previous, _expires(now_ms, ttl_s))
        case Delete(key, expected):
            return _delete(connection, _as_expected(previous, key, expected), revision)


def due_keys(connection: sqlite3.Connection, now_ms: int) -> list[Delete]:
    """Return deletions for keys whose time is over, a bounded number."""
    rows = connection.execute(
        "SELECT key, revision FROM current WHERE expires <= ? ORDER BY expires LIMIT ?",
        (now_ms, EXPIRE_KEYS_MAX),
    )
    return [Delete._make(row) for row in rows]


def next_due_ms(connection: sqlite3.Connection) -> int | None:
    """Return when the next key is to expire."""
    (due_ms,) = connection.execute(
        "SELECT min(expires) FROM current WHERE expires IS NOT NULL"
    ).fetchone()
    return None if due_ms is None else int(due_ms)


def write_state(connection: sqlite3.Connection, state: State) -> None:
    """Note how far the store is."""
    connection.execute("UPDATE state SET revision = ?, compacted = ?, swept = ?", state)


def sweep(connection: sqlite3.Connection, state: State) -> State:
    """Remove what some changes up to `compacted` supersede; return how far that went.

    A change supersedes the one before it of the same key, and a deletion itself as well. So one
    walk over the changes, oldest first, removes each that has to go and touches no other.
    """
    rows = connection.execute(
        "SELECT revision, previous, value IS NULL FROM change "
        "WHERE revision > ? AND revision <= ? ORDER BY revision LIMIT ?",
        (state.swept, state.compacted, SWEEP_CHANGES_MAX),
    ).fetchall()
    gone = [(previous,) for _, previous, _ in rows if previous]
    gone += [(revision,) for revision, _, is_deletion in rows if is_deletion]
    connection.executemany("DELETE FROM change WHERE revision = ?", gone)
    through = rows[-1][0] if len(rows) == SWEEP_CHANGES_MAX else state.compacted
    return state._replace(swept=through)


def _as_expected(previous: Entry | None, key: str, expected: int) -> Entry:
    if previous is None:
        raise KeyMissingError(key)
    if previous.revision != expected:
        raise ConflictError(previous, expected)
    return previous


def _expires(now_ms: int, ttl_s: int | None) -> int | None:
    return None if ttl_s is None else now_ms + ttl_s * 1000


def _put(
    connection: sqlite3.Connection, entry: Entry, previous: Entry | None, expires: int | None
) -> Put:
    key, value, created, revision = entry
    before = 0 if previous is None else previous.revision
    connection.execute(
        "INSERT INTO change (revision, key, created, previous, value) VALUES (?, ?, ?, ?, ?)",
        (revision, key, created, before, value),
    )
    connection.execute("INSERT OR REPLACE INTO current VALUES (?, ?, ?)", (key, revision, expires))
    return Put(entry, previous)


def _delete(connection: sqlite3.Connection, previous: Entry, revision: int) -> Deletion:
    connection.execute(
        "INSERT INTO change (revision, key, created, previous, value) VALUES (?, ?, ?, ?, NULL)",
        (revision, previous.key, previous.created, previous.revision),
    )
    connection.execute("DELETE FROM current WHERE key = ?", (previous.key,))
    return Deletion(previous, revision)
