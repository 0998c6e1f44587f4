"""Large JSON files, whose text stays in the file while its objects are read.

The text of a large dump would take more memory than all of its objects.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from moorage.sources.errors import UnreadableError

LARGE_BYTES = 8 * 1024 * 1024
_HEAD_BYTES = 4096


class FileText(NamedTuple):
    """The text of a file, read in parts, as a `StoredText`."""

    name: str
    path: Path
    state: tuple[int, ...]  # the length, and facts that change with the file

    @property
    def bytes_count(self) -> int:
        """The length of the text."""
        return self.state[0]

    def part(self, start: int, end: int) -> bytes:
        """Return some bytes, or raise UnreadableError, also if the file has changed."""
        length = min(end, self.bytes_count) - start
        try:  # Messages may need a part at any time, so the file is opened for each part.
            with self.path.open("rb", buffering=0) as file:
                found = os.pread(file.fileno(), length, start)
                is_same = _state(os.fstat(file.fileno())) == self.state
        except OSError as error:
            raise UnreadableError(f"{self.name}: {error.strerror or error}") from None
        if not is_same or len(found) < length:
            raise UnreadableError(f"{self.name}: changed while it was being read")
        return found


def large_json(name: str, path: Path, bytes_max: int) -> FileText | None:
    """Return the text of a large file that begins like a JSON object, or None."""
    try:
        found = path.stat()
        # Only a regular file returns the same bytes twice.
        if not stat.S_ISREG(found.st_mode) or not LARGE_BYTES <= found.st_size <= bytes_max:
            return None
        text = FileText(name, path, _state(found))
    except OSError:
        return None  # Reading the whole file reports the error.
    return text if text.part(0, _HEAD_BYTES).lstrip().startswith(b"{") else None


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev
