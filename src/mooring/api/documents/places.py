"""Lines and columns: where a document, a field or a fault is in its text.

# part: a run of text that a parser sees as its whole input, and where it begins in its source
# spot: the place of one value, with the spots of what is inside it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mooring.api.errors import DocumentError
from mooring.api.fieldpath import Key, Segment


class Position(NamedTuple):
    """A place in a text; lines and columns count characters from 1."""

    line: int
    column: int


START = Position(1, 1)


class Duplicate(NamedTuple):
    """A mapping key that was set before; `position` is the later one, whose value won."""

    segments: tuple[Segment, ...]
    position: Position


class PlacedError(DocumentError):
    """Text that cannot be read, with its place: `source:line:column: fact`."""

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
class Spot:
    """Where a value is written: at its key if it has one, else at its first character."""

    position: Position
    below: dict[str, Spot] | list[Spot] | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A run of text and the place of its first character."""

    text: str
    start: Position = START

    def position(self, line: int, column: int) -> Position:
        """Return the place in the source of a line and column of this part, counted from 0."""
        return shifted(self.start, line, column)

    @property
    def end(self) -> Position:
        """The place after the last character."""
        last_break = self.text.rfind("\n")
        return self.position(self.text.count("\n"), len(self.text) - last_break - 1)


def shifted(start: Position, line: int, column: int) -> Position:
    """Return the place that is so many lines and columns, counted from 0, after a start."""
    if line == 0:
        return Position(start.line, start.column + column)
    return Position(start.line + line, column + 1)


def position_of(text: str, index: int) -> Position:
    """Return the place of a character of a text."""
    return Part(text[:index]).end


def find(root: Spot, segments: tuple[Segment, ...]) -> Position:
    """Return the place of a field, or of its deepest ancestor that exists."""
    spot = root
    for segment in segments:
        inside = _step(spot, segment)
        if inside is None:
            break
        spot = inside
    return spot.position


def _step(spot: Spot, segment: Segment) -> Spot | None:
    below = spot.below
    name = segment.name if isinstance(segment, Key) else segment
    if isinstance(below, dict) and isinstance(name, str):
        return below.get(name)
    if isinstance(below, list) and isinstance(name, int) and 0 <= name < len(below):
        return below[name]
    return None
