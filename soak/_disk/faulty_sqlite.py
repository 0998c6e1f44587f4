"""SQLite on a disk that fails: a VFS around the system's own, made with ctypes.

`FaultyDisk` becomes SQLite's default VFS for a while. Each write, truncation and sync of a file
asks `fault` first, and fails as it says. The disk also keeps what a loss of power would leave:

    synced    the content of a file when it was last synced
    pending   writes and truncations since then, any of which may be lost

A sync that fails loses some of the pending writes for good, though they can still be read, as Linux
does: a later sync that succeeds does not bring them back.
"""

from __future__ import annotations

import ctypes
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p, cast
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

OK, FULL, CANTOPEN = 0, 13, 14
IOERR_WRITE, IOERR_FSYNC, IOERR_TRUNCATE = 10 | 3 << 8, 10 | 4 << 8, 10 | 6 << 8
SHORT = -1  # half of the bytes are written, then it fails
SECTOR = 512
NAME = b"moorage-faulty"

_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, POINTER(c_int))
_Close = CFUNCTYPE(c_int, c_void_p)
_Write = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)
_Delete = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)


class _Methods(Structure):
    _fields_ = (
        ("version", c_int),
        ("close", _Close),
        ("read", c_void_p),
        ("write", _Write),
        ("truncate", _Truncate),
        ("sync", _Sync),
        *((f"other_{number}", c_void_p) for number in range(13)),
    )


class _File(Structure):
    _fields_ = (("methods", POINTER(_Methods)),)


class _Vfs(Structure):
    _fields_ = (
        ("version", c_int),
        ("file_bytes", c_int),
        ("path_bytes", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", _Open),
        ("delete", _Delete),
        *((f"other_{number}", c_void_p) for number in range(13)),
    )


class Operation(NamedTuple):
    """What SQLite is about to do with a file: write, truncate or sync."""

    verb: str
    path: str


class _Change(NamedTuple):
    """A write at an offset, or, without data, a truncation to it."""

    offset: int
    data: bytes | None


class _Content:
    """What a disk has of a file."""

    def __init__(self, synced: bytes) -> None:
        self.synced = bytearray(synced)
        self.pending: list[_Change] = []

    def settle(self, random: Random | None = None) -> None:
        """Take in the pending changes, or, with randomness, some of them."""
        kept = 1.0 if random is None else random.choice((0.0, 0.5, 1.0))
        for change in self.pending:
            if random is None or random.random() < kept:
                _apply(self.synced, change)
        self.pending.clear()

    def after_power_loss(self, random: Random) -> bytes:
        """Return what is left: some of the pending changes, or parts of them."""
        left = bytearray(self.synced)
        kept = random.choice((0.0, 0.5, 0.9, 1.0))
        for change in self.pending:
            if random.random() >= kept:
                continue
            if change.data is not None and random.random() < 0.2:
                sectors = random.randrange(len(change.data) // SECTOR + 1)
                change = change._replace(data=change.data[: sectors * SECTOR])
            _apply(left, change)
        return bytes(left)


def _apply(content: bytearray, change: _Change) -> None:
    if change.data is None:
        del content[change.offset :]
        return
    content.extend(bytes(max(change.offset - len(content), 0)))
    content[change.offset : change.offset + len(change.data)] = change.data


class FaultyDisk:
    """SQLite's default VFS during `installed`."""

    def __init__(self, random: Random) -> None:
        self.fault: Callable[[Operation], int] = lambda _: OK
        self.faults = 0
        self._random = random
        self._library = find_library()
        self._original = self._library.sqlite3_vfs_find(None)
        self._own = _Vfs()
        ctypes.memmove(ctypes.byref(self._own), self._original, ctypes.sizeof(_Vfs))
        self._own.name = NAME
        self._own.open, self._own.delete = _Open(self._open), _Delete(self._delete)
        self._tables: dict[int, tuple[_Methods, _Methods]] = {}  # own and original, by address
        self._paths: dict[int, str] = {}  # of open files
        self._contents: dict[str, _Content] = {}
        self._lock = threading.RLock()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Have SQLite use this disk for every connection that is opened during a block."""
        self._library.sqlite3_vfs_register(ctypes.byref(self._own), 1)
        try:
            yield
        finally:
            self._library.sqlite3_vfs_register(self._original, 1)
            self._library.sqlite3_vfs_unregister(ctypes.byref(self._own))

    def write_image(self, folder: Path) -> None:
        """Write into a folder what a loss of power would leave of all files, as of now."""
        with self._lock:
            folder.mkdir()
            for path, content in self._contents.items():
                if Path(path).exists():
                    left = content.after_power_loss(self._random)
                    (folder / Path(path).name).write_bytes(left)

    # --- what SQLite calls ------------------------------------------------------------------------

    def _open(self, _: int, name: int | None, file: int, flags: int, out: Any) -> int:
        code: int = self._original.contents.open(
            cast(self._original, c_void_p), name, file, flags, out
        )
        if code or not name:
            return code
        path = ctypes.string_at(name).decode()
        with self._lock:
            self._paths[file] = path
            if path not in self._contents:
                self._contents[path] = _Content(Path(path).read_bytes())
            opened = cast(file, POINTER(_File))
            address = ctypes.addressof(opened.contents.methods.contents)
            opened.contents.methods = ctypes.pointer(self._table(address))
        return code

    def _table(self, address: int) -> _Methods:
        """Return the methods of a file with ours in place of the original ones."""
        if address not in self._tables:
            original, own = _Methods.from_address(address), _Methods()
            ctypes.memmove(ctypes.byref(own), address, ctypes.sizeof(_Methods))
            own.close = _Close(lambda file: self._close(original, file))
            own.write = _Write(lambda *given: self._write(original, *given))
            own.truncate = _Truncate(lambda *given: self._truncate(original, *given))
            own.sync = _Sync(lambda *given: self._sync(original, *given))
            self._tables[address] = own, original
        return self._tables[address][0]

    def _close(self, original: _Methods, file: int) -> int:
        with self._lock:
            self._paths.pop(file, None)
        return int(original.close(file))

    def _write(self, original: _Methods, file: int, data: int, size: int, offset: int) -> int:
        with self._lock:
            path = self._paths[file]
            code = self._asked("write", path)
            if code == SHORT:
                size, code = size // 2, FULL
            elif code:
                return code
            done = int(original.write(file, data, size, offset))
            if done == OK:
                change = _Change(offset, ctypes.string_at(data, size))
                self._contents[path].pending.append(change)
            return done or code

    def _truncate(self, original: _Methods, file: int, size: int) -> int:
        with self._lock:
            path = self._paths[file]
            if code := self._asked("truncate", path):
                return code
            done = int(original.truncate(file, size))
            if done == OK:
                self._contents[path].pending.append(_Change(size, None))
            return done

    def _sync(self, original: _Methods, file: int, flags: int) -> int:
        with self._lock:
            path = self._paths[file]
            if code := self._asked("sync", path):
                self._contents[path].settle(self._random)
                return code
            done = int(original.sync(file, flags))
            if done == OK:
                self._contents[path].settle()
            return done

    def _delete(self, _: int, name: bytes, sync: int) -> int:
        with self._lock:
            self._contents.pop(name.decode(), None)
            return int(self._original.contents.delete(cast(self._original, c_void_p), name, sync))

    def _asked(self, verb: str, path: str) -> int:
        code = self.fault(Operation(verb, path))
        self.faults += code != OK
        return code


def find_library() -> Any:
    """Return the library that Python's sqlite3 uses, or raise OSError."""
    library = ctypes.CDLL("libsqlite3.so.0")
    version = library.sqlite3_libversion_number()
    if _version(version) != sqlite3.sqlite_version:
        raise OSError("Python has another SQLite than the system")
    library.sqlite3_vfs_find.restype = POINTER(_Vfs)
    return library


def _version(number: int) -> str:
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"
