"""Container logs, read from their files without the shim.

To follow a log: at the end of the newest file, wait for more until the record says that the
container has ended; everything written before that has been read then.

Inodes identify files, since a file may be renamed while it is read.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from pathlib import Path

from moorage.api.timestamp import Timestamp
from moorage.kit.clock import Clock
from moorage.kit.paths_beneath import open_beneath
from moorage.node.inotify import FolderEvents
from moorage.node.runtime.contract import LogRange, RuntimeRefusedError
from moorage.node.runtime.shim import container_io, protocol

CHUNK_BYTES = 64 * 1024
POLL_S = 1.0  # without inotify


async def read_logs(folder: Path, log_range: LogRange, clock: Clock) -> AsyncIterator[bytes]:
    """Yield the requested part of the log in a container's folder."""
    if not folder.is_dir():
        raise RuntimeRefusedError("ContainerNotFound", "there is no log of this container")
    shown = _Shown(log_range)
    with closing(FolderEvents(includes_writes=True)) as events:
        events.watch(folder)
        reader = _Reader(folder, log_range)
        try:
            while shown.allows_more():
                is_over = not log_range.follow or _has_ended(folder)
                for data in reader.more():
                    if part := shown.part(data):
                        yield part
                    if not shown.allows_more():
                        return
                if is_over:
                    return
                await _changed(events, clock)
        finally:
            reader.close()


async def _changed(events: FolderEvents, clock: Clock) -> None:
    if not events.is_available:
        await clock.sleep(POLL_S)
        return
    await events.happened.wait()
    events.happened.clear()


def _has_ended(folder: Path) -> bool:
    """Return whether a container writes nothing more."""
    try:
        with open(open_beneath(folder, protocol.RECORD_NAME, os.O_RDONLY), "rb") as file:
            tree = json.loads(file.read(protocol.RECORD_BYTES_MAX))
        return tree.get("finished") is not None
    except FileNotFoundError:
        return True  # it was removed
    except (OSError, ValueError):
        return False


class _Shown:
    """Formats log entries for the caller."""

    def __init__(self, log_range: LogRange) -> None:
        self._has_times = log_range.has_times
        self._since = b"" if log_range.since is None else _stamp(log_range.since)
        self._left = log_range.bytes_max
        self._is_within: dict[bytes, bool] = {}  # by stream: whether the line is incomplete

    def allows_more(self) -> bool:
        return self._left is None or self._left > 0

    def part(self, data: bytes) -> bytes:
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
    """Reads the files of a log one after the other, as far as they go."""

    def __init__(self, folder: Path, log_range: LogRange) -> None:
        self._folder = folder
        self._file: int | None = None
        self._rest = b""
        self._since = 0.0 if log_range.since is None else log_range.since.instant.timestamp()
        self._begin(log_range.tail_lines)

    def more(self) -> Iterator[bytes]:
        """Yield the complete entries that were not read yet."""
        if self._file is None:  # there was no file yet
            self._begin(None)
        while (file := self._file) is not None:
            while data := os.read(file, CHUNK_BYTES):
                whole, newline, self._rest = (self._rest + data).rpartition(b"\n")
                if newline:
                    yield whole + newline
            if not self._next():
                return

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _files(self) -> list[int]:
        """Return the files, open, oldest first.

        They are opened newest first: a file that is renamed meanwhile is found twice, not missed.
        """
        found: dict[int, int] = {}
        names = (
            container_io.LOG_NAME,
            *(f"{container_io.LOG_NAME}.{n}" for n in range(1, container_io.FILES_MAX + 1)),
        )
        for name in names:
            with suppress(OSError):
                descriptor = open_beneath(self._folder, name, os.O_RDONLY | os.O_NONBLOCK)
                status = os.fstat(descriptor)
                if status.st_ino in found or not stat.S_ISREG(status.st_mode):
                    os.close(descriptor)
                else:
                    found[status.st_ino] = descriptor
        return list(found.values())[::-1]

    def _begin(self, tail_lines: int | None) -> None:
        files = self._files()
        if not files:
            return
        if tail_lines is None:
            fresh = [each for each in files if os.fstat(each).st_mtime >= self._since]
            self._take(files, (fresh or files[-1:])[0])
            return
        for each in reversed(files):
            position, tail_lines = _tail(each, tail_lines)
            if tail_lines == 0 or each == files[0]:
                os.lseek(each, position, os.SEEK_SET)
                self._take(files, each)
                return

    def _next(self) -> bool:
        """Go on with the file after the current one, if there is one."""
        assert self._file is not None
        now = os.fstat(self._file)
        files = self._files()
        inodes = [os.fstat(each).st_ino for each in files]
        # A file that is gone was the oldest: this reader was too slow.
        index = inodes.index(now.st_ino) + 1 if now.st_ino in inodes else 0
        has_more = os.lseek(self._file, 0, os.SEEK_CUR) < os.fstat(self._file).st_size
        if index < len(files) and not has_more:
            self._take(files, files[index])
            return True
        self._take(files, None)
        return index < len(files)  # more was written just before it was rotated

    def _take(self, files: list[int], chosen: int | None) -> None:
        for each in files:
            if each != chosen:
                os.close(each)
        if chosen is not None:
            self.close()
            self._file = chosen


def _tail(descriptor: int, lines: int) -> tuple[int, int]:
    """Return where the last lines of a file begin, and how many are missing before it.

    A line ends with an entry tagged F; the last entry of the file ends one, whatever its tag.
    """
    end = os.fstat(descriptor).st_size
    after, rest, is_last = end, b"", True
    while after > 0:
        start = max(0, after - CHUNK_BYTES)
        block = os.pread(descriptor, after - start, start) + rest
        entries = block.split(b"\n")
        # The first entry of a block may be incomplete; the previous block completes it.
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
    return container_io.stamp(seconds * 1_000_000_000 + moment.instant.microsecond * 1000)
