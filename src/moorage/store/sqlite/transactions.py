"""The SQL within a transaction: reads, and the steps of compaction and expiry."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from msgspec import Struct

from moorage.store.broadcaster import HistoryPage
from moorage.store.contract import Deletion, Entry, KeyChange, Page, Put
from moorage.store.errors import FutureRevisionError, TooOldError
from moorage.store.keys import LAST

PAGE_CHANGES_MAX = 500
PAGE_BYTES_MAX = 8 * 2**20
PAGE_SCANNED_MAX = 20_000  # changes scanned, below the prefix or not

_ENTRY = "change.key, change.value, change.created, change.revision"


class StoreState(NamedTuple):
    """The row of `state`."""

    revision: int
    compacted: int
    swept: int


def read_state(connection: sqlite3.Connection) -> StoreState:
    """Return the newest and the compacted revision."""
    return StoreState(
        *connection.execute("SELECT revision, compacted, swept FROM state").fetchone()
    )


def read_revision(connection: sqlite3.Connection) -> int:
    """Return the newest revision."""
    return read_state(connection).revision


def read_kept(connection: sqlite3.Connection, revision: int) -> StoreState:
    """Return the state, or raise RevisionError if a revision cannot be read."""
    state = read_state(connection)
    if revision < state.compacted:
        raise TooOldError(revision, state.compacted)
    if revision > state.revision:
        raise FutureRevisionError(revision, state.revision)
    return state


def read_now(connection: sqlite3.Connection, key: str) -> tuple[Entry | None, int]:
    """Return the entry of a key, and the newest revision at that time."""
    return current_entry(connection, key), read_revision(connection)


def read_entry(connection: sqlite3.Connection, key: str, at: int | None) -> Entry | None:
    """Return the entry of a key, now or at a revision."""
    if at is None or at == read_kept(connection, at).revision:
        return current_entry(connection, key)
    row = connection.execute(
        "SELECT previous FROM change WHERE revision > ? AND key = ? ORDER BY revision LIMIT 1",
        (at, key),
    ).fetchone()
    return current_entry(connection, key) if row is None else _entry_of(connection, row[0])


def _entry_of(connection: sqlite3.Connection, revision: int) -> Entry | None:
    """Return the entry that a change made; None for revision 0."""
    row = connection.execute(
        f"SELECT {_ENTRY} FROM change WHERE revision = ?",  # noqa: S608
        (revision,),
    ).fetchone()
    return None if row is None else Entry._make(row)


def current_entry(connection: sqlite3.Connection, key: str) -> Entry | None:
    """Return the current entry of a key."""
    row = connection.execute(
        f"SELECT {_ENTRY} FROM current JOIN change USING (revision) "  # noqa: S608
        "WHERE current.key = ?",
        (key,),
    ).fetchone()
    return None if row is None else Entry(*row)


def read_entries(connection: sqlite3.Connection) -> Iterator[Entry]:
    """Yield all entries by key; damaged rows are left out."""
    rows = connection.execute(
        f"SELECT {_ENTRY} FROM current CROSS JOIN change USING (revision) "  # noqa: S608
        "WHERE change.value IS NOT NULL ORDER BY current.key"
    )
    return map(Entry._make, rows)


def read_page(
    connection: sqlite3.Connection, prefix: str, limit: int | None, after: str, at: int | None
) -> Page:
    """Return entries below a prefix whose keys come after a key, now or at a revision."""
    state = read_state(connection) if at is None else read_kept(connection, at)
    if at is None or at == state.revision:
        return _page_now(connection, prefix, limit, after, state.revision)
    return _page_then(connection, prefix, limit, after, at)


def _page_now(
    connection: sqlite3.Connection, prefix: str, limit: int | None, after: str, revision: int
) -> Page:
    rows = connection.execute(
        f"SELECT {_ENTRY} FROM current CROSS JOIN change USING (revision) "  # noqa: S608
        "WHERE current.key >= ? AND current.key < ? AND current.key > ? "
        "ORDER BY current.key LIMIT ?",
        (prefix, prefix + LAST, after, -1 if limit is None else limit),
    )
    entries = [Entry._make(row) for row in rows]
    if limit is None or len(entries) < limit:
        return Page(entries, revision)
    (remaining,) = connection.execute(
        "SELECT count(*) FROM current WHERE key > ? AND key < ?", (entries[-1].key, prefix + LAST)
    ).fetchone()
    return Page(entries, revision, remaining)


def _page_then(
    connection: sqlite3.Connection, prefix: str, limit: int | None, after: str, at: int
) -> Page:
    """Return the current entries, except for keys changed since: for those, the earlier ones."""
    bounds = (prefix, prefix + LAST, after)
    changed = _changed_since(connection, at, bounds)
    unchanged = (
        row
        for row in connection.execute(
            "SELECT key, revision FROM current WHERE key >= ? AND key < ? AND key > ? ORDER BY key",
            bounds,
        )
        if row[0] not in changed
    )
    before = sorted((key, previous) for key, previous in changed.items() if previous)
    found = islice(heapq.merge(unchanged, before), limit)
    entries = [_entry_of(connection, revision) for _, revision in found]
    assert None not in entries
    kept = [entry for entry in entries if entry is not None]
    remaining = _count_then(connection, prefix, kept[-1].key, at) if len(kept) == limit else 0
    return Page(kept, at, remaining)


def _changed_since(
    connection: sqlite3.Connection, at: int, bounds: tuple[str, str, str]
) -> dict[str, int]:
    """Return the keys changed since a revision, each with the revision it had then (0: none).

    It scans by revision, so its cost is the number of later changes. That is small, because past
    states are read for the further pages of a list. So there is no index of changes by key.
    """
    rows = connection.execute(
        "SELECT key, previous, min(revision) FROM change "
        "WHERE revision > ? AND key >= ? AND key < ? AND key > ? GROUP BY key",
        (at, *bounds),
    )
    return {key: previous for key, previous, _ in rows}


def _count_then(connection: sqlite3.Connection, prefix: str, after: str, at: int) -> int:
    """Return how many entries existed: the current ones, less the effect of later changes.

    A key existed if the first change since then has a previous one.
    """
    bounds = (prefix, prefix + LAST, after)
    (count,) = connection.execute(
        "SELECT count(*) FROM current WHERE key >= ? AND key < ? AND key > ?", bounds
    ).fetchone()
    (difference,) = connection.execute(
        """SELECT total((change.previous <> 0) - (current.key IS NOT NULL))
           FROM (SELECT min(revision) AS revision FROM change
                 WHERE revision > ? AND key >= ? AND key < ? AND key > ? GROUP BY key)
           JOIN change USING (revision) LEFT JOIN current ON current.key = change.key""",
        (at, *bounds),
    ).fetchone()
    return int(count + difference)


def read_history(
    connection: sqlite3.Connection, prefix: str, after: int, through: int
) -> HistoryPage:
    """Return the next page of changes below a prefix, within the bounds."""
    read_kept(connection, after)
    through = min(through, after + PAGE_SCANNED_MAX)
    rows = connection.execute(
        f"SELECT {_ENTRY}, before.key, before.value, before.created, before.revision "  # noqa: S608
        "FROM change LEFT JOIN change AS before ON before.revision = change.previous "
        "WHERE change.revision > ? AND change.revision <= ? "
        "AND change.key >= ? AND change.key < ? ORDER BY change.revision",
        (after, through, prefix, prefix + LAST),
    )
    changes: list[KeyChange] = []
    bytes_left = PAGE_BYTES_MAX
    for row in islice(rows, PAGE_CHANGES_MAX):
        changes.append(_change(row))
        bytes_left -= len(row[1] or b"") + len(row[5] or b"")
        if bytes_left <= 0:
            break
    is_all = bytes_left > 0 and len(changes) < PAGE_CHANGES_MAX
    return HistoryPage(changes, through if is_all else changes[-1].revision)


def _change(row: tuple[str, bytes | None, int, int, str | None, bytes, int, int]) -> KeyChange:
    key, value, created, revision, *before = row
    previous = None if before[0] is None else Entry._make(before)
    if value is not None:
        return Put(Entry(key, value, created, revision), previous)
    assert previous is not None, f"revision {revision} deleted a missing key"
    return Deletion(previous, revision)


# --- writes ---------------------------------------------------------------------------------------

SWEEP_CHANGES_MAX = 500  # per step, so that writers need not wait longer
EXPIRE_KEYS_MAX = 500


class CreateKey(Struct, frozen=True):
    """Create a key."""

    key: str
    value: bytes
    ttl_s: int | None


class UpdateKey(Struct, frozen=True):
    """Update a key at the expected revision."""

    key: str
    value: bytes
    expected: int
    ttl_s: int | None


class DeleteKey(Struct, frozen=True):
    """Delete a key at the expected revision."""

    key: str
    expected: int


Write = CreateKey | UpdateKey | DeleteKey


def due_keys(connection: sqlite3.Connection, now_ms: int) -> list[DeleteKey]:
    """Return deletions of expired keys, a bounded number."""
    rows = connection.execute(
        "SELECT key, revision FROM current WHERE expires <= ? ORDER BY expires LIMIT ?",
        (now_ms, EXPIRE_KEYS_MAX),
    )
    return [DeleteKey(*row) for row in rows]


def next_due_ms(connection: sqlite3.Connection) -> int | None:
    """Return when the next key expires."""
    (due_ms,) = connection.execute(
        "SELECT min(expires) FROM current WHERE expires IS NOT NULL"
    ).fetchone()
    return None if due_ms is None else int(due_ms)


def write_state(connection: sqlite3.Connection, state: StoreState) -> None:
    """Update the row of `state`."""
    connection.execute("UPDATE state SET revision = ?, compacted = ?, swept = ?", state)


def sweep(connection: sqlite3.Connection, state: StoreState) -> StoreState:
    """Delete changes that are superseded by some changes up to `compacted`; return the new state.

    A change supersedes the previous one of its key, and a deletion also itself. So one pass over
    the changes, oldest first, deletes exactly those that compaction drops.
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
