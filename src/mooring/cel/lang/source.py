"""Places in the text of an expression.

Everything counts code points from 0; only `Source.location` speaks of lines (from 1) and columns
(from 0). Lines end at a line feed and nowhere else.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

# The offset of what has no place: limits, and faults of the whole expression.
NOWHERE: Final = -2
# The offset of a node that the parser made up; it counts as just before the first character.
UNKNOWN: Final = -1

# Longer lines are not shown under an error.
_LINE_SHOWN_BYTES_MAX: Final = 16_384
_DOT, _WIDE_DOT = ".", "\uff0e"
_CARET, _WIDE_CARET = "^", "\uff3e"


@dataclass(frozen=True, slots=True)
class Location:
    """A line, from 1, and a column, from 0; both -1 for NOWHERE."""

    line: int
    column: int


class Source:
    """The text of an expression, and where its lines begin."""

    __slots__ = ("_line_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._line_starts = [i + 1 for i, character in enumerate(text) if character == "\n"]

    def location(self, offset: int) -> Location:
        """Return the line and column of an offset."""
        if offset == NOWHERE:
            return Location(-1, -1)
        before = bisect_right(self._line_starts, offset)
        return Location(before + 1, offset - (self._line_starts[before - 1] if before else 0))

    def line(self, number: int) -> str | None:
        """Return the text of a line, or None if there is no such line."""
        if not self.text or not 1 <= number <= len(self._line_starts) + 1:
            return None
        start = self._line_starts[number - 2] if number > 1 else 0
        return self.text[start:].split("\n", 1)[0]

    def pointer(self, location: Location) -> str:
        """Return the line of a location with a caret below it, or nothing if it cannot be shown."""
        line = self.line(location.line)
        if line is None or len(line.encode(errors="replace")) > _LINE_SHOWN_BYTES_MAX:
            return ""
        before = line[: max(location.column, 0)]
        at = line[len(before) : len(before) + 1]
        dots = "".join(_DOT if character.isascii() else _WIDE_DOT for character in before)
        caret = _CARET if at.isascii() else _WIDE_CARET
        return f"\n | {line.replace(chr(9), ' ')}\n | {dots}{caret}"
