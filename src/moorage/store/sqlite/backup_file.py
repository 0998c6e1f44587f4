"""A backup as one file: a manifest with checksums, the database, and files that belong to it.

    manifest.json   the version of this layout, the format and revision of the store, the members
    store.db        the database, as `copy_into` writes it
    pki/…           credentials of a server, if requested

It is a plain tar. A restore reads the manifest first, extracts only the members it names, and puts
nothing in its place before all checksums match.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import tarfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
from msgspec import Struct

from moorage.kit.atomic_file import replace_file, sync_folder
from moorage.store.contract import Entry
from moorage.store.errors import DamagedError, FolderError, FormatError, OccupiedError, StoreError
from moorage.store.sqlite.database import (
    RECORD_FILE,
    STEPS,
    Folder,
    make_file,
    make_folder,
    sync_file,
)
from moorage.store.sqlite.maintenance import backup, make_store, restore

VERSION = 1
KIND = "moorage-backup"
MANIFEST = "manifest.json"
DATABASE_MEMBER = "store.db"
GZIP_MAGIC = b"\x1f\x8b"
MANIFEST_BYTES_MAX = 1024 * 1024
OTHER_BYTES_MAX = 1024 * 1024
OTHERS_MAX = 100
CHUNK_BYTES = 1024 * 1024

_OTHER = re.compile(r"pki/[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class BackupMember(Struct, frozen=True, forbid_unknown_fields=True):
    """A file in a backup."""

    bytes: int
    sha256: str


class BackupManifest(Struct, frozen=True, rename="camel"):
    """The manifest of a backup."""

    kind: str
    version: int
    store_format: int = 0
    revision: int = 0
    created: str = ""
    members: dict[str, BackupMember] = {}


class RestoredBackup(NamedTuple):
    """The result of a restore."""

    revision: int
    manifest: BackupManifest
    others: tuple[str, ...]  # files written beside the store


def write_backup(
    folder: Path, target: Path, *, created: str, others: Mapping[str, bytes] | None = None
) -> BackupManifest:
    """Write a complete backup of the store in a folder, or none; a server may be running."""
    copied = target.with_name(f".{target.name}.database")
    try:
        revision = backup(folder, copied)
        return pack(copied, target, revision=revision, created=created, others=others or {})
    finally:
        copied.unlink(missing_ok=True)


def write_entries(
    entries: Iterable[Entry],
    target: Path,
    *,
    revision: int,
    created: str,
    others: Mapping[str, bytes],
) -> BackupManifest:
    """Write a backup of entries from another store, as of a revision."""
    copied = target.with_name(f".{target.name}.database")
    try:
        make_store(copied, entries, revision)
        return pack(copied, target, revision=revision, created=created, others=others)
    except (OSError, sqlite3.Error) as error:
        raise FolderError(target, f"cannot be written: {error}") from error
    finally:
        copied.unlink(missing_ok=True)


def pack(
    database: Path, target: Path, *, revision: int, created: str, others: Mapping[str, bytes]
) -> BackupManifest:
    """Write a copy of a store and the other files into one file."""
    unfinished = target.with_name(f"{target.name}.writing")
    try:
        members = {DATABASE_MEMBER: BackupMember(database.stat().st_size, _sha256(database))}
        for name, data in others.items():
            members[name] = BackupMember(len(data), hashlib.sha256(data).hexdigest())
        manifest = BackupManifest(KIND, VERSION, len(STEPS), revision, created, members)
        unfinished.unlink(missing_ok=True)
        make_file(unfinished)
        with tarfile.open(unfinished, "w", format=tarfile.PAX_FORMAT) as archive:
            _add(archive, MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
            with database.open("rb") as file:
                archive.addfile(_head(DATABASE_MEMBER, members[DATABASE_MEMBER].bytes), file)
            for name, data in others.items():
                _add(archive, name, data)
        sync_file(unfinished)
        os.replace(unfinished, target)
        sync_folder(target.absolute().parent)
    except OSError as error:
        raise FolderError(target, f"cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return manifest


def restore_backup(
    source: Path, folder: Path, *, beside: Path, replaces: bool = False
) -> RestoredBackup:
    """Restore a store into a folder, and the other files below a folder beside it.

    Other files are written first, so that once the store exists the credentials of its clients do,
    too. If the store cannot be restored, the new ones are removed again.
    """
    with Folder(folder) as locked:  # fail before anything is unpacked
        if locked.database.exists() and not replaces:
            raise OccupiedError(folder, "holds a store already")
    unpacked = folder / "store.unpacked"
    new: list[Path] = []
    try:
        manifest, others = _unpack(source, unpacked)
        new += [beside / name for name in others if not (beside / name).exists()]
        for name in others:
            if not replaces and beside / name not in new:
                raise OccupiedError(beside, f"{name} is there already")
        for name, data in others.items():
            make_folder((beside / name).parent)
            replace_file(beside / name, data)
        record = beside / RECORD_FILE
        revision = restore(unpacked, folder, replaces=replaces, record=record)
    except StoreError:
        for path in new:
            path.unlink(missing_ok=True)
        raise
    except OSError as error:
        raise FolderError(folder, f"cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            unpacked.unlink(missing_ok=True)
    return RestoredBackup(revision, manifest, tuple(others))


# --- reading --------------------------------------------------------------------------------------


def _opened(source: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(source, "r:")
    except FileNotFoundError:
        raise FormatError(source, "there is no such file") from None
    except (tarfile.TarError, EOFError, ValueError, OverflowError):
        raise FormatError(source, _no_backup(source)) from None
    except OSError as error:
        raise FormatError(source, f"cannot be read: {error.strerror}") from error


def _no_backup(source: Path) -> str:
    """Return what a file is that is not a plain tar."""
    with source.open("rb") as file:
        head = file.read(2)
    if head == GZIP_MAGIC:
        return "compressed with gzip: a backup is a plain tar, so unpack it first (gunzip)"
    return "not a backup: it is empty" if not head else "not a backup: it is no tar file"


def _unpack(source: Path, database: Path) -> tuple[BackupManifest, dict[str, bytes]]:
    """Write the database to a file and return the other members; check all by the manifest."""
    others: dict[str, bytes] = {}
    with _opened(source) as archive:
        manifest = _manifest(archive, source)
        try:
            for name, member in manifest.members.items():
                file = _member(archive, source, name, member)
                if name == DATABASE_MEMBER:
                    _copy(file, database, source, member)
                else:
                    others[name] = file.read(OTHER_BYTES_MAX)
                    _compare(source, name, member, hashlib.sha256(others[name]).hexdigest())
        except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
            raise DamagedError(source, f"cannot be read to its end: {error}") from error
    return manifest, others


def _manifest(archive: tarfile.TarFile, source: Path) -> BackupManifest:
    try:
        head = archive.next()
        if head is None or head.name != MANIFEST or not head.isreg():
            raise FormatError(source, "not a backup: it does not begin with a manifest")
        if head.size > MANIFEST_BYTES_MAX:
            raise FormatError(source, f"a manifest of {head.size:,} bytes is too large")
        file = archive.extractfile(head)
        data = b"" if file is None else file.read(MANIFEST_BYTES_MAX)
        manifest = msgspec.json.decode(data, type=BackupManifest)
    except (tarfile.TarError, EOFError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise FormatError(source, f"not a backup: {error}") from error
    _check(manifest, source)
    return manifest


def _check(manifest: BackupManifest, source: Path) -> None:
    if manifest.kind != KIND:
        raise FormatError(source, f"not a backup, but a {manifest.kind[:40]!r}")
    if manifest.version > VERSION:
        fact = f"a backup of version {manifest.version}, this program reads up to {VERSION}"
        raise FormatError(source, f"{fact}; use a newer one")
    if manifest.store_format > len(STEPS):
        fact = f"holds a store in format {manifest.store_format}"
        raise FormatError(source, f"{fact}, this program reads up to {len(STEPS)}; use a newer one")
    if DATABASE_MEMBER not in manifest.members:
        raise FormatError(source, f"its manifest names no {DATABASE_MEMBER}")
    others = manifest.members.keys() - {DATABASE_MEMBER}
    for name in others:
        if not _OTHER.fullmatch(name) or manifest.members[name].bytes > OTHER_BYTES_MAX:
            raise FormatError(source, f"{name[:80]!r} cannot be in a backup")
    if len(others) > OTHERS_MAX:
        raise FormatError(source, f"{len(others)} files beside the store are too many")


def _member(archive: tarfile.TarFile, source: Path, name: str, member: BackupMember) -> IO[bytes]:
    head = archive.next()
    if head is None or head.name != name or not head.isreg():
        raise DamagedError(source, f"{name}: is not where the manifest says")
    if head.size != member.bytes:
        raise DamagedError(source, f"{name}: {head.size:,} bytes, should be {member.bytes:,}")
    file = archive.extractfile(head)
    assert file is not None
    return file


def _copy(file: IO[bytes], target: Path, source: Path, member: BackupMember) -> None:
    digest = hashlib.sha256()
    target.unlink(missing_ok=True)
    make_file(target)
    with target.open("wb") as copy:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            copy.write(chunk)
    _compare(source, DATABASE_MEMBER, member, digest.hexdigest())


def _compare(source: Path, name: str, member: BackupMember, found: str) -> None:
    if found != member.sha256:
        raise DamagedError(source, f"{name}: its SHA-256 is {found}, should be {member.sha256}")


# --- writing --------------------------------------------------------------------------------------


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    archive.addfile(_head(name, len(data)), BytesIO(data))


def _head(name: str, size: int) -> tarfile.TarInfo:
    head = tarfile.TarInfo(name)
    head.size, head.mode = size, 0o600
    return head


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
