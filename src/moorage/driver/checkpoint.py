"""Prepared claims, across restarts: one file with all claims, one with the changes since.

    checkpoint.json      {"checksum": crc32 of data, "data": {"version": "v1", "claims": […],
                          "has_changes": true}}
    checkpoint.changes   crc32 {"after": checksum of the data that the changes apply to}
                         crc32 {"put": a claim}
                         crc32 {"remove": its UID}

A claim is noted before its driver is called, so that a driver that died meanwhile is asked to undo
it, and nobody else gets its devices before that. Changes are appended, one line each; after many of
them the first file is rewritten. A last line without a newline was never acknowledged. Neither file
is of use without the other. The changes are written first: after 0, which means no claims.
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

from moorage.api.cdi import ContainerEdits
from moorage.api.codec import encode_json, fitting
from moorage.driver.driver import AllocatedDevice, ClaimName
from moorage.driver.errors import CheckpointError
from moorage.kit.atomic_file import read_bounded, replace_file

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
    cdi_ids: tuple[str, ...] = ()  # all that containers need, including cdi_name
    cdi_name: str = ""  # of the device in the claim's spec; empty: none
    edits: Any = None  # container edits, as JSON

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Identifies it within its claim."""
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
    is_complete: bool = False  # the driver is done, and files are written
    boot_id: str = ""  # of the machine's boot when it was prepared

    @property
    def claim(self) -> ClaimName:
        """Which claim it is."""
        return ClaimName(self.uid, self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class _Data(Struct):
    version: str = ""
    claims: list[PreparedClaim] = field(default_factory=list)
    has_changes: bool = False  # False in files of older versions


class _Change(Struct, omit_defaults=True):
    after: int | None = None
    put: PreparedClaim | None = None
    remove: str = ""


_NOTHING = _Change(after=0)


class _File(Struct, rename="camel"):
    checksum: int
    data: Raw


class Checkpoint:
    """The prepared claims by UID, as the files have them."""

    def __init__(self, folder: Path, files: FileSystem) -> None:
        self.path = folder / FILE
        self.changes_path = folder / CHANGES
        self._files = files
        self._claims: dict[str, PreparedClaim] = {}
        self._has_changes = False  # whether their file exists
        self._changes_left = 0  # before the first file is rewritten

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
        self._changes_left = max(CHANGES_MAX - len(lines), 0) if is_ours and is_whole else 0

    def get(self, uid: str) -> PreparedClaim | None:
        """Return a claim, or None."""
        return self._claims.get(uid)

    def __iter__(self) -> Iterator[PreparedClaim]:
        return iter(tuple(self._claims.values()))

    def put(self, claim: PreparedClaim, *, is_durable: bool = True) -> None:
        """Note a claim, in the file first; synced to disk if durable."""
        self._store({**self._claims, claim.uid: claim}, _Change(put=claim), is_durable=is_durable)

    def remove(self, uid: str) -> None:
        """Forget a claim."""
        if uid in self._claims:
            left = {key: each for key, each in self._claims.items() if key != uid}
            self._store(left, _Change(remove=uid), is_durable=True)

    def _store(
        self, claims: dict[str, PreparedClaim], change: _Change, *, is_durable: bool
    ) -> None:
        # After a failure the content of the file is unknown.
        left, self._changes_left = self._changes_left, 0
        if left > 0:
            self._files.append(self.changes_path, _line(change), is_durable=is_durable)
        else:
            self._rewrite(claims)
            left = CHANGES_MAX
        self._claims, self._changes_left = claims, left - 1

    def _rewrite(self, claims: dict[str, PreparedClaim]) -> None:
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
    """Return the changes of a file, except an incomplete last one."""
    *whole, _ = content.split(b"\n")
    found = []
    for number, line in enumerate(whole, 1):
        checksum, _, data = line.partition(b" ")
        try:
            if checksum != b"%08x" % crc32(data):
                raise ValueError("its checksum does not match its data")
            found.append(msgspec.json.decode(data, type=_Change))
        except (ValueError, RecursionError) as error:
            text = f"checkpoint {path} is corrupted: line {number}: {error}; {REMEDY}"
            raise CheckpointError(text) from None
    return found


def edits_of(device: PreparedDevice) -> ContainerEdits:
    """Return the container edits of a device."""
    found = fitting(device.edits, ContainerEdits) if device.edits is not None else None
    return found if found is not None else ContainerEdits()


def stored_edits(edits: ContainerEdits) -> Any:
    """Return edits in their stored form."""
    return None if edits == ContainerEdits() else msgspec.json.decode(encode_json(edits))


def _decoded(data: bytes, path: Path) -> tuple[dict[str, PreparedClaim], int, bool]:
    try:
        file = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CheckpointError(f"checkpoint {path} is corrupted: {error}; {REMEDY}") from None
    if crc32(bytes(file.data)) != file.checksum:
        raise CheckpointError(
            f"checkpoint {path} is corrupted: its checksum does not match its data; {REMEDY}"
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


# --- files ----------------------------------------------------------------------------------------


class FileSystem:
    """The file operations of a driver; tests replace it by one whose disk is full."""

    def write(self, path: Path, data: bytes, mode: int = 0o644, *, is_durable: bool = True) -> None:
        """Replace a file; synced to disk if durable."""
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        replace_file(path, data, mode=mode, is_durable=is_durable)

    def append(self, path: Path, data: bytes, *, is_durable: bool = True) -> None:
        """Append to an existing file; synced to disk if durable."""
        handle = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(handle, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            if is_durable:
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
        """Remove a file, if it exists."""
        path.unlink(missing_ok=True)

    def remove_folder(self, path: Path) -> None:
        """Remove a folder with its content, if it exists."""
        with suppress(FileNotFoundError):
            shutil.rmtree(path)

    def names(self, folder: Path) -> list[str]:
        """Return the sorted names in a folder; none if it does not exist."""
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []
