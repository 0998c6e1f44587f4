"""What a container says, in a file: lines as the CRI has them, in files of bounded length.

    2026-11-15T12:00:00.000000000Z stdout F a line
    2026-11-15T12:00:00.000000000Z stderr P part of a line that goes on

`log` is the file that is written, `log.1` the one before it, and so on. A full disk costs lines,
never a container: what was lost is told in the log as soon as there is room again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

FILE_BYTES_MAX = 10 * 1024 * 1024
FILES_MAX = 5
LINE_BYTES_MAX = 16 * 1024  # longer lines are cut into parts
NAME = "log"


def stamp(moment_ns: int) -> bytes:
    """Return a moment as log lines have it."""
    seconds, rest = divmod(moment_ns, 1_000_000_000)
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{text}.{rest:09d}Z".encode()


class Lines:
    """The lines of one stream: bytes in, parts and whole lines out."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield `F` and each line that is whole now, and `P` and parts of lines too long."""
        *whole, rest = (self._rest + data).split(b"\n")
        for line in whole:
            while len(line) > LINE_BYTES_MAX:
                yield b"P", line[:LINE_BYTES_MAX]
                line = line[LINE_BYTES_MAX:]
            yield b"F", line
        while len(rest) > LINE_BYTES_MAX:
            yield b"P", rest[:LINE_BYTES_MAX]
            rest = rest[LINE_BYTES_MAX:]
        self._rest = rest

    def end(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield what is left: a part, as no line ends here."""
        if self._rest:
            yield b"P", self._rest
        self._rest = b""


class LogFile:
    """The log of one try of a container."""

    def __init__(
        self, folder: str, *, bytes_max: int = FILE_BYTES_MAX, files_max: int = FILES_MAX
    ) -> None:
        self._path = os.path.join(folder, NAME)
        self._bytes_max, self._files_max = bytes_max, files_max
        self._descriptor = self._opened()
        self._size = 0
        self._lost = 0  # lines that the disk did not take
        self._reason = ""

    def write(self, stream: bytes, lines: Iterator[tuple[bytes, bytes]]) -> None:
        """Add lines of a stream, all at this moment."""
        start = stamp(time.time_ns()) + b" " + stream + b" "
        entries = [start + tag + b" " + line + b"\n" for tag, line in lines]
        if not entries:
            return
        if self._size >= self._bytes_max:
            self._rotate()
        if self._lost:
            told = f"{self._lost} lines were lost: {self._reason}".encode()
            entries.insert(0, stamp(time.time_ns()) + b" stderr F " + told + b"\n")
        self._append(b"".join(entries), len(entries))

    def close(self) -> None:
        """End the log."""
        os.close(self._descriptor)

    def _append(self, data: bytes, count: int) -> None:
        try:
            written = os.write(self._descriptor, data)
            if written < len(data):  # the disk was full in the middle of a line
                os.ftruncate(self._descriptor, self._size)
                written = 0
                raise OSError(28, os.strerror(28))
        except OSError as error:
            self._lost += count - bool(self._lost)
            self._reason = error.strerror or str(error)
            return
        self._size += written
        self._lost = 0

    def _rotate(self) -> None:
        """Begin a new file, and forget the oldest."""
        try:
            for number in range(self._files_max - 1, 0, -1):
                older = f"{self._path}.{number}"
                newer = f"{self._path}.{number - 1}" if number > 1 else self._path
                if os.path.exists(newer):
                    os.replace(newer, older)
            fresh = self._opened()
        except OSError:
            return  # the file grows on; the next line tries again
        os.close(self._descriptor)
        self._descriptor, self._size = fresh, 0

    def _opened(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self._path, flags, 0o640)
