"""`moor store` maintains a server's data."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
from contextlib import closing
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.apiserver.namespace_controller import create_system_namespaces
from moorage.apiserver.server import assembled, make_server_context
from moorage.apiserver.settings import Etcd, Settings
from moorage.apiserver.storage.store import open_store
from moorage.cli.main import moor
from moorage.store.contract import Store
from moorage.store.sqlite import SqliteStore, open_sqlite
from moorage.store.sqlite.maintenance import RESTORE_GAP
from tests.store.etcdserver import find_etcd, running_etcd


def store(*arguments: str | Path) -> Result:
    return CliRunner().invoke(moor, ["store", *map(str, arguments)])


async def fill(store: Store) -> None:
    await create_system_namespaces(make_server_context(store))
    entry = await store.get("/registry/core/namespaces/default")
    assert entry is not None
    for _ in range(20):
        entry = await store.update(entry.key, entry.value, expected=entry.revision)


def filled(data_dir: Path) -> Path:
    """Make the folder of a server that ran; return it."""

    async def run() -> None:
        async with open_sqlite(data_dir / "store") as opened:
            await fill(opened)

    asyncio.run(run())
    (data_dir / "pki").mkdir()
    (data_dir / "pki" / "ca.key").write_text("secret")
    return data_dir


def keys(data_dir: Path) -> list[str]:
    with closing(sqlite3.connect(data_dir / "store" / "store.db")) as connection:
        return [key for (key,) in connection.execute("SELECT key FROM current ORDER BY key")]


def spoil(data_dir: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(data_dir / "store" / "store.db")) as connection, connection:
        connection.execute(statement, values)


# --- check -------------------------------------------------------------------------------------


def test_a_good_store_has_no_faults(tmp_path: Path) -> None:
    done = store("check", "--data-dir", filled(tmp_path))
    assert done.exit_code == 0
    assert done.output.startswith(f"{tmp_path}: no faults; format 1, revision 24, 4 objects, 24 ")


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (b"{", "does not decode as Namespace"),
        (b'{"apiVersion":"v1","kind":"Pod"}', "holds a v1 Pod, not a Namespace"),
        (
            b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other","uid":"1"}}',
            "holds 'other', which belongs elsewhere",
        ),
        (
            b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}',
            "has no uid",
        ),
    ],
)
def test_what_is_wrong_with_an_object_is_told_with_its_key(
    tmp_path: Path, value: bytes, fault: str
) -> None:
    filled(tmp_path)
    key = "/registry/core/namespaces/default"
    spoil(tmp_path, "UPDATE change SET value = ? WHERE key = ?", value, key)
    done = store("check", "--data-dir", tmp_path)
    assert done.exit_code == 1
    assert f"{key}: {fault}" in done.output


def test_keys_of_nothing_and_uids_of_two_are_found(tmp_path: Path) -> None:
    filled(tmp_path)
    spoil(tmp_path, "UPDATE change SET key = '/odd' WHERE key LIKE '%default'")
    spoil(tmp_path, "UPDATE current SET key = '/odd' WHERE key LIKE '%default'")
    assert "/odd: no resource has such a key" in store("check", "--data-dir", tmp_path).output


def test_a_folder_without_a_store_cannot_be_read(tmp_path: Path) -> None:
    for verb in ("check", "compact"):
        done = store(verb, "--data-dir", tmp_path)
        assert done.exit_code == 3
        assert "holds no store" in done.output
    assert list(tmp_path.iterdir()) == []


# --- compact -----------------------------------------------------------------------------------


def test_compaction_forgets_history_and_tells_what_it_gave_back(tmp_path: Path) -> None:
    before = keys(filled(tmp_path))
    done = store("compact", "--data-dir", tmp_path)
    assert done.exit_code == 0
    changes, sizes = (line.split() for line in done.output.splitlines())
    assert changes == ["changes", str(len(before) + 20), "->", str(len(before))]
    assert int(sizes[3].replace(",", "")) < int(sizes[1].replace(",", ""))
    assert keys(tmp_path) == before
    assert store("check", "--data-dir", tmp_path).exit_code == 0


def test_a_folder_that_a_server_has_is_neither_compacted_nor_replaced(tmp_path: Path) -> None:
    filled(tmp_path)
    assert store("backup", tmp_path / "copy", "--data-dir", tmp_path).exit_code == 0

    async def run() -> tuple[Result, ...]:
        async with open_sqlite(tmp_path / "store"):
            folder = ("--data-dir", tmp_path)
            return (
                await asyncio.to_thread(store, "compact", *folder),
                await asyncio.to_thread(store, "restore", tmp_path / "copy", "--force", *folder),
                await asyncio.to_thread(store, "check", *folder),
            )

    compacted, restored, checked = asyncio.run(run())
    assert (compacted.exit_code, restored.exit_code, checked.exit_code) == (3, 3, 0)
    assert "in use by process" in compacted.output
    assert "in use by process" in restored.output


# --- backup and restore ------------------------------------------------------------------------


def test_a_backup_of_a_running_server_is_restored_into_an_empty_folder(tmp_path: Path) -> None:
    async def run() -> int:
        async with open_sqlite(tmp_path / "old" / "store") as opened:
            await fill(opened)
            done = await asyncio.to_thread(
                store, "backup", tmp_path / "copy", "--data-dir", tmp_path / "old"
            )
            assert done.exit_code == 0, done.output
            return await opened.revision()

    revision = asyncio.run(run())
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"old", "copy"}
    done = store("restore", tmp_path / "copy", "--data-dir", tmp_path / "new")
    assert done.exit_code == 0
    assert f"revision {revision + RESTORE_GAP:,}" in done.output
    assert keys(tmp_path / "new") == keys(tmp_path / "old")
    assert store("check", "--data-dir", tmp_path / "new").exit_code == 0


def test_credentials_are_in_a_backup_if_they_are_wanted(tmp_path: Path) -> None:
    filled(tmp_path / "old")
    folder = ("--data-dir", tmp_path / "old")
    store("backup", tmp_path / "without", *folder)
    store("backup", tmp_path / "with", "--credentials", *folder)
    assert store("restore", tmp_path / "without", "--data-dir", tmp_path / "one").exit_code == 0
    assert not (tmp_path / "one" / "pki").exists()
    assert store("restore", tmp_path / "with", "--data-dir", tmp_path / "two").exit_code == 0
    restored = tmp_path / "two" / "pki" / "ca.key"
    assert restored.read_text() == "secret"
    assert restored.stat().st_mode & 0o777 == 0o600


def test_a_store_is_replaced_only_by_force_and_kept_aside(tmp_path: Path) -> None:
    filled(tmp_path)
    folder = ("--data-dir", tmp_path)
    store("backup", tmp_path / "copy", *folder)

    async def go_on(opened: SqliteStore) -> int:
        await opened.create("/registry/core/nodes/new", b"{}")
        return await opened.revision()

    async def run() -> int:
        async with open_sqlite(tmp_path / "store") as opened:
            return await go_on(opened)

    last = asyncio.run(run())
    refused = store("restore", tmp_path / "copy", *folder)
    assert refused.exit_code == 3
    assert "holds a store already" in refused.output
    done = store("restore", tmp_path / "copy", "--force", *folder)
    assert f"revision {last + RESTORE_GAP:,}" in done.output  # beyond what the lost store had
    assert "/registry/core/nodes/new" not in keys(tmp_path)
    assert (tmp_path / "store" / "replaced.db").exists()
    assert store("check", *folder).exit_code == 0


def test_a_damaged_store_is_replaced_together_with_its_log(tmp_path: Path) -> None:
    filled(tmp_path)
    folder = ("--data-dir", tmp_path)
    store("backup", tmp_path / "copy", *folder)
    (tmp_path / "store" / "store.db").write_bytes(b"nothing of a database" * 400)
    (tmp_path / "store" / "store.db-wal").write_bytes(b"nor of a log")
    assert store("check", *folder).exit_code == 3
    assert store("restore", tmp_path / "copy", "--force", *folder).exit_code == 0
    assert store("check", *folder).exit_code == 0
    assert (tmp_path / "store" / "replaced.db").read_bytes().startswith(b"nothing")


def spoiled(source: Path, target: Path, change: dict[str, object], *, flip: int = -1) -> Path:
    """Copy a backup with another manifest, or with one byte of its database changed."""
    with tarfile.open(source) as archive, tarfile.open(target, "w") as copy:
        for head in archive:
            file = archive.extractfile(head)
            assert file is not None
            data = bytearray(file.read())
            if head.name == "manifest.json":
                data = bytearray(json.dumps(json.loads(data) | change).encode())
            elif flip >= 0:
                data[flip] ^= 1
            head.size = len(data)
            copy.addfile(head, BytesIO(bytes(data)))
    return target


def test_what_is_no_good_backup_is_not_restored(tmp_path: Path) -> None:
    filled(tmp_path / "old")
    good = tmp_path / "good"
    store("backup", good, "--data-dir", tmp_path / "old")
    (tmp_path / "text").write_text("no backup at all" * 100)
    (tmp_path / "empty").touch()
    (tmp_path / "cut").write_bytes(good.read_bytes()[:20_000])
    outside: dict[str, object] = {"members": {"store.db": {"bytes": 1, "sha256": ""}}}
    outside["members"]["pki/../x"] = {"bytes": 1, "sha256": ""}  # type: ignore[index]
    for file, fact in (
        (tmp_path / "missing", "no such file"),
        (tmp_path / "text", "not a backup"),
        (tmp_path / "empty", "not a backup"),
        (tmp_path / "cut", "cut: "),
        (spoiled(good, tmp_path / "1", {"version": 2}), "a backup of version 2"),
        (spoiled(good, tmp_path / "2", {"storeFormat": 99}), "in format 99, this program reads"),
        (spoiled(good, tmp_path / "3", {"kind": "other"}), "not a backup"),
        (spoiled(good, tmp_path / "4", outside), "cannot be in a backup"),
        (spoiled(good, tmp_path / "5", {}, flip=5000), "its SHA-256 is"),
        (tmp_path / "old" / "store" / "store.db", "not a backup"),
    ):
        done = store("restore", file, "--data-dir", tmp_path / "new")
        assert done.exit_code == 3, file
        assert fact in done.output, file
        assert not (tmp_path / "new" / "store" / "store.db").exists()


def test_a_compressed_backup_is_not_called_something_else(tmp_path: Path) -> None:
    backup, packed = tmp_path / "b.tar", tmp_path / "b.tar.gz"
    assert store("backup", backup, "--data-dir", filled(tmp_path / "a")).exit_code == 0
    packed.write_bytes(gzip.compress(backup.read_bytes()))
    done = store("restore", packed, "--data-dir", tmp_path / "new")
    assert done.exit_code == 3
    assert done.stderr == (
        f"error: {packed}: compressed with gzip: a backup is a plain tar, so unpack it first "
        "(gunzip)\n"
    )
    assert not (tmp_path / "new" / "store" / "store.db").exists()


def test_a_backup_is_not_named_like_a_compressed_file(tmp_path: Path) -> None:
    target = tmp_path / "b.tar.gz"
    done = store("backup", target, "--data-dir", filled(tmp_path / "a"))
    assert done.exit_code == 2
    assert "a backup is a plain tar and is not compressed" in done.stderr
    assert not target.exists()


def test_a_backup_of_a_store_that_contradicts_itself_leaves_nothing(tmp_path: Path) -> None:
    filled(tmp_path / "old")
    spoil(tmp_path / "old", "DELETE FROM current WHERE key LIKE '%default'")
    arguments = (tmp_path / "copy", "--credentials", "--data-dir", tmp_path / "old")
    saved = store("backup", *arguments)
    assert "warning: /registry/core/namespaces/default: revision" in saved.output
    done = store("restore", tmp_path / "copy", "--data-dir", tmp_path / "new")
    assert done.exit_code == 3
    assert "cannot be restored" in done.output
    assert not list((tmp_path / "new" / "pki").iterdir())


@pytest.fixture(scope="module")
def backup_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("backup")
    filled(folder / "old")
    store("backup", folder / "copy", "--credentials", "--data-dir", folder / "old")
    return (folder / "copy").read_bytes()


@settings(max_examples=40)
@given(data=st.data())
def test_no_changed_byte_gets_into_a_restored_store(
    backup_bytes: bytes, data: st.DataObject
) -> None:
    content = bytearray(backup_bytes)
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "copy").write_bytes(content)
        done = store("restore", folder / "copy", "--data-dir", folder)
        assert done.exit_code in (0, 3), done.output
        if done.exit_code == 0:  # It was of the tar: a time, a mode, what fills a block.
            assert len(keys(folder)) == 4
            assert (folder / "pki" / "ca.key").read_text() == "secret"


# --- etcd --------------------------------------------------------------------------------------


def test_a_store_in_etcd_is_checked_compacted_and_moved_to_a_folder(tmp_path: Path) -> None:
    if find_etcd() is None:
        pytest.skip("etcd-server cannot be had")

    async def run(etcd: Etcd) -> None:
        async with open_store(Path(), etcd) as opened:
            await fill(opened)

    with running_etcd() as server:
        asyncio.run(run(Etcd((server.target,), "/here/")))
        options = ("--etcd-servers", server.target, "--etcd-prefix", "/here")
        assert "no faults" in store("check", *options).output
        assert "compacted at revision" in store("compact", *options).output
        assert store("backup", tmp_path / "copy", *options).exit_code == 0
    assert store("restore", tmp_path / "copy", "--data-dir", tmp_path).exit_code == 0
    assert "/registry/core/namespaces/default" in keys(tmp_path)
    assert store("check", "--data-dir", tmp_path).exit_code == 0


def test_an_empty_database_is_reported_and_not_written(tmp_path: Path) -> None:
    filled(tmp_path)
    database = tmp_path / "store" / "store.db"
    os.truncate(database, 0)
    before = sorted(file.name for file in database.parent.iterdir())
    for words in (["check"], ["compact"], ["backup", str(tmp_path / "copy")]):
        done = CliRunner().invoke(moor, ["store", *words, "--data-dir", str(tmp_path)])
        assert done.exit_code == 3
        assert f"error: {database}: is empty (0 bytes); restore a backup" in done.output
    assert database.stat().st_size == 0
    assert sorted(file.name for file in database.parent.iterdir()) == before


@pytest.mark.parametrize("harm", ["folder", "database", "empty"])
def test_a_server_does_not_start_empty_where_there_was_a_store(tmp_path: Path, harm: str) -> None:
    data_dir = tmp_path / "data"

    async def start() -> None:
        async with assembled(Settings(data_dir, allows_all=True)):
            pass

    asyncio.run(start())
    copy = tmp_path / "copy"
    assert store("backup", str(copy), "--data-dir", str(data_dir)).exit_code == 0
    if harm == "folder":
        shutil.rmtree(data_dir / "store")
    elif harm == "database":
        (data_dir / "store" / "store.db").unlink()
    else:
        os.truncate(data_dir / "store" / "store.db", 0)
    done = CliRunner().invoke(moor, ["server", "--data-dir", str(data_dir), "--port", "0"])
    assert done.exit_code == 3
    assert f"error: {data_dir / 'store' / 'store.db'}: is " in done.output
    assert "moor store restore" in done.output
    restored = store("restore", str(copy), "--force", "--data-dir", str(data_dir))
    assert restored.exit_code == 0
    asyncio.run(start())
    shutil.rmtree(data_dir / "store")
    assert CliRunner().invoke(moor, ["reset", "--yes", "--data-dir", str(data_dir)]).exit_code == 0
    asyncio.run(start())  # after a reset it just works
