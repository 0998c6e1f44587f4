"""The writes of a group: as one after the other, with few statements."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from sqlite3 import Connection

import pytest

from moorage.store.contract import KeyChange
from moorage.store.errors import StoreError
from moorage.store.sqlite.database import connect_writer
from moorage.store.sqlite.transactions import CreateKey, DeleteKey, UpdateKey, Write, due_keys
from moorage.store.sqlite.write_group import BATCH_ROWS_MAX, WriteGroup, batches

NOW_MS = 1_700_000_000_000
Rows = list[tuple[object, ...]]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Callable[[str], Connection]]:
    opened: list[Connection] = []

    def open_one(name: str) -> Connection:
        opened.append(connect_writer(tmp_path / name))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


def carried_out(
    connection: Connection, writes: list[Write], first: int = 1
) -> tuple[list[KeyChange | str], WriteGroup]:
    """Return the changes of a group, or why a write is refused; revisions begin at the first."""
    group = WriteGroup(connection, NOW_MS, None)
    group.read(write.key for write in writes)
    found: list[KeyChange | str] = []
    revision = first
    for write in writes:
        try:
            found.append(group.apply(write, revision))
            revision += 1
        except StoreError as error:
            found.append(str(error))
    group.write()
    return found, group


def rows(connection: Connection) -> tuple[Rows, Rows]:
    return (
        connection.execute("SELECT * FROM change ORDER BY revision").fetchall(),
        connection.execute("SELECT * FROM current ORDER BY key").fetchall(),
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_group_is_what_its_writes_are_one_after_the_other(
    connect: Callable[[str], Connection], seed: int
) -> None:
    chosen = random.Random(seed)
    together, alone = connect("together"), connect("alone")
    revision = 1
    for _ in range(5):
        writes: list[Write] = []
        for _ in range(chosen.choice((1, 2, 17, 100))):
            key, at = f"/k/{chosen.randrange(12)}", chosen.randrange(revision + 3)
            writes.append(
                chosen.choice(
                    (
                        CreateKey(key, b"new", chosen.choice((None, 60))),
                        UpdateKey(key, b"changed", at, chosen.choice((None, 60))),
                        DeleteKey(key, at),
                    )
                )
            )
        found, _ = carried_out(together, writes, revision)
        expected: list[KeyChange | str] = []
        for write in writes:
            (one,), _ = carried_out(alone, [write], revision)
            expected.append(one)
            revision += not isinstance(one, str)
        assert found == expected
        assert rows(together) == rows(alone)


def test_many_writes_take_few_statements(connect: Callable[[str], Connection]) -> None:
    connection = connect("store")
    carried_out(connection, [CreateKey(f"/k/{n}", b"v", None) for n in range(50)])
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    updates: list[Write] = [UpdateKey(f"/k/{n}", b"w", n + 1, None) for n in range(40)]
    carried_out(connection, [*updates, *(DeleteKey(f"/k/{n}", n + 1) for n in range(40, 50))], 51)
    # 50 = 32 + 16 + 2 keys to read and changes to write, 40 = 32 + 8 and 10 = 8 + 2 current keys
    assert len([each for each in statements if not each.startswith("BEGIN")]) == 3 + 3 + 2 + 2


def test_a_group_knows_when_the_first_key_expires(connect: Callable[[str], Connection]) -> None:
    connection = connect("store")
    writes: list[Write] = [CreateKey("/a", b"v", 60), CreateKey("/b", b"v", 30)]
    _, group = carried_out(connection, [*writes, CreateKey("/c", b"v", None)])
    assert group.due_ms == NOW_MS + 30_000
    assert [each.key for each in due_keys(connection, NOW_MS + 30_000)] == ["/b"]
    again = WriteGroup(connection, NOW_MS, due_ms=NOW_MS + 10)
    again.apply(CreateKey("/d", b"v", 60), 4)
    assert again.due_ms == NOW_MS + 10  # of a key that was there before


def test_batches_are_powers_of_two() -> None:
    for count in (0, 1, 2, 3, 63, 64, 65, 200):
        items = list(range(count))
        found = [list(each) for each in batches(items)]
        assert [each for batch in found for each in batch] == items
        assert all(len(each) & (len(each) - 1) == 0 for each in found)
        assert all(len(each) <= BATCH_ROWS_MAX for each in found)
