"""The writes of one transaction: a statement for many keys instead of some for each.

    read the keys ─► apply each write in memory ─► write all rows

Python's sqlite3 passes the interpreter on during each statement, and must get it back after it: so
the fewer statements, the less the writer waits for the event loop, and the event loop for it. Rows
go in batches of powers of two, so that there are few texts of statements, which SQLite keeps
prepared.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from moorage.store.contract import Deletion, Entry, KeyChange, Put
from moorage.store.errors import KeyExistsError
from moorage.store.keys import check_expected
from moorage.store.sqlite.transactions import CreateKey, DeleteKey, UpdateKey, Write

BATCH_ROWS_MAX = 64

_READ = (
    "SELECT change.key, change.value, change.created, change.revision "
    "FROM current CROSS JOIN change USING (revision) WHERE current.key IN ({})"
)
_ADD_CHANGES = "INSERT INTO change (revision, key, created, previous, value) VALUES {}"
_SET_CURRENT = "INSERT OR REPLACE INTO current (key, revision, expires) VALUES {}"
_DELETE_CURRENT = "DELETE FROM current WHERE key IN ({})"

Row = tuple[Any, ...]
T = TypeVar("T")


class WriteGroup:
    """Writes that are applied in memory, and written together."""

    def __init__(self, connection: sqlite3.Connection, now_ms: int, due_ms: int | None) -> None:
        self._connection = connection
        self._now_ms = now_ms
        self.due_ms = due_ms  # no key expires before; None: none expires
        self._entries: dict[str, Entry | None] = {}  # as they are after the writes so far
        self._changes: list[Row] = []
        self._current: dict[str, Row | None] = {}  # None: the key is gone

    def read(self, keys: Iterable[str]) -> None:
        """Read the entries of keys that are written next."""
        unknown = [key for key in dict.fromkeys(keys) if key not in self._entries]
        self._entries.update(dict.fromkeys(unknown))
        for batch in batches(unknown):
            rows = self._connection.execute(_text(_READ, len(batch), 1, is_list=True), batch)
            self._entries.update((row[0], Entry._make(row)) for row in rows)

    def apply(self, write: Write, revision: int) -> KeyChange:
        """Carry out a write and return its change, or raise RefusedError and change nothing."""
        key = write.key
        if key not in self._entries:
            self.read((key,))
        previous = self._entries[key]
        match write:
            case CreateKey(_, value, ttl_s):
                if previous is not None:
                    raise KeyExistsError(previous)
                return self._put(Entry(key, value, revision, revision), None, ttl_s)
            case UpdateKey(_, value, expected, ttl_s):
                previous = check_expected(previous, key, expected)
                return self._put(Entry(key, value, previous.created, revision), previous, ttl_s)
            case DeleteKey(_, expected):
                return self._delete(check_expected(previous, key, expected), revision)

    def _put(self, entry: Entry, previous: Entry | None, ttl_s: int | None) -> Put:
        key, value, created, revision = entry
        before = 0 if previous is None else previous.revision
        expires = None if ttl_s is None else self._now_ms + ttl_s * 1000
        if expires is not None and (self.due_ms is None or expires < self.due_ms):
            self.due_ms = expires
        self._entries[key] = entry
        self._changes.append((revision, key, created, before, value))
        self._current[key] = (key, revision, expires)
        return Put(entry, previous)

    def _delete(self, previous: Entry, revision: int) -> Deletion:
        key, _, created, before = previous
        self._entries[key] = None
        self._changes.append((revision, key, created, before, None))
        self._current[key] = None
        return Deletion(previous, revision)

    def write(self) -> None:
        """Write what the writes have changed."""
        rows, self._changes = self._changes, []
        current, self._current = self._current, {}
        for batch in batches(rows):
            self._connection.execute(_text(_ADD_CHANGES, len(batch), 5), _flat(batch))
        for batch in batches([row for row in current.values() if row is not None]):
            self._connection.execute(_text(_SET_CURRENT, len(batch), 3), _flat(batch))
        for gone in batches([key for key, row in current.items() if row is None]):
            self._connection.execute(_text(_DELETE_CURRENT, len(gone), 1, is_list=True), gone)


def batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield items in batches, each with a power of two of them."""
    start, left = 0, len(items)
    while left:
        size = min(1 << (left.bit_length() - 1), BATCH_ROWS_MAX)
        yield items[start : start + size]
        start += size
        left -= size


@lru_cache(maxsize=64)
def _text(template: str, rows: int, columns: int, *, is_list: bool = False) -> str:
    """Return a statement for a number of rows."""
    row = ",".join("?" * columns)
    return template.format(",".join([row if is_list else f"({row})"] * rows))


def _flat(rows: Iterable[Row]) -> list[Any]:
    return [value for row in rows for value in row]
