"""The store on SQLite: its folder, its format, maintenance, and group commits."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from moorage.store import Entry, Page
from moorage.store.errors import (
    DamagedError,
    FolderError,
    FormatError,
    LockedError,
    NoSpaceError,
    OccupiedError,
    OverloadedError,
    TooOldError,
    UnavailableError,
)
from moorage.store.sqlite import SqliteStore, backup, check, open_sqlite, restore
from moorage.store.sqlite import writer as writer_module
from moorage.store.sqlite.database import STEPS, bring_up, connect_writer
from moorage.store.sqlite.maintenance import RESTORE_GAP

Work = Callable[[SqliteStore], Awaitable[None]]


def with_store(folder: Path, work: Work) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), open_sqlite(folder) as store:
            await work(store)

    asyncio.run(run())


async def write_three(store: SqliteStore) -> None:
    first = await store.create("/a", b"1")
    await store.update("/a", b"2", expected=first.revision)
    gone = await store.create("/b", b"1")
    await store.delete("/b", expected=gone.revision)


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        return connection.execute(query).fetchall()


def spoil(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


# --- the folder --------------------------------------------------------------------------------


def test_a_folder_has_one_server(tmp_path: Path) -> None:
    async def open_again(_: SqliteStore) -> None:
        with pytest.raises(LockedError, match=r"in use by process \d+; stop it first"):
            await SqliteStore.open(tmp_path)

    with_store(tmp_path, open_again)
    with_store(tmp_path, write_three)  # it is free again


def test_what_is_stored_is_for_its_owner_alone(tmp_path: Path) -> None:
    async def look(store: SqliteStore) -> None:
        await write_three(store)
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
        files = list((tmp_path / "new").iterdir())
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert {file.name for file in files} >= {"store.db", "store.db-wal", "lock"}

    with_store(tmp_path / "new", look)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match="file/store: cannot be used"):
        with_store(tmp_path / "file" / "store", write_three)


def test_what_is_no_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"something else, and long enough " * 200)
    with pytest.raises(FormatError, match="not a database"):
        with_store(tmp_path, write_three)
    assert (tmp_path / "store.db").read_bytes().startswith(b"something else")


def test_the_database_of_someone_else_is_left_alone(tmp_path: Path) -> None:
    spoil(tmp_path, "CREATE TABLE theirs (a)")
    with pytest.raises(FormatError, match="a database, but not of a store"):
        with_store(tmp_path, write_three)


# --- the format --------------------------------------------------------------------------------


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    with_store(tmp_path, write_three)
    spoil(tmp_path, "PRAGMA user_version = 99")
    with pytest.raises(FormatError, match="stored in format 99, this version reads up to"):
        with_store(tmp_path, write_three)


def test_an_older_format_is_brought_up(tmp_path: Path) -> None:
    def add_column(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE state ADD COLUMN added INTEGER DEFAULT 7")

    with_store(tmp_path, write_three)
    connect_writer(tmp_path / "store.db", steps=[*STEPS, add_column]).close()
    assert rows(tmp_path, "SELECT revision, added FROM state") == [(4, 7)]
    assert rows(tmp_path, "PRAGMA user_version") == [(len(STEPS) + 1,)]


def test_a_step_that_fails_leaves_the_format_as_it_was(tmp_path: Path) -> None:
    def half(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM change")
        raise ZeroDivisionError

    with_store(tmp_path, write_three)
    before = rows(tmp_path, "SELECT * FROM change")
    with (
        closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as connection,
        pytest.raises(ZeroDivisionError),
    ):
        bring_up(connection, tmp_path, [*STEPS, half])
    assert rows(tmp_path, "SELECT * FROM change") == before
    assert check(tmp_path) == []


# --- commits -----------------------------------------------------------------------------------


def test_one_commit_carries_all_writes_that_wait(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        commits: list[str] = []
        store._connection.set_trace_callback(commits.append)
        await asyncio.gather(*(store.create(f"/{n}", b"") for n in range(200)))
        # The first write may go alone; what gathered meanwhile goes together.
        assert commits.count("COMMIT") <= 3

    with_store(tmp_path, write)


def test_commits_are_synced_and_only_the_writer_moves_the_log(tmp_path: Path) -> None:
    async def look(store: SqliteStore) -> None:
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        for reader in store._readers._connections:
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.execute("DELETE FROM change")

    with_store(tmp_path, look)


def test_values_are_stored_once(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        entry = await store.create("/a", b"x" * 1_000_000)
        for number in range(4):
            value = bytes([number]) * 1_000_000
            entry = await store.update("/a", value, expected=entry.revision)

    with_store(tmp_path, write)
    assert (tmp_path / "store.db").stat().st_size < 5.2e6


def test_compaction_leaves_one_change_for_each_key(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        for number in range(30):
            entry = await store.create(f"/{number}", b"1")
            entry = await store.update(entry.key, b"2", expected=entry.revision)
            if number % 2:
                await store.delete(entry.key, expected=entry.revision)
        await store.compact(await store.revision())

    with_store(tmp_path, write)
    assert rows(tmp_path, "SELECT count(*) FROM change") == [(15,)]
    assert rows(tmp_path, "SELECT count(*) FROM current") == [(15,)]
    assert check(tmp_path) == []


def test_an_unfinished_sweep_goes_on_when_opened(tmp_path: Path) -> None:
    with_store(tmp_path, write_three)
    spoil(tmp_path, "UPDATE state SET compacted = 4")  # as if killed right after the mark

    async def wait(store: SqliteStore) -> None:
        await store.create("/c", b"")
        await store.compact(5)

    with_store(tmp_path, wait)
    assert rows(tmp_path, "SELECT key FROM change ORDER BY key") == [("/a",), ("/c",)]
    assert check(tmp_path) == []


def test_too_many_waiting_writes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "WAITING_JOBS_MAX", 10)

    async def write(store: SqliteStore) -> None:
        results = await asyncio.gather(
            *(store.create(f"/{n}", b"") for n in range(30)), return_exceptions=True
        )
        assert sum(isinstance(result, Entry) for result in results) == 10
        assert sum(isinstance(result, OverloadedError) for result in results) == 20
        await store.create("/later", b"")

    with_store(tmp_path, write)


def test_a_full_disk_refuses_a_write_and_no_more(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages + 5}")
        kept = await store.create("/kept", b"")
        with pytest.raises(NoSpaceError):
            await store.create("/large", b"x" * 1_000_000)
        again = await store.create("/again", b"")
        assert again.revision == kept.revision + 1
        assert (await store.list("")).entries == [again, kept]

    with_store(tmp_path, write)
    assert check(tmp_path) == []


def test_after_a_failure_nothing_more_is_written(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        await store.create("/a", b"")
        store._connection.execute("DROP TABLE current")
        for _ in range(2):
            with pytest.raises(UnavailableError, match="open the store again"):
                await store.create("/b", b"")
        with pytest.raises(UnavailableError):
            await store.compact(1)

    with_store(tmp_path, write)


# --- maintenance -------------------------------------------------------------------------------


def test_a_good_store_has_no_findings(tmp_path: Path) -> None:
    async def look(store: SqliteStore) -> None:
        await write_three(store)
        assert await store.check() == []
        assert await asyncio.to_thread(check, tmp_path) == []  # beside the server

    with_store(tmp_path, look)
    assert check(tmp_path) == []


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("UPDATE current SET revision = 77", "/a: current is revision 77, which is not there"),
        ("UPDATE current SET revision = 3", "/a: current is revision 3, which belongs to /b"),
        ("UPDATE current SET revision = 1", "/a: current is revision 1, the newest is 2"),
        (
            "UPDATE change SET value = NULL WHERE revision = 2",
            "/a: current is revision 2, which deleted it",
        ),
        (
            "DELETE FROM current",
            "/a: revision 2 is its newest and no deletion, yet the key is not current",
        ),
        (
            "DELETE FROM change WHERE revision = 1",
            "/a: revision 2 follows revision 1, which is not there",
        ),
        ("UPDATE state SET revision = 3", "/b: revision 4 is beyond the store's, 3"),
        (
            "UPDATE state SET compacted = 9",
            "state: revision 4, compacted 9, swept 0 are not in order",
        ),
    ],
)
def test_what_contradicts_itself_is_found(tmp_path: Path, statement: str, finding: str) -> None:
    with_store(tmp_path, write_three)
    spoil(tmp_path, statement)
    assert finding in check(tmp_path)


def test_a_damaged_page_is_found(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        await asyncio.gather(*(store.create(f"/{n}", b"x" * 500) for n in range(200)))

    with_store(tmp_path, write)
    with (tmp_path / "store.db").open("r+b") as file:
        file.seek(6 * 8192)
        file.write(b"\xff" * 8192)
    assert check(tmp_path)


def test_there_is_nothing_to_check_in_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="holds no store"):
        check(tmp_path)


def test_a_copy_of_a_running_store_is_of_one_revision(tmp_path: Path) -> None:
    async def copy(store: SqliteStore) -> None:
        await write_three(store)
        writing = asyncio.create_task(write_many(store))
        first = await store.backup(tmp_path / "first")
        second = await asyncio.to_thread(backup, tmp_path / "store", tmp_path / "second")
        await writing
        assert 4 <= first <= second <= 204

    async def write_many(store: SqliteStore) -> None:
        for number in range(200):
            await store.create(f"/n/{number}", b"x" * 100)

    with_store(tmp_path / "store", copy)
    for name in ("first", "second"):
        restore(tmp_path / name, tmp_path / f"{name}-restored")
        assert check(tmp_path / f"{name}-restored") == []
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.glob("*.writing")} == set()


def test_a_restored_store_has_the_entries_and_a_revision_far_beyond(tmp_path: Path) -> None:
    with_store(tmp_path / "old", write_three)
    assert backup(tmp_path / "old", tmp_path / "copy") == 4
    assert restore(tmp_path / "copy", tmp_path / "new") == 4 + RESTORE_GAP

    async def look(store: SqliteStore) -> None:
        page = await store.list("")
        assert page == Page([Entry("/a", b"2", 1, 2)], 4 + RESTORE_GAP)
        for seen_by_someone in (2, 4, 1000):
            with pytest.raises(TooOldError):
                await store.watch("", after=seen_by_someone)
        updated = await store.update("/a", b"3", expected=2)
        assert updated.revision == page.revision + 1
        assert updated.created == 1

    with_store(tmp_path / "new", look)
    assert check(tmp_path / "new") == []


def test_a_store_is_not_restored_over(tmp_path: Path) -> None:
    with_store(tmp_path / "old", write_three)
    backup(tmp_path / "old", tmp_path / "copy")
    with pytest.raises(OccupiedError, match="holds a store already; move it away first"):
        restore(tmp_path / "copy", tmp_path / "old")
    assert check(tmp_path / "old") == []


def test_what_is_damaged_or_no_store_is_not_restored(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database at all" * 100)
    (tmp_path / "empty").touch()
    with_store(tmp_path / "bad", write_three)
    spoil(tmp_path / "bad", "DELETE FROM current", "PRAGMA journal_mode = DELETE")
    for source, fault in (
        (tmp_path / "text", FormatError),
        (tmp_path / "empty", FormatError),
        (tmp_path / "missing", FormatError),
        (tmp_path / "bad" / "store.db", DamagedError),
    ):
        with pytest.raises(fault):
            restore(source, tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["lock"]


def test_a_copy_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with_store(tmp_path / "store", write_three)
    with pytest.raises(FolderError, match="cannot be written"):
        backup(tmp_path / "store", tmp_path / "missing" / "copy")
