"""A store whose disk fails: nothing that was answered is lost, and it works again by itself."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from moorage.store import Deletion, Put
from moorage.store.errors import (
    DamagedError,
    FolderError,
    FormatError,
    NoSpaceError,
    UnavailableError,
)
from moorage.store.sqlite import (
    SqliteStore,
    backup,
    check,
    compact,
    open_sqlite,
    restore,
    summarize,
)
from moorage.store.sqlite import writer as writer_module
from moorage.store.sqlite.disk import disk_trouble
from soak._disk import faulty_sqlite
from soak._disk.faulty_sqlite import FaultyDisk, Operation, find_library
from tests.client.servers import until
from tests.store.test_sqlite import rows, spoil, with_store, write_three

WAIT_S = 30


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "PAUSE_S_TROUBLE", 0.002)


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    try:
        find_library()
    except OSError as error:
        pytest.skip(f"faults cannot be put into SQLite here: {error}")
    faulty = FaultyDisk(Random(1))
    with faulty.installed():
        yield faulty


async def until_calm(store: SqliteStore) -> None:
    async with asyncio.timeout(WAIT_S):
        while await store.trouble():
            await asyncio.sleep(0.001)


# --- faults of the disk ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "code", "error"),
    [
        ("write", faulty_sqlite.FULL, NoSpaceError),
        ("write", faulty_sqlite.SHORT, NoSpaceError),
        ("write", faulty_sqlite.IOERR_WRITE, UnavailableError),  # EIO, EDQUOT, EROFS
        ("sync", faulty_sqlite.IOERR_FSYNC, UnavailableError),
    ],
)
def test_a_store_refuses_writes_while_its_disk_fails_and_works_again_afterwards(
    tmp_path: Path, disk: FaultyDisk, verb: str, code: int, error: type[Exception]
) -> None:
    async def write(store: SqliteStore) -> None:
        kept = await store.create("/kept", b"1")
        watch = await store.watch("", after=kept.revision)
        disk.fault = lambda operation: code if operation.verb == verb else faulty_sqlite.OK
        for key in ("/a", "/b"):
            with pytest.raises(error):
                await store.create(key, b"x" * 10_000)
        assert await store.trouble() != ""
        assert await store.get("/kept") == kept  # reads go on
        disk.fault = lambda _: faulty_sqlite.OK
        await until_calm(store)
        again = await store.create("/again", b"2")
        assert (await store.list("")).entries == [again, kept]
        assert await anext(watch) == Put(again, None)

    with_store(tmp_path, write)
    assert check(tmp_path) == []


def test_the_end_of_a_trouble_is_noticed_without_a_write(tmp_path: Path, disk: FaultyDisk) -> None:
    async def write(store: SqliteStore) -> None:
        disk.fault = lambda _: faulty_sqlite.FULL
        with pytest.raises(NoSpaceError):
            await store.create("/a", b"")
        assert await store.trouble() == "the disk is full"
        faults = disk.faults
        await until(lambda: disk.faults > faults + 2)  # it looks again and again
        disk.fault = lambda _: faulty_sqlite.OK
        await until_calm(store)

    with_store(tmp_path, write)


def test_after_a_failed_sync_all_pages_are_written_anew_before_the_next_commit(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    done: list[Operation] = []
    fails = False

    def fault(operation: Operation) -> int:
        done.append(operation)
        return faulty_sqlite.IOERR_FSYNC if operation.verb == "sync" and fails else 0

    async def write(store: SqliteStore) -> None:
        nonlocal fails
        await store.create("/a", b"")
        disk.fault, fails = fault, True
        with pytest.raises(UnavailableError, match="SQLITE_IOERR_FSYNC"):
            await store.create("/b", b"")
        fails = False
        await until_calm(store)
        # What only the log has goes to the database, is synced, and the log begins anew.
        names = [(each.verb, Path(each.path).name) for each in done]
        at = names.index(("write", "store.db"))
        assert names.index(("sync", "store.db"), at) < names.index(("truncate", "store.db-wal"))

    with_store(tmp_path, write)


def test_a_compaction_that_the_disk_interrupts_is_finished_later(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    async def write(store: SqliteStore) -> None:
        await write_three(store)
        writes = 0

        def fault(operation: Operation) -> int:
            nonlocal writes
            writes += operation.verb == "write"
            return faulty_sqlite.FULL if 2 < writes < 30 else faulty_sqlite.OK

        disk.fault = fault
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    await store.compact(4)
                    break
                except NoSpaceError:
                    pass
        assert writes > 30

    with_store(tmp_path, write)
    assert rows(tmp_path, "SELECT count(*) FROM change") == [(1,)]


def test_a_database_that_went_back_stays_refused(tmp_path: Path, disk: FaultyDisk) -> None:
    async def write(store: SqliteStore) -> None:
        entry = await store.create("/a", b"")
        disk.fault = lambda operation: (
            faulty_sqlite.IOERR_WRITE if operation.verb == "write" else faulty_sqlite.OK
        )
        store._writer._state = store._writer._state._replace(revision=entry.revision + 5)
        with pytest.raises(UnavailableError):
            await store.create("/b", b"")
        disk.fault = lambda _: faulty_sqlite.OK
        await until(lambda: "went back from revision 6 to 1" in store._writer.trouble)
        with pytest.raises(UnavailableError, match="open the store again"):
            await store.create("/b", b"")

    with_store(tmp_path, write)


def test_a_file_that_may_not_grow_is_a_passing_trouble(tmp_path: Path) -> None:
    """As a quota: the system refuses the write with an error that is not about space."""

    async def write(store: SqliteStore) -> None:
        await store.create("/a", b"1")
        with files_of_at_most(64 * 1024):
            with pytest.raises(UnavailableError, match="writing failed: disk I/O error"):
                await store.create("/b", b"x" * 200_000)
            assert await store.trouble() != ""
        await until_calm(store)
        await store.create("/b", b"x" * 200_000)

    with_store(tmp_path, write)
    assert check(tmp_path) == []


def test_without_free_descriptors_a_store_works(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        entry = await store.create("/a", b"1")
        await store.list("")
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                os.open(tmp_path, os.O_RDONLY)
            entry = await store.update("/a", b"2", expected=entry.revision)
            pages = await asyncio.gather(*(store.list("") for _ in range(20)))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert [page.entries for page in pages] == [[entry]] * 20

    with_store(tmp_path, write)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_without_free_space_is_told_apart(tmp_path: Path) -> None:
    assert disk_trouble(tmp_path) == ""
    assert disk_trouble(tmp_path / "nowhere") == "No such file or directory"


# --- files that others change under a running server -------------------------------------------


def delete_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def move_folder(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def delete_database(folder: Path) -> None:
    (folder / "store.db").unlink()


def replace_database(folder: Path) -> None:
    shutil.copy(folder / "store.db", folder / "copy")
    (folder / "copy").replace(folder / "store.db")


def truncate_database(folder: Path) -> None:
    os.truncate(folder / "store.db", 0)


def delete_log(folder: Path) -> None:
    (folder / "store.db-wal").unlink()


def truncate_log(folder: Path) -> None:
    os.truncate(folder / "store.db-wal", 0)


@pytest.mark.parametrize(
    ("harm", "fact"),
    [
        (delete_folder, "the database was deleted"),
        (move_folder, "the database was deleted"),
        (delete_database, "the database was deleted"),
        (replace_database, "the database was replaced"),
        (truncate_database, "the database was truncated"),
        (delete_log, "the log of the database was deleted"),
        (truncate_log, "the log of the database was truncated"),
    ],
)
def test_a_store_whose_files_are_taken_away_refuses_writes(
    tmp_path: Path, harm: object, fact: str
) -> None:
    async def run() -> None:
        async with asyncio.timeout(WAIT_S):
            store = await SqliteStore.open(tmp_path / "store")
            entry = await store.create("/a", b"1")
            assert callable(harm)
            harm(tmp_path / "store")
            assert fact in await store.trouble()
            for _ in range(2):
                with pytest.raises(UnavailableError, match=f"{fact} while the server ran"):
                    await store.update("/a", b"2", expected=entry.revision)
            assert fact in await store.trouble()
            await store.close()

    asyncio.run(run())


def test_a_folder_that_comes_back_is_written_to_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with asyncio.timeout(WAIT_S), open_sqlite(tmp_path / "store") as store:
            entry = await store.create("/a", b"1")
            watch = await store.watch("", after=entry.revision)
            move_folder(tmp_path / "store")
            with pytest.raises(UnavailableError):  # it was written, but nobody knows where
                await store.delete("/a", expected=entry.revision)
            (tmp_path / "elsewhere").rename(tmp_path / "store")
            await until_calm(store)
            # What happened and was not answered is told now.
            assert await anext(watch) == Deletion(entry, entry.revision + 1)
            assert await store.get("/a") is None
            await store.create("/a", b"2")

    asyncio.run(run())
    assert check(tmp_path / "store") == []


# --- stores that are not what they were --------------------------------------------------------


def open_with_record(folder: Path) -> None:
    async def run() -> None:
        async with open_sqlite(folder / "store", record=folder / "store.id") as store:
            await write_three(store)

    asyncio.run(run())


@pytest.mark.parametrize("has_record", [True, False])
def test_an_empty_database_is_refused_and_left_as_it_is(tmp_path: Path, has_record: bool) -> None:
    open_with_record(tmp_path)
    database = tmp_path / "store" / "store.db"
    os.truncate(database, 0)
    if not has_record:
        (tmp_path / "store.id").unlink()
    for look in (open_with_record, lambda _: check(database.parent)):
        with pytest.raises(DamagedError, match=r"store\.db: is empty \(0 bytes\); restore"):
            look(tmp_path)
    for refused in (summarize, compact, lambda each: backup(each, tmp_path / "copy")):
        with pytest.raises(DamagedError, match="is empty"):
            refused(database.parent)
    assert database.stat().st_size == 0


@pytest.mark.parametrize("harm", [delete_folder, delete_database])
def test_where_there_was_a_store_none_is_made_anew(tmp_path: Path, harm: object) -> None:
    open_with_record(tmp_path)
    backup(tmp_path / "store", tmp_path / "copy")
    assert callable(harm)
    harm(tmp_path / "store")
    with pytest.raises(DamagedError, match=r"store\.db: is missing; restore a backup"):
        open_with_record(tmp_path)
    assert (tmp_path / "store").exists() == (harm is delete_database)  # nothing is made
    restore(tmp_path / "copy", tmp_path / "store", record=tmp_path / "store.id")

    async def look() -> None:
        async with open_sqlite(tmp_path / "store", record=tmp_path / "store.id") as store:
            assert [entry.key for entry in (await store.list("")).entries] == ["/a"]

    asyncio.run(look())


def test_a_log_without_its_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.db-wal").write_bytes(b"log")
    with pytest.raises(DamagedError, match="is missing, but its log is there"):
        with_store(tmp_path, write_three)


def test_another_store_in_the_place_of_the_known_one_is_refused(tmp_path: Path) -> None:
    open_with_record(tmp_path)
    (tmp_path / "other").mkdir()
    open_with_record(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "store" / "store.db", tmp_path / "store" / "store.db")
    with pytest.raises(DamagedError, match=r"holds the store .* belongs here; put that one back"):
        open_with_record(tmp_path)
    (tmp_path / "store.id").unlink()

    async def look() -> None:
        async with open_sqlite(tmp_path / "store", record=tmp_path / "store.id"):
            pass

    asyncio.run(look())
    assert (tmp_path / "store.id").read_text() == (tmp_path / "other" / "store.id").read_text()


def test_a_store_of_an_older_version_gets_its_id(tmp_path: Path) -> None:
    with_store(tmp_path / "store", write_three)
    spoil(tmp_path / "store", "DROP TABLE IF EXISTS identity")

    async def look() -> None:
        async with open_sqlite(tmp_path / "store", record=tmp_path / "store.id") as store:
            assert [entry.key for entry in (await store.list("")).entries] == ["/a"]

    asyncio.run(look())
    ((found,),) = rows(tmp_path / "store", "SELECT id FROM identity")
    assert (tmp_path / "store.id").read_text().strip() == found


def test_a_truncated_database_is_refused(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        await asyncio.gather(*(store.create(f"/{n}", b"x" * 5000) for n in range(50)))

    with_store(tmp_path, write)
    size = (tmp_path / "store.db").stat().st_size
    os.truncate(tmp_path / "store.db", size // 2)
    with pytest.raises(FolderError, match=r"store\.db: has [\d,]+ bytes, should have [\d,]+"):
        with_store(tmp_path, write)
    with pytest.raises(DamagedError, match="should have"):
        check(tmp_path)
    os.truncate(tmp_path / "store.db", 50)
    with pytest.raises(FolderError):
        with_store(tmp_path, write)


def test_a_check_writes_nothing(tmp_path: Path) -> None:
    with_store(tmp_path, write_three)
    (tmp_path / "lock").unlink()
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert check(tmp_path) == []
    assert summarize(tmp_path).entries == 1
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError):
        check(tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_store_that_could_not_be_made_is_made_by_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "store.creating").write_bytes(b"half of it")
    with_store(tmp_path, write_three)
    assert check(tmp_path) == []
    assert not (tmp_path / "store.creating").exists()
