"""Large JSON files, whose text stays in the file while its objects are read.

The text of a large cluster's dump would be the larger half of what a command keeps in memory.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from mooring.sources.errors import UnreadableError

LARGE_BYTES = 8 * 1024 * 1024
_HEAD_BYTES = 4096


class FileText(NamedTuple):
    """The text of a file that is read part by part, as a `StoredText`."""

    name: str
    path: Path
    state: tuple[int, ...]  # the length, and what changes when the file does

    @property
    def bytes_count(self) -> int:
        """The length of the text."""
        return self.state[0]

    def part(self, start: int, end: int) -> bytes:
        """Return some bytes, or raise UnreadableError, also if the file is another one by now."""
        length = min(end, self.bytes_count) - start
        try:  # A message may need a part at any time, so the file is opened each time.
            with self.path.open("rb", buffering=0) as file:
                found = os.pread(file.fileno(), length, start)
                is_same = _state(os.fstat(file.fileno())) == self.state
        except OSError as error:
            raise UnreadableError(f"{self.name}: {error.strerror or error}") from None
        if not is_same or len(found) < length:
            raise UnreadableError(f"{self.name}: changed while it was being read")
        return found


def large_json(name: str, path: Path, bytes_max: int) -> FileText | None:
    """Return the text of a large file that begins as a JSON object does; None for other files."""
    try:
        found = path.stat()
        # Nothing but a regular file has the same bytes twice.
        if not stat.S_ISREG(found.st_mode) or not LARGE_BYTES <= found.st_size <= bytes_max:
            return None
        text = FileText(name, path, _state(found))
    except OSError:
        return None  # Whoever reads it whole reports that.
    return text if text.part(0, _HEAD_BYTES).lstrip().startswith(b"{") else None


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev
