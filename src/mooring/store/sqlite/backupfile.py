"""A backup as one file: what is in it, with sums, then the database, then what goes with it.

    manifest.json   the version of this form, the format and revision of the store, the members
    store.db        the database, as `copy_into` writes it
    pki/…           credentials of a server, if they were wanted

It is a plain tar. Whoever restores it reads the manifest first, takes no member that it does not
name, and nothing is put in its place before all sums were found right.
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

from mooring.store.contract import Entry
from mooring.store.errors import DamagedError, FolderError, FormatError, OccupiedError, StoreError
from mooring.store.sqlite.folder import (
    Folder,
    make_file,
    make_folder,
    sync_file,
    sync_folder,
)
from mooring.store.sqlite.restoring import make_store, restore
from mooring.store.sqlite.schema import STEPS
from mooring.store.sqlite.upkeep import backup

VERSION = 1
KIND = "mooring-backup"
MANIFEST = "manifest.json"
DATABASE = "store.db"
MANIFEST_BYTES_MAX = 1024 * 1024
OTHER_BYTES_MAX = 1024 * 1024
OTHERS_MAX = 100
CHUNK_BYTES = 1024 * 1024

_OTHER = re.compile(r"pki/[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class Member(Struct, frozen=True, forbid_unknown_fields=True):
    """A file in a backup."""

    bytes: int
    sha256: str


class Manifest(Struct, frozen=True, rename="camel"):
    """What a backup says of itself."""

    kind: str
    version: int
    store_format: int = 0
    revision: int = 0
    created: str = ""
    members: dict[str, Member] = {}


class Restored(NamedTuple):
    """What came of a backup."""

    revision: int
    manifest: Manifest
    others: tuple[str, ...]  # files beside the store that were written


def write_backup(
    folder: Path, target: Path, *, created: str, others: Mapping[str, bytes] | None = None
) -> Manifest:
    """Write a backup of the store in a folder, wholly or not at all; a server may run on it."""
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
) -> Manifest:
    """Write a backup of entries that are kept elsewhere, as of a revision."""
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
) -> Manifest:
    """Write a copy of a store and what goes with it into one file."""
    begun = target.with_name(f"{target.name}.writing")
    try:
        members = {DATABASE: Member(database.stat().st_size, _sum_of(database))}
        for name, data in others.items():
            members[name] = Member(len(data), hashlib.sha256(data).hexdigest())
        manifest = Manifest(KIND, VERSION, len(STEPS), revision, created, members)
        begun.unlink(missing_ok=True)
        make_file(begun)
        with tarfile.open(begun, "w", format=tarfile.PAX_FORMAT) as archive:
            _add(archive, MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
            with database.open("rb") as file:
                archive.addfile(_head(DATABASE, members[DATABASE].bytes), file)
            for name, data in others.items():
                _add(archive, name, data)
        sync_file(begun)
        os.replace(begun, target)
        sync_folder(target.absolute().parent)
    except OSError as error:
        raise FolderError(target, f"cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            begun.unlink(missing_ok=True)
    return manifest


def restore_backup(source: Path, folder: Path, *, beside: Path, replaces: bool = False) -> Restored:
    """Make a store in a folder from a backup, and the other files below a folder beside it.

    Other files are written first: with the store, credentials of its clients are there as well. If
    the store cannot be made, those that are new are taken away again.
    """
    _refuse_in_use(folder, replaces)
    unpacked = folder / "store.unpacked"
    new: list[Path] = []
    try:
        manifest, others = _unpack(source, unpacked)
        if not replaces:
            _refuse_occupied(beside, others)
        new += [beside / name for name in others if not (beside / name).exists()]
        for name, data in others.items():
            _write(beside / name, data)
        revision = restore(unpacked, folder, replaces=replaces)
    except StoreError:
        for path in new:
            path.unlink(missing_ok=True)
        raise
    except OSError as error:
        raise FolderError(folder, f"cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            unpacked.unlink(missing_ok=True)
    return Restored(revision, manifest, tuple(others))


def read_manifest(source: Path) -> Manifest:
    """Return what a backup says of itself, without looking at the rest."""
    with _opened(source) as archive:
        return _manifest(archive, source)


# --- reading --------------------------------------------------------------------------------------


def _opened(source: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(source, "r:")
    except FileNotFoundError:
        raise FormatError(source, "there is no such file") from None
    except (tarfile.TarError, EOFError, ValueError, OverflowError):
        raise FormatError(source, "not a backup") from None
    except OSError as error:
        raise FormatError(source, f"cannot be read: {error.strerror}") from error


def _unpack(source: Path, database: Path) -> tuple[Manifest, dict[str, bytes]]:
    """Write the database to a file and return the other members, if all is as the manifest says."""
    others: dict[str, bytes] = {}
    with _opened(source) as archive:
        manifest = _manifest(archive, source)
        try:
            for name, member in manifest.members.items():
                file = _member(archive, source, name, member)
                if name == DATABASE:
                    _copy(file, database, source, member)
                else:
                    others[name] = file.read(OTHER_BYTES_MAX)
                    _compare(source, name, member, hashlib.sha256(others[name]).hexdigest())
        except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
            raise DamagedError(source, f"cannot be read to its end: {error}") from error
    return manifest, others


def _manifest(archive: tarfile.TarFile, source: Path) -> Manifest:
    try:
        head = archive.next()
        if head is None or head.name != MANIFEST or not head.isreg():
            raise FormatError(source, "not a backup: it does not begin with a manifest")
        if head.size > MANIFEST_BYTES_MAX:
            raise FormatError(source, f"a manifest of {head.size:,} bytes is too large")
        file = archive.extractfile(head)
        data = b"" if file is None else file.read(MANIFEST_BYTES_MAX)
        manifest = msgspec.json.decode(data, type=Manifest)
    except (tarfile.TarError, EOFError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise FormatError(source, f"not a backup: {error}") from error
    _check(manifest, source)
    return manifest


def _check(manifest: Manifest, source: Path) -> None:
    if manifest.kind != KIND:
        raise FormatError(source, f"not a backup, but a {manifest.kind[:40]!r}")
    if manifest.version > VERSION:
        fact = f"a backup of version {manifest.version}, this program reads up to {VERSION}"
        raise FormatError(source, f"{fact}; use a newer one")
    if manifest.store_format > len(STEPS):
        fact = f"holds a store in format {manifest.store_format}"
        raise FormatError(source, f"{fact}, this program reads up to {len(STEPS)}; use a newer one")
    if DATABASE not in manifest.members:
        raise FormatError(source, f"its manifest names no {DATABASE}")
    others = manifest.members.keys() - {DATABASE}
    for name in others:
        if not _OTHER.fullmatch(name) or manifest.members[name].bytes > OTHER_BYTES_MAX:
            raise FormatError(source, f"{name[:80]!r} cannot be in a backup")
    if len(others) > OTHERS_MAX:
        raise FormatError(source, f"{len(others)} files beside the store are too many")


def _member(archive: tarfile.TarFile, source: Path, name: str, member: Member) -> IO[bytes]:
    head = archive.next()
    if head is None or head.name != name or not head.isreg():
        raise DamagedError(source, f"{name}: is not where the manifest says")
    if head.size != member.bytes:
        raise DamagedError(source, f"{name}: {head.size:,} bytes, should be {member.bytes:,}")
    file = archive.extractfile(head)
    assert file is not None
    return file


def _copy(file: IO[bytes], target: Path, source: Path, member: Member) -> None:
    digest = hashlib.sha256()
    target.unlink(missing_ok=True)
    make_file(target)
    with target.open("wb") as copy:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            copy.write(chunk)
    _compare(source, DATABASE, member, digest.hexdigest())


def _compare(source: Path, name: str, member: Member, found: str) -> None:
    if found != member.sha256:
        raise DamagedError(source, f"{name}: its SHA-256 is {found}, should be {member.sha256}")


# --- places ---------------------------------------------------------------------------------------


def _refuse_in_use(folder: Path, replaces: bool) -> None:
    """Raise why nothing can be restored into a folder, before anything is unpacked."""
    with Folder(folder) as locked:
        if locked.database.exists() and not replaces:
            raise OccupiedError(folder, "holds a store already")


def _refuse_occupied(beside: Path, names: Iterable[str]) -> None:
    for name in names:
        if (beside / name).exists():
            raise OccupiedError(beside, f"{name} is there already")


def _write(path: Path, data: bytes) -> None:
    make_folder(path.parent)
    begun = path.with_name(f".{path.name}.restoring")
    begun.unlink(missing_ok=True)
    make_file(begun)
    begun.write_bytes(data)
    sync_file(begun)
    os.replace(begun, path)
    sync_folder(path.parent)


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    archive.addfile(_head(name, len(data)), BytesIO(data))


def _head(name: str, size: int) -> tarfile.TarInfo:
    head = tarfile.TarInfo(name)
    head.size, head.mode = size, 0o600
    return head


def _sum_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
