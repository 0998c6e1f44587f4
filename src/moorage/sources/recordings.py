"""Recordings as inputs, at one moment or as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from moorage.insight.errors import ArchiveError
from moorage.insight.history.recording import MAGIC, Recording, is_recording, read_recording
from moorage.sources.errors import UnreadableError

BYTES_MAX = 1024 * 1024 * 1024


class RecordedMoment(NamedTuple):
    """A recording at one of its moments."""

    recording: Recording
    at: str

    def lines(self) -> Iterator[tuple[str, bytes]]:
        """Yield the objects as JSON, each with its place."""
        return self.recording.lines(self.at)


def recorded_moment(content: bytes, at: str) -> RecordedMoment:
    """Return a moment of a recording, or raise ArchiveError or UnknownMomentError."""
    recording = read_recording(content)
    recording.moment(at)
    return RecordedMoment(recording, at)


def recording_at(path: Path) -> Recording | None:
    """Return the recording in a file, None if it is not a recording, or raise UnreadableError."""
    try:
        with path.open("rb") as file:
            if not is_recording(file.read(len(MAGIC))):
                return None
            file.seek(0)
            content = file.read(BYTES_MAX + 1)
        if len(content) > BYTES_MAX:
            limit = f"{BYTES_MAX // 2**20} MiB"
            raise UnreadableError(f"{path}: larger than {limit}, which is all that is read")
        return read_recording(content)
    except ArchiveError as error:
        raise UnreadableError(f"{path}: {error}") from None
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror or error}") from None
