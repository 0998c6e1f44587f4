"""`moor store`: check, compact, back up and restore the store of a server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.apiserver.settings import Etcd
from moorage.cli import CONTEXT
from moorage.cli.errors import DOES_NOT_FIT, fail, needs_system, os_error_text
from moorage.cli.server_options import data_dir_option, etcd_options
from moorage.cli.terminal import echo
from moorage.kit.system import System

if TYPE_CHECKING:
    from moorage.store.contract import Entry, Store

STORE_FOLDER = "store"
CREDENTIALS_FOLDER = "pki"
COMPRESSED_SUFFIXES = (".gz", ".tgz", ".zip", ".xz", ".bz2", ".zst")
FAULTS_SHOWN_MAX = 100
PAGE_ENTRIES = 1000


@click.group(
    name="store",
    context_settings=CONTEXT,
    epilog="Exit status: 0 success, 1 problems were found, 2 usage error, 3 the store "
    "cannot be read, used or reached.",
)
def command() -> None:
    """Maintain the store of a server: check, compact, back up and restore it.

    \b
    moor store check
    moor store backup cluster.tar
    moor store restore cluster.tar --data-dir ./other-cluster
    """


@command.command("check", context_settings=CONTEXT)
@data_dir_option
@etcd_options
@needs_system(System.POSIX)
def check_command(data_dir: Path, etcd: Etcd | None) -> None:
    """Check a store: its database, its revisions and its objects.

    Decodes every object as its kind and checks that it is stored under its own key. A server may
    be running meanwhile.

    \b
    moor store check --data-dir ./other-cluster
    """
    with _store_errors():
        if etcd is not None:
            where, numbers = f"etcd {etcd.root}", ""
            found: Sequence[str] = asyncio.run(_check_etcd(etcd))
        else:
            where = str(data_dir)
            found, numbers = _check_folder(data_dir / STORE_FOLDER)
    for fault in found[:FAULTS_SHOWN_MAX]:
        echo(fault)
    if found:
        more = " or more" if len(found) >= FAULTS_SHOWN_MAX else ""
        echo(f"{where}: {len(found)}{more} faults", err=True)
        sys.exit(DOES_NOT_FIT)
    echo(f"{where}: no faults{numbers}")


def _check_folder(folder: Path) -> tuple[Sequence[str], str]:
    """Return the problems of a store, and its statistics."""
    from moorage.apiserver.storage.store import object_faults
    from moorage.store.sqlite import check, summarize

    found = check(folder, object_faults)
    if found:
        return found, ""
    kept = summarize(folder)
    sizes = f"{kept.entries:,} objects, {kept.changes:,} changes, {kept.bytes:,} bytes"
    return (), f"; format {kept.format}, revision {kept.revision:,}, {sizes}"


@command.command("compact", context_settings=CONTEXT)
@data_dir_option
@etcd_options
@needs_system(System.POSIX)
def compact_command(data_dir: Path, etcd: Etcd | None) -> None:
    """Discard old revisions and shrink the database file.

    A running server discards old revisions by itself and reuses the space, but the file does not
    shrink. No server may be running in the directory. Clients that resume a watch have to list
    again.

    \b
    moor down && moor store compact
    """
    from moorage.store.sqlite import compact

    with _store_errors():
        if etcd is not None:
            revision = asyncio.run(_compact_etcd(etcd))
            echo(f"etcd {etcd.root}: compacted at revision {revision}")
            echo("etcd frees disk space only on request: etcdctl defrag", err=True)
            return
        done = compact(data_dir / STORE_FOLDER)
    echo(f"changes  {done.changes_before:,} -> {done.changes_after:,}")
    echo(f"bytes    {done.bytes_before:,} -> {done.bytes_after:,}")


def _plain_tar(_: click.Context, __: click.Parameter, file: Path) -> Path:
    if file.name.endswith(COMPRESSED_SUFFIXES):
        fact = "a backup is a plain tar and is not compressed"
        raise click.BadParameter(f"{str(file)!r}: {fact}; choose a name such as backup.tar")
    return file


@command.command("backup", context_settings=CONTEXT)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), callback=_plain_tar)
@click.option(
    "--credentials",
    "has_credentials",
    is_flag=True,
    help="Include the server's keys and certificates (pki); without them, clients need "
    "new credentials.",
)
@data_dir_option
@etcd_options
@needs_system(System.POSIX)
def backup_command(file: Path, has_credentials: bool, data_dir: Path, etcd: Etcd | None) -> None:
    """Back up a store to FILE, whether a server is running or not.

    FILE is written completely or not at all, readable only by its owner: it contains all Secrets
    in plain text. It contains the server's own keys only with --credentials. Whoever has those
    can authenticate as anybody, so keep them apart if you can.

    \b
    moor store backup cluster.tar
    moor store backup cluster-with-keys.tar --credentials
    """
    from moorage.store.sqlite import check, write_backup

    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with _store_errors():
        others = _credentials(data_dir) if has_credentials else {}
        if etcd is not None:
            manifest: Any = asyncio.run(_backup_etcd(etcd, file, created, others))
        else:
            manifest = write_backup(data_dir / STORE_FOLDER, file, created=created, others=others)
            _warn(check(data_dir / STORE_FOLDER))
    size = file.stat().st_size
    echo(f"{file}: revision {manifest.revision:,}, {size:,} bytes")
    for name, member in manifest.members.items():
        echo(f"  {member.sha256}  {name}")


@command.command("restore", context_settings=CONTEXT)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--force",
    "replaces",
    is_flag=True,
    help="Replace an existing store and credentials; the old store is kept as replaced.db.",
)
@data_dir_option
@needs_system(System.POSIX)
def restore_command(file: Path, replaces: bool, data_dir: Path) -> None:
    """Restore the store of a directory from the backup in FILE.

    Verifies all checksums and the store before putting it in place. No server may be running in
    the directory. Revisions continue far beyond those of the backup, so that no client mistakes
    an old one for a new one; all clients list again. To restore into etcd, use etcd's own
    snapshots with `etcdutl snapshot restore --bump-revision`.

    \b
    moor store restore cluster.tar --data-dir ./other-cluster
    moor store restore cluster.tar --force
    """
    from moorage.store.sqlite import restore_backup

    with _store_errors():
        done = restore_backup(file, data_dir / STORE_FOLDER, beside=data_dir, replaces=replaces)
    made = done.manifest.created or "an unknown time"
    echo(f"{data_dir}: backup of {made}, revision {done.manifest.revision:,}")
    echo(f"goes on at revision {done.revision:,}")
    if done.others:
        echo(f"credentials: {', '.join(done.others)}")
    else:
        echo("without credentials: `moor kubeconfig` has new ones once a server ran", err=True)


@contextmanager
def _store_errors() -> Iterator[None]:
    """Print an error of the store and exit, without a traceback."""
    from moorage.store.errors import StoreError

    try:
        yield
    except StoreError as error:
        fail(str(error))
    except OSError as error:
        fail(os_error_text(error))


def _credentials(data_dir: Path) -> dict[str, bytes]:
    folder = data_dir / CREDENTIALS_FOLDER
    files = sorted(file for file in folder.iterdir() if not file.name.startswith("."))
    return {f"{CREDENTIALS_FOLDER}/{file.name}": file.read_bytes() for file in files}


def _warn(faults: Sequence[str]) -> None:
    for fault in faults[:FAULTS_SHOWN_MAX]:
        echo(f"warning: {fault}", err=True)


# --- etcd -----------------------------------------------------------------------------------------


async def _check_etcd(etcd: Etcd) -> list[str]:
    from moorage.apiserver.storage.store import object_faults, open_store

    async with open_store(Path(), etcd) as store:
        entries, _ = await _entries(store)
    return list(object_faults(entries))


async def _compact_etcd(etcd: Etcd) -> int:
    from moorage.apiserver.storage.store import open_store

    async with open_store(Path(), etcd) as store:
        revision = await store.revision()
        await store.compact(revision)
    return revision


async def _backup_etcd(etcd: Etcd, file: Path, created: str, others: dict[str, bytes]) -> Any:
    from moorage.apiserver.resources import Resources
    from moorage.apiserver.storage.store import open_store
    from moorage.store.sqlite.backup_file import write_entries

    # etcd does not report when keys expire; events would stay forever.
    passing = tuple(r.prefix for r in Resources().all() if r.ttl_s is not None)
    async with open_store(Path(), etcd) as store:
        entries, revision = await _entries(store)
    kept = [entry for entry in entries if not entry.key.startswith(passing)]
    return write_entries(kept, file, revision=revision, created=created, others=others)


async def _entries(store: Store) -> tuple[list[Entry], int]:
    """Return all entries at one revision."""
    page = await store.list("", limit=PAGE_ENTRIES)
    entries = [*page.entries]
    while page.remaining:
        page = await store.list("", limit=PAGE_ENTRIES, after=entries[-1].key, at=page.revision)
        entries += page.entries
    return entries, page.revision
