"""Errors of sources.

SourceError (a ValueError)
├── UnreadableError      a source cannot be read
│   └── NoManifestsError  a folder or an archive has no file that could be a manifest
└── ObjectsRefusedError  an API server would reject some objects
"""

from __future__ import annotations

from collections.abc import Iterable

from moorage.kit.errors import MoorageError


class SourceError(MoorageError, ValueError):
    """A source that cannot be used."""


class UnreadableError(SourceError):
    """A source that cannot be read; the message gives place and fact."""


class NoManifestsError(UnreadableError):
    """A folder or an archive without a file that could be a manifest."""


class ObjectsRefusedError(SourceError):
    """Objects that an API server would reject; `messages` has a line for each error."""

    def __init__(self, messages: Iterable[str]) -> None:
        self.messages = tuple(messages)
        super().__init__("\n".join(self.messages))
