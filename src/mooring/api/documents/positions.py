"""Lines and columns: the positions of documents, fields and errors in their text.

# part: a section of text that a parser sees as its whole input, and where it begins in its source
# spot: the position of one value, with the spots of the values inside it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mooring.api.errors import DocumentError
from mooring.api.fieldpath import Key, Segment


class Position(NamedTuple):
    """A line and a column, in characters from 1."""

    line: int
    column: int


START = Position(1, 1)


class Duplicate(NamedTuple):
    """A mapping key that was set before; `position` is the later one, whose value won."""

    segments: tuple[Segment, ...]
    position: Position


class PlacedError(DocumentError):
    """Text that cannot be read, with its position: `source:line:column: fact`."""

    def __init__(self, source: str, position: Position | None, fact: str) -> None:
        super().__init__(source, position, fact)
        self.source = source
        self.position = position
        self.fact = fact

    def __str__(self) -> str:
        if self.position is None:
            return f"{self.source}: {self.fact}"
        return f"{self.source}:{self.position.line}:{self.position.column}: {self.fact}"


@dataclass(frozen=True, slots=True)
class SourceSpot:
    """The position of a value: that of its key if it has one, else of its first character."""

    position: Position
    below: dict[str, SourceSpot] | list[SourceSpot] | None = None


@dataclass(frozen=True, slots=True)
class TextPart:
    """A section of text and the position of its first character."""

    text: str
    start: Position = START

    def position(self, line: int, column: int) -> Position:
        """Return the position in the source of a line and column of this part, from 0."""
        return shifted(self.start, line, column)

    @property
    def end(self) -> Position:
        """The position after the last character."""
        last_break = self.text.rfind("\n")
        return self.position(self.text.count("\n"), len(self.text) - last_break - 1)


def shifted(start: Position, line: int, column: int) -> Position:
    """Return the position a number of lines and columns, from 0, after a start."""
    if line == 0:
        return Position(start.line, start.column + column)
    return Position(start.line + line, column + 1)


def position_of(text: str, index: int) -> Position:
    """Return the position of a character of a text."""
    return TextPart(text[:index]).end


def find_position(root: SourceSpot, segments: tuple[Segment, ...]) -> Position:
    """Return the position of a field, or of its deepest existing ancestor."""
    spot = root
    for segment in segments:
        inside = _step(spot, segment)
        if inside is None:
            break
        spot = inside
    return spot.position


def _step(spot: SourceSpot, segment: Segment) -> SourceSpot | None:
    below = spot.below
    name = segment.name if isinstance(segment, Key) else segment
    if isinstance(below, dict) and isinstance(name, str):
        return below.get(name)
    if isinstance(below, list) and isinstance(name, int) and 0 <= name < len(below):
        return below[name]
    return None
