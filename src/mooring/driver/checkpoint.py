"""What is prepared, kept across restarts: one file with all claims, one with the changes since.

    checkpoint.json      {"checksum": crc32 of data, "data": {"version": "v1", "claims": […],
                          "has_changes": true}}
    checkpoint.changes   crc32 {"after": checksum of the data that the changes are of}
                         crc32 {"put": a claim}
                         crc32 {"remove": its UID}

A claim is noted before its driver is called, so that a driver that died on the way is asked to
undo it, and its devices are given to nobody else before that. Changes are added at the end, a line
each; after many of them all is written anew. A last line without its end was never answered for.
Neither file is of use without the other. The changes are there first: after 0, which is nothing.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Raw, Struct, field

from mooring.api.cdi import ContainerEdits
from mooring.api.codec import encode_json, fitting
from mooring.driver.driver import AllocatedDevice, ClaimName
from mooring.driver.errors import CheckpointError
from mooring.kit.atomic_file import read_bounded, replace_file

FILE, CHANGES = "checkpoint.json", "checkpoint.changes"
CHANGES_MAX = 1000
REMEDY = "drain the node, remove both files of the checkpoint and start the driver again"
VERSION = "v1"
FILE_BYTES_MAX = 64 * 1024 * 1024  # of a file that is read


class PreparedDevice(Struct, frozen=True):
    """A device of a claim that is prepared, or about to be."""

    request: str
    pool: str
    name: str
    share_id: str = ""
    has_admin_access: bool = False
    cdi_ids: tuple[str, ...] = ()  # all that containers need, ours with them
    cdi_name: str = ""  # of our own CDI device; empty: there is none
    edits: Any = None  # what it brings, as JSON

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from the other devices of its claim."""
        return self.request, self.pool, self.name, self.share_id

    @property
    def is_exclusive(self) -> bool:
        """Whether no other claim may have it at the same time."""
        return not self.share_id and not self.has_admin_access

    @classmethod
    def of(cls, device: AllocatedDevice) -> PreparedDevice:
        """Return a device before it is prepared."""
        return cls(
            device.request, device.pool, device.name, device.share_id, device.has_admin_access
        )


class PreparedClaim(Struct, frozen=True):
    """A claim, and how far it is."""

    uid: str
    namespace: str
    name: str
    devices: tuple[PreparedDevice, ...] = ()
    is_complete: bool = False  # the driver has done its part, and files are written
    boot_id: str = ""  # of the machine when it was prepared

    @property
    def claim(self) -> ClaimName:
        """Which claim it is."""
        return ClaimName(self.uid, self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class _Data(Struct):
    version: str = ""
    claims: list[PreparedClaim] = field(default_factory=list)
    has_changes: bool = False  # a file of before there were changes has none


class _Change(Struct, omit_defaults=True):
    after: int | None = None
    put: PreparedClaim | None = None
    remove: str = ""


_NOTHING = _Change(after=0)


class _File(Struct, rename="camel"):
    checksum: int
    data: Raw


class Checkpoint:
    """The claims that are prepared, by UID, as the files have them."""

    def __init__(self, folder: Path, files: FileSystem) -> None:
        self.path = folder / FILE
        self.changes_path = folder / CHANGES
        self._files = files
        self._claims: dict[str, PreparedClaim] = {}
        self._has_changes = False  # whether their file is there
        self._room = 0  # how many changes may still be added; 0: all is written anew

    def load(self) -> None:
        """Read the files, or raise CheckpointError; without any nothing is prepared."""
        data, changes = self._read(self.path), self._read(self.changes_path)
        lines = _lines(changes or b"", self.changes_path)
        if data is None and changes is not None and lines != [_NOTHING]:
            raise _missing(self.path, self.changes_path)
        claims, checksum, has_changes = (
            ({}, 0, False) if data is None else _decoded(data, self.path)
        )
        if has_changes and not lines:
            raise _missing(self.changes_path, self.path)
        is_ours = data is not None and bool(lines) and lines[0].after == checksum
        for change in lines[1:] if is_ours else ():
            if change.put is not None:
                claims[change.put.uid] = change.put
            else:
                claims.pop(change.remove, None)
        self._claims = claims
        self._has_changes = changes is not None
        is_whole = changes is not None and changes.endswith(b"\n")
        self._room = max(CHANGES_MAX - len(lines), 0) if is_ours and is_whole else 0

    def get(self, uid: str) -> PreparedClaim | None:
        """Return a claim, if it is known."""
        return self._claims.get(uid)

    def __iter__(self) -> Iterator[PreparedClaim]:
        return iter(tuple(self._claims.values()))

    def put(self, claim: PreparedClaim, *, lasts: bool = True) -> None:
        """Note a claim, in the file first; what lasts is on the disk then."""
        self._store({**self._claims, claim.uid: claim}, _Change(put=claim), lasts=lasts)

    def remove(self, uid: str) -> None:
        """Forget a claim."""
        if uid in self._claims:
            left = {key: each for key, each in self._claims.items() if key != uid}
            self._store(left, _Change(remove=uid), lasts=True)

    def _store(self, claims: dict[str, PreparedClaim], change: _Change, *, lasts: bool) -> None:
        room, self._room = self._room, 0  # after a failure nobody knows what the file has
        if room > 0:
            self._files.append(self.changes_path, _line(change), lasts=lasts)
        else:
            self._write_anew(claims)
            room = CHANGES_MAX
        self._claims, self._room = claims, room - 1

    def _write_anew(self, claims: dict[str, PreparedClaim]) -> None:
        data = msgspec.json.encode(_Data(VERSION, list(claims.values()), has_changes=True))
        checksum = crc32(data)
        if not self._has_changes:
            self._files.write(self.changes_path, _line(_NOTHING), 0o600)
            self._has_changes = True
        self._files.write(self.path, msgspec.json.encode(_File(checksum, Raw(data))), 0o600)
        self._files.write(self.changes_path, _line(_Change(after=checksum)), 0o600)

    def _read(self, path: Path) -> bytes | None:
        try:
            return self._files.read(path)
        except OSError as error:
            raise CheckpointError(f"checkpoint {path} cannot be read: {error}") from None


def _missing(path: Path, other: Path) -> CheckpointError:
    return CheckpointError(f"checkpoint {path} is missing or empty, but not {other.name}; {REMEDY}")


def _line(change: _Change) -> bytes:
    data = msgspec.json.encode(change)
    return b"%08x %s\n" % (crc32(data), data)


def _lines(content: bytes, path: Path) -> list[_Change]:
    """Return the changes of a file, but for one at the end that was never wholly written."""
    *whole, _ = content.split(b"\n")
    found = []
    for number, line in enumerate(whole, 1):
        checksum, _, data = line.partition(b" ")
        try:
            if checksum != b"%08x" % crc32(data):
                raise ValueError("its checksum is not that of its data")
            found.append(msgspec.json.decode(data, type=_Change))
        except (ValueError, RecursionError) as error:
            text = f"checkpoint {path} is corrupted: line {number}: {error}; {REMEDY}"
            raise CheckpointError(text) from None
    return found


def edits_of(device: PreparedDevice) -> ContainerEdits:
    """Return what a device brings to containers."""
    found = fitting(device.edits, ContainerEdits) if device.edits is not None else None
    return found if found is not None else ContainerEdits()


def stored_edits(edits: ContainerEdits) -> Any:
    """Return edits as they are kept."""
    return None if edits == ContainerEdits() else msgspec.json.decode(encode_json(edits))


def _decoded(data: bytes, path: Path) -> tuple[dict[str, PreparedClaim], int, bool]:
    try:
        file = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CheckpointError(f"checkpoint {path} is corrupted: {error}; {REMEDY}") from None
    if crc32(bytes(file.data)) != file.checksum:
        raise CheckpointError(
            f"checkpoint {path} is corrupted: its checksum is not that of its data; {REMEDY}"
        )
    try:
        found = msgspec.json.decode(file.data, type=_Data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CheckpointError(f"checkpoint {path} cannot be read: {error}; {REMEDY}") from None
    if found.version != VERSION:
        raise CheckpointError(
            f"checkpoint {path} is of version {found.version[:64]!r}, and this driver knows "
            f"{VERSION!r} only"
        )
    return {each.uid: each for each in found.claims}, file.checksum, found.has_changes


# ---- from mooring.driver.files: Files that are there as a whole or not at all, and folders that may hold what is not ours.


class FileSystem:
    """What a driver does with files; tests put one in its place whose disk is full."""

    def write(self, path: Path, data: bytes, mode: int = 0o644, *, lasts: bool = True) -> None:
        """Replace a file; a durable one is on disk then."""
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        replace_file(path, data, mode=mode, is_durable=lasts)

    def append(self, path: Path, data: bytes, *, lasts: bool = True) -> None:
        """Add to the end of a file that is there; what lasts is on the disk then."""
        handle = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(handle, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            if lasts:
                os.fdatasync(handle)
        finally:
            os.close(handle)

    def read(self, path: Path) -> bytes | None:
        """Return the content of a file; None if there is none."""
        try:
            return read_bounded(path, FILE_BYTES_MAX)
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise OSError(f"{path}: {error}") from None

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""
        path.unlink(missing_ok=True)

    def remove_folder(self, path: Path) -> None:
        """Remove a folder with all that is in it, if it is there."""
        with suppress(FileNotFoundError):
            shutil.rmtree(path)

    def names(self, folder: Path) -> list[str]:
        """Return what is in a folder, sorted; nothing if it is not there."""
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []
