"""The standard streams of a container: input that waits to be read, output that goes to the log.

The log has the CRI's format, in files of bounded length:

    2026-11-15T12:00:00.000000000Z stdout F a line
    2026-11-15T12:00:00.000000000Z stderr P part of a line that goes on

`log` is the current file, `log.1` the one before it, and so on. A full disk costs lines, never a
container: the log reports lost lines as soon as the disk has space again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Protocol

from moorage.node.runtime.shim.linux import READ, WRITE, Callback, EventLoop
from moorage.node.runtime.shim.protocol import ERRORS, OUTPUT

FILE_BYTES_MAX = 10 * 1024 * 1024
FILES_MAX = 5
LINE_BYTES_MAX = 16 * 1024  # longer lines are cut into parts
LOG_NAME = "log"
INPUT_CHUNK_BYTES = 32 * 1024
OUTPUT_CHUNK_BYTES = 64 * 1024
WAITING_BYTES_MAX = 256 * 1024  # of unread input, before whoever sends it has to wait
DRAIN_BYTES_MAX = 16 * 1024 * 1024
END_OF_INPUT = b"\x04"  # on a terminal
_STREAMS = {OUTPUT: b"stdout", ERRORS: b"stderr"}


class StandardInput:
    """The shim's end of a pipe or terminal; closed when its process has ended."""

    def __init__(self, loop: EventLoop, descriptor: int, *, is_terminal: bool) -> None:
        os.set_blocking(descriptor, False)
        self._loop, self._is_terminal = loop, is_terminal
        self._descriptor: int | None = descriptor
        self._waiting = bytearray()
        self._is_over = False
        self.on_drained: list[Callback] = []  # called when it accepts more

    @property
    def is_full(self) -> bool:
        """Whether the sender should wait."""
        return len(self._waiting) > WAITING_BYTES_MAX

    def feed(self, data: bytes) -> None:
        """Send input; ignored once the input has ended."""
        if self._descriptor is not None and not self._is_over:
            self._waiting += data
            self._write()

    def end(self) -> None:
        """End the input after what still waits; on a terminal each call ends one read."""
        if self._descriptor is not None:
            self._is_over = True
            if self._is_terminal:
                self._waiting += END_OF_INPUT
            self._write()

    def close(self) -> None:
        """Close the descriptor and drop what waits."""
        if self._descriptor is not None:
            self._loop.forget(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None
        self._waiting.clear()

    def _write(self) -> None:
        if self._descriptor is None:
            return
        try:
            while self._waiting:
                count = os.write(self._descriptor, self._waiting[:INPUT_CHUNK_BYTES])
                del self._waiting[:count]
        except BlockingIOError:
            self._loop.watch(self._descriptor, WRITE, self._write)
        except OSError:  # the process no longer reads
            self.close()
        else:
            self._loop.forget(self._descriptor)
            if self._is_over and not self._is_terminal:
                self.close()
        if not self.is_full:
            for call in tuple(self.on_drained):
                call()


def read_available(descriptor: int, bytes_max: int) -> bytes | None:
    """Return the available bytes of a stream, nothing at its end; None if it has nothing yet."""
    try:
        return os.read(descriptor, bytes_max)
    except BlockingIOError:
        return None
    except OSError:
        return b""  # a terminal whose other end is closed


# --- output ---------------------------------------------------------------------------------------


class OutputListener(Protocol):
    """A client attached to a container."""

    def receive(self, channel: int, data: bytes) -> None:
        """Receive a part of the output."""

    def ended(self) -> None:
        """Note that the container has ended."""


class ContainerOutput:
    """Reads the output of a container into its log, and passes it on to attached clients."""

    def __init__(self, loop: EventLoop, folder: str, listeners: set[OutputListener]) -> None:
        self._loop, self._listeners = loop, listeners
        self._log = LogFile(folder)
        self._streams: dict[int, tuple[int, Lines]] = {}  # by descriptor: channel and lines

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The streams that are read; for a terminal just one."""
        return tuple(self._streams)

    def add(self, descriptor: int, channel: int) -> None:
        """Read a stream from now on."""
        os.set_blocking(descriptor, False)
        self._streams[descriptor] = channel, Lines()
        self._loop.watch(descriptor, READ, lambda: self._read(descriptor))

    def drain(self) -> None:
        """Read the rest of all streams; their writers have ended."""
        for descriptor, (channel, lines) in self._streams.items():
            left = DRAIN_BYTES_MAX  # processes elsewhere may hold the stream, and write on
            while left > 0 and (count := self._read(descriptor)):
                left -= count
            self._log.write(_STREAMS[channel], lines.end())

    def close(self) -> None:
        """Close all streams and the log."""
        for descriptor in self._streams:
            self._loop.forget(descriptor)
            os.close(descriptor)
        self._streams = {}
        self._log.close()

    def _read(self, descriptor: int) -> int:
        """Copy the available bytes of a stream; return their number."""
        data = read_available(descriptor, OUTPUT_CHUNK_BYTES)
        if data is None:
            return 0
        if not data:
            self._loop.forget(descriptor)
            return 0
        channel, lines = self._streams[descriptor]
        self._log.write(_STREAMS[channel], lines.feed(data))
        for each in tuple(self._listeners):
            each.receive(channel, data)
        return len(data)


def stamp(moment_ns: int) -> bytes:
    """Return a timestamp as log lines have it."""
    seconds, rest = divmod(moment_ns, 1_000_000_000)
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{text}.{rest:09d}Z".encode()


class Lines:
    """The lines of one stream: bytes in, parts and whole lines out."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield `F` and each complete line, and `P` and parts of lines too long."""
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
        """Yield the rest as a part, since no newline ends it."""
        if self._rest:
            yield b"P", self._rest
        self._rest = b""


class LogFile:
    """The log of one attempt of a container."""

    def __init__(
        self, folder: str, *, bytes_max: int = FILE_BYTES_MAX, files_max: int = FILES_MAX
    ) -> None:
        self._path = os.path.join(folder, LOG_NAME)
        self._bytes_max, self._files_max = bytes_max, files_max
        self._descriptor = self._open()
        self._size = 0
        self._lost = 0  # lines that the disk did not take
        self._reason = ""

    def write(self, stream: bytes, lines: Iterator[tuple[bytes, bytes]]) -> None:
        """Append lines of a stream, all with the current time."""
        start = stamp(time.time_ns()) + b" " + stream + b" "
        entries = [start + tag + b" " + line + b"\n" for tag, line in lines]
        if not entries:
            return
        if self._size >= self._bytes_max:
            self._rotate()
        if self._lost:
            text = f"{self._lost} lines were lost: {self._reason}".encode()
            entries.insert(0, stamp(time.time_ns()) + b" stderr F " + text + b"\n")
        self._append(b"".join(entries), len(entries))

    def close(self) -> None:
        """Close the current file."""
        os.close(self._descriptor)

    def _append(self, data: bytes, count: int) -> None:
        try:
            written = os.write(self._descriptor, data)
            if written < len(data):  # the disk became full in the middle of a line
                os.ftruncate(self._descriptor, self._size)
                raise OSError(28, os.strerror(28))
        except OSError as error:
            self._lost += count - bool(self._lost)
            self._reason = error.strerror or str(error)
            return
        self._size += written
        self._lost = 0

    def _rotate(self) -> None:
        """Begin a new file, and drop the oldest."""
        try:
            for number in range(self._files_max - 1, 0, -1):
                older = f"{self._path}.{number}"
                newer = f"{self._path}.{number - 1}" if number > 1 else self._path
                if os.path.exists(newer):
                    os.replace(newer, older)
            fresh = self._open()
        except OSError:
            return  # the file grows on; the next line tries again
        os.close(self._descriptor)
        self._descriptor, self._size = fresh, 0

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self._path, flags, 0o640)
