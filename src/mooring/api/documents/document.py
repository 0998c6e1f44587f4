"""One document of a stream: its tree, and the way back to its text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from mooring.api.documents.places import Duplicate, Position
from mooring.api.fieldpath import Segment

Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | int | float | bool | None"


class Origin(Protocol):
    """The text a document came from."""

    @property
    def line(self) -> int:
        """The first line of the document."""

    @property
    def json(self) -> bytes | None:
        """The document's own bytes if they are JSON."""

    def locate(self, segments: tuple[Segment, ...]) -> Position:
        """Return the place of a field, or of its deepest ancestor that exists."""


@dataclass(frozen=True, slots=True)
class Document:
    """A value read from a stream.

    tree        dicts, lists and scalars; a number that is no integer is a NumberText
    source      the name of the stream
    index       number of the document in the stream, from 0; empty documents are not counted
    duplicates  keys that were set twice in one mapping; in the tree the last value stands
    within      where the tree is in its document, () unless it was an item of a list
    """

    tree: Tree
    source: str
    index: int
    duplicates: tuple[Duplicate, ...]
    origin: Origin = field(repr=False, compare=False)
    within: tuple[Segment, ...] = ()

    @property
    def line(self) -> int:
        """The first line, from 1."""
        return self.locate(()).line if self.within else self.origin.line

    @property
    def raw(self) -> bytes | None:
        """The JSON text of exactly this tree, for a typed decoder; None for YAML and items."""
        return None if self.within else self.origin.json

    def locate(self, segments: tuple[Segment, ...]) -> Position:
        """Return the place of a field, or of its deepest ancestor that exists."""
        return self.origin.locate(self.within + segments)
