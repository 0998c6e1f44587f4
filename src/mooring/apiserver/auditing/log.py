"""The file of an audit log: written by a thread of its own, turned over when it is large.

A request hands its note over and goes on. If notes come faster than the disk takes them, those
beyond a bound are dropped and counted; a disk that is full or gone costs lines, never requests.
"""

from __future__ import annotations

import logging
import os
import queue
import re
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, NamedTuple

from mooring.apiserver.auditing.events import Note, line_of

LOG = logging.getLogger(__name__)

WAITING_NOTES_MAX = 10_000
WAITING_BYTES_MAX = 64 * 1024 * 1024
CLOSE_S_MAX = 5.0
TELL_EVERY = 1000  # faults, after the first
MEGABYTE = 1024 * 1024
STANDARD_OUTPUT = "-"

_STAMP = "%Y-%m-%dT%H-%M-%S.%f"


class Rotation(NamedTuple):
    """When a file is turned over, and which old ones are kept; 0 is without bound."""

    size_mb_max: int = 100
    backups_max: int = 0
    age_days_max: int = 0


class AuditLog:
    """Where notes go."""

    def __init__(
        self,
        path: str,
        rotation: Rotation = Rotation(),  # noqa: B008
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._file = _Rotating(Path(path), rotation, now) if path != STANDARD_OUTPUT else None
        self._queue: queue.SimpleQueue[Note | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting_bytes = 0
        self.written = 0
        self.lost = 0  # dropped, or not written
        self._thread = threading.Thread(target=self._run, name="audit-log", daemon=True)
        self._thread.start()

    def put(self, note: Note) -> None:
        """Have a note written; never waits."""
        size = note.size
        with self._lock:
            is_full = self._queue.qsize() >= WAITING_NOTES_MAX
            if is_full or self._waiting_bytes + size > WAITING_BYTES_MAX:
                self._count_loss("notes come faster than they can be written")
                return
            self._waiting_bytes += size
        self._queue.put(note)

    def close(self) -> None:
        """Write what waits, for a while, and close."""
        self._queue.put(None)
        self._thread.join(CLOSE_S_MAX)

    def _run(self) -> None:
        while (note := self._queue.get()) is not None:
            with self._lock:
                self._waiting_bytes -= note.size
            try:
                self._write(line_of(note))
                self.written += 1
            except Exception as error:  # Whatever it is, requests go on and so does the log.
                with self._lock:
                    self._count_loss(str(error))
        if self._file is not None:
            self._file.close()

    def _write(self, line: bytes) -> None:
        if self._file is None:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        else:
            self._file.write(line)

    def _count_loss(self, why: str) -> None:
        if self.lost % TELL_EVERY == 0:
            LOG.warning("audit log: %s; lost so far: %d", why, self.lost + 1)
        self.lost += 1


class _Rotating:
    """A file that only its owner reads, and its older ones beside it."""

    def __init__(self, path: Path, rotation: Rotation, now: Callable[[], datetime]) -> None:
        self._path = path
        self._rotation = rotation
        self._now = now
        self._file = _opened(path)

    def write(self, line: bytes) -> None:
        """Write a line, into a new file if it does not fit into this one."""
        size_max = self._rotation.size_mb_max * MEGABYTE
        size = self._file.tell()
        if size_max and size and size + len(line) > size_max:
            self._turn_over()
        self._file.write(line)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _turn_over(self) -> None:
        self._file.close()
        stamp = self._now().strftime(_STAMP)[:-3]
        older = self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}")
        try:
            os.replace(self._path, older)
        finally:
            self._file = _opened(self._path)
        self._remove_old()

    def _remove_old(self) -> None:
        backups, days = self._rotation.backups_max, self._rotation.age_days_max
        found = self._older_files()
        gone = found[backups:] if backups else []
        if days:
            oldest = (self._now() - timedelta(days=days)).strftime(_STAMP)
            gone += [file for file in found if self._stamp_of(file) < oldest]
        for file in gone:
            file.unlink(missing_ok=True)

    def _older_files(self) -> list[Path]:
        """Return the files that were turned over, newest first."""
        name = re.compile(
            rf"{re.escape(self._path.stem)}-\d{{4}}-\d\d-\d\dT[\d.-]+{re.escape(self._path.suffix)}"
        )
        files = [file for file in self._path.parent.iterdir() if name.fullmatch(file.name)]
        return sorted(files, key=self._stamp_of, reverse=True)

    def _stamp_of(self, file: Path) -> str:
        return file.name.removeprefix(f"{self._path.stem}-")


def _opened(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    file = os.fdopen(descriptor, "ab")
    file.seek(0, os.SEEK_END)
    return file
