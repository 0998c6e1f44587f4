"""Reading: one entry, a page of entries, a stretch of changes; each in one read transaction."""

from __future__ import annotations

import heapq
import sqlite3
from itertools import islice
from typing import NamedTuple

from mooring.store.contract import Change, Deletion, Entry, Page, Put
from mooring.store.errors import FutureRevisionError, TooOldError
from mooring.store.hub import Stretch
from mooring.store.keys import LAST

STRETCH_CHANGES_MAX = 500
STRETCH_BYTES_MAX = 8 * 2**20
STRETCH_SCANNED_MAX = 20_000  # changes looked at, below the prefix or not

_ENTRY = "change.key, change.value, change.created, change.revision"


class State(NamedTuple):
    """The row of `state`."""

    revision: int
    compacted: int
    swept: int


def read_state(connection: sqlite3.Connection) -> State:
    """Return how far the store is."""
    return State(*connection.execute("SELECT revision, compacted, swept FROM state").fetchone())


def read_revision(connection: sqlite3.Connection) -> int:
    """Return the newest revision."""
    return read_state(connection).revision


def read_kept(connection: sqlite3.Connection, revision: int) -> State:
    """Return how far the store is, or raise RevisionError if a revision is not to be had."""
    state = read_state(connection)
    if revision < state.compacted:
        raise TooOldError(revision, state.compacted)
    if revision > state.revision:
        raise FutureRevisionError(revision, state.revision)
    return state


def read_now(connection: sqlite3.Connection, key: str) -> tuple[Entry | None, int]:
    """Return what a key holds, and the newest revision at that time."""
    return current_entry(connection, key), read_revision(connection)


def read_entry(connection: sqlite3.Connection, key: str, at: int | None) -> Entry | None:
    """Return what a key holds, now or at a revision."""
    if at is None or at == read_kept(connection, at).revision:
        return current_entry(connection, key)
    row = connection.execute(
        "SELECT previous FROM change WHERE revision > ? AND key = ? ORDER BY revision LIMIT 1",
        (at, key),
    ).fetchone()
    return current_entry(connection, key) if row is None else _entry_of(connection, row[0])


def _entry_of(connection: sqlite3.Connection, revision: int) -> Entry | None:
    """Return what a change made of its key; None for revision 0, which made nothing."""
    row = connection.execute(
        f"SELECT {_ENTRY} FROM change WHERE revision = ?",  # noqa: S608
        (revision,),
    ).fetchone()
    return None if row is None else Entry._make(row)


def current_entry(connection: sqlite3.Connection, key: str) -> Entry | None:
    """Return what a key holds now."""
    row = connection.execute(
        f"SELECT {_ENTRY} FROM current JOIN change USING (revision) "  # noqa: S608
        "WHERE current.key = ?",
        (key,),
    ).fetchone()
    return None if row is None else Entry(*row)


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
    """Return what is now, but for keys that changed since: for those, what was before that."""
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
    """Return the keys that changed since, each with the revision that it had (0: none).

    Walks by revision, so it costs what changed since, which is little: whoever reads the past
    reads the further pages of a list. That is why there is no index of changes by key.
    """
    rows = connection.execute(
        "SELECT key, previous, min(revision) FROM change "
        "WHERE revision > ? AND key >= ? AND key < ? AND key > ? GROUP BY key",
        (at, *bounds),
    )
    return {key: previous for key, previous, _ in rows}


def _count_then(connection: sqlite3.Connection, prefix: str, after: str, at: int) -> int:
    """Return how many entries there were: those of now, and the difference that changes made.

    The first change of a key since then says whether it was there: it has a previous one or not.
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


def read_stretch(connection: sqlite3.Connection, prefix: str, after: int, through: int) -> Stretch:
    """Return the next changes below a prefix, as many as the bounds allow."""
    read_kept(connection, after)
    through = min(through, after + STRETCH_SCANNED_MAX)
    rows = connection.execute(
        f"SELECT {_ENTRY}, before.key, before.value, before.created, before.revision "  # noqa: S608
        "FROM change LEFT JOIN change AS before ON before.revision = change.previous "
        "WHERE change.revision > ? AND change.revision <= ? "
        "AND change.key >= ? AND change.key < ? ORDER BY change.revision",
        (after, through, prefix, prefix + LAST),
    )
    changes: list[Change] = []
    bytes_left = STRETCH_BYTES_MAX
    for row in islice(rows, STRETCH_CHANGES_MAX):
        changes.append(_change(row))
        bytes_left -= len(row[1] or b"") + len(row[5] or b"")
        if bytes_left <= 0:
            break
    is_all = bytes_left > 0 and len(changes) < STRETCH_CHANGES_MAX
    return Stretch(changes, through if is_all else changes[-1].revision)


def _change(row: tuple[str, bytes | None, int, int, str | None, bytes, int, int]) -> Change:
    key, value, created, revision, *before = row
    previous = None if before[0] is None else Entry._make(before)
    if value is not None:
        return Put(Entry(key, value, created, revision), previous)
    assert previous is not None, f"revision {revision} deleted what was not there"
    return Deletion(previous, revision)
