"""Reading the logs of containers, straight from their files: the keeper is not asked.

    follow: when the end of the newest file is reached, wait for more, until the record says that
            the container has ended; what was written before that has been read then

Files are told apart by their inodes: one may get another name while it is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from mooring.api.timestamp import Timestamp
from mooring.kit.clock import Clock
from mooring.node.runtime.contract import LogRange, RuntimeRefusedError
from mooring.node.runtime.keeper import logfile, records
from mooring.node.runtime.process.following import FolderWatch

CHUNK_BYTES = 64 * 1024


async def read_logs(folder: Path, wanted: LogRange, clock: Clock) -> AsyncIterator[bytes]:
    """Yield the wanted part of the log in a container's folder."""
    if not folder.is_dir():
        raise RuntimeRefusedError("ContainerNotFound", "there is no log of this container")
    shown = _Shown(wanted)
    with FolderWatch(folder, clock) as watch:
        reader = _Reader(folder, wanted)
        try:
            while shown.has_room():
                is_over = not wanted.follow or has_ended(folder)
                for data in reader.more():
                    if part := shown.part(data):
                        yield part
                    if not shown.has_room():
                        return
                if is_over:
                    return
                await watch.changed()
        finally:
            reader.close()


def has_ended(folder: Path) -> bool:
    """Return whether a container says nothing more."""
    try:
        tree = json.loads((folder / records.NAME).read_bytes())
        return tree.get("finished") is not None
    except (OSError, ValueError):
        return not folder.is_dir()


class _Shown:
    """Turns entries of the log into what is shown of them."""

    def __init__(self, wanted: LogRange) -> None:
        self._has_times = wanted.has_times
        self._since = b"" if wanted.since is None else _stamp(wanted.since)
        self._left = wanted.bytes_max
        self._is_within: dict[bytes, bool] = {}  # by stream: whether a line goes on

    def has_room(self) -> bool:
        """Return whether more may be shown."""
        return self._left is None or self._left > 0

    def part(self, data: bytes) -> bytes:
        """Return what is shown of whole entries."""
        text = b"".join(self._entries(data))
        if self._left is not None:
            text = text[: self._left]
            self._left -= len(text)
        return text

    def _entries(self, data: bytes) -> Iterator[bytes]:
        for entry in data.splitlines(keepends=True):
            moment, _, rest = entry.partition(b" ")
            stream, _, rest = rest.partition(b" ")
            tag, _, content = rest.partition(b" ")
            if moment < self._since:
                continue
            is_within = self._is_within.get(stream, False)
            self._is_within[stream] = tag == b"P"
            if self._has_times and not is_within:
                yield moment + b" "
            yield content[:-1] if tag == b"P" else content


class _Reader:
    """Reads the files of a log one after the other, as far as they are."""

    def __init__(self, folder: Path, wanted: LogRange) -> None:
        self._folder = folder
        self._file: int | None = None
        self._rest = b""
        self._since = 0.0 if wanted.since is None else wanted.since.instant.timestamp()
        self._begin(wanted.tail_lines)

    def more(self) -> Iterator[bytes]:
        """Yield the whole entries that were not read yet."""
        if self._file is None:  # it was too early
            self._begin(None)
        while (file := self._file) is not None:
            while data := os.read(file, CHUNK_BYTES):
                whole, newline, self._rest = (self._rest + data).rpartition(b"\n")
                if newline:
                    yield whole + newline
            if not self._next():
                return

    def close(self) -> None:
        """Leave the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _paths(self) -> list[Path]:
        """Return the files, oldest first."""
        older = [self._folder / f"{logfile.NAME}.{n}" for n in range(logfile.FILES_MAX, 0, -1)]
        return [each for each in (*older, self._folder / logfile.NAME) if each.exists()]

    def _begin(self, tail_lines: int | None) -> None:
        paths = self._paths()
        if tail_lines is None:
            fresh = [each for each in paths[:-1] if each.stat().st_mtime >= self._since]
            first = (fresh or paths[-1:])[:1]
            self._file = os.open(first[0], os.O_RDONLY | os.O_CLOEXEC) if first else None
            return
        for index in range(len(paths) - 1, -1, -1):
            self.close()
            self._file = os.open(paths[index], os.O_RDONLY | os.O_CLOEXEC)
            position, tail_lines = _tail(self._file, tail_lines)
            os.lseek(self._file, position, os.SEEK_SET)
            if tail_lines == 0:
                return

    def _next(self) -> bool:
        """Go on with the file after the one that is read to its end, if there is one."""
        assert self._file is not None
        current = os.fstat(self._file).st_ino
        paths = self._paths()
        inodes = [each.stat().st_ino for each in paths]
        # One that is gone was the oldest: we were too slow.
        index = inodes.index(current) + 1 if current in inodes else 0
        if index >= len(paths):
            return False
        if os.lseek(self._file, 0, os.SEEK_CUR) < os.fstat(self._file).st_size:
            return True  # there was more just before it was put aside
        self.close()
        self._file = os.open(paths[index], os.O_RDONLY | os.O_CLOEXEC)
        return True


def _tail(descriptor: int, lines: int) -> tuple[int, int]:
    """Return where the last lines of a file begin, and how many are still missing before it.

    A line ends with an entry that is tagged F; so does the file's last, whatever its tag.
    """
    end = os.fstat(descriptor).st_size
    after, rest, is_last = end, b"", True
    while after > 0:
        start = max(0, after - CHUNK_BYTES)
        block = os.pread(descriptor, after - start, start) + rest
        entries = block.split(b"\n")
        # The first of a block may not be whole; it is looked at with the block before.
        position = start + len(block)
        for entry in reversed(entries[1:] if start else entries):
            position -= len(entry)
            if entry:
                if is_last or entry.split(b" ", 3)[2:3] == [b"F"]:
                    if lines == 0:
                        return position + len(entry) + 1, 0
                    lines -= 1
                is_last = False
            position -= 1
        rest, after = (entries[0] if start else b""), start
    return 0, lines


def _stamp(moment: Timestamp) -> bytes:
    seconds = int(moment.instant.timestamp())
    return logfile.stamp(seconds * 1_000_000_000 + moment.instant.microsecond * 1000)
