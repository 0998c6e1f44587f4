"""Errors of expressions, and places in their text.

CompileError          an expression that does not parse or does not check; holds all its issues
InstantiationError    a checked expression that cannot be planned
EvalError             an expression without a value for some input; `&&`, `||` and macros absorb it
Cancelled             an evaluation that exceeded its cost limit, which no operator absorbs
Interrupted           an evaluation that its caller ended, such as by the filter timeout: it has no
                      answer, and may be tried again (in `metering`)

MacroError and LiteralError become issues of a CompileError.

Offsets count code points from 0; only `Source.location` has lines (from 1) and columns (from 0).
Lines end at a line feed and nowhere else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from moorage.cel.lang.ast import CheckedAST


# The offset of issues without a location: limits, and errors of the whole expression.
NOWHERE: Final = -2
# The offset of a node that the parser made up; it counts as just before the first character.
UNKNOWN: Final = -1
# Longer lines are not shown under an error.
_LINE_SHOWN_BYTES_MAX: Final = 16_384
_DOT, _WIDE_DOT = ".", "\uff0e"
_CARET, _WIDE_CARET = "^", "\uff3e"
ISSUES_SHOWN_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Issue:
    """One error, and the offset of its character, or NOWHERE."""

    offset: int
    message: str


class CompileError(Exception):
    """An expression that cannot be used; `issues` are in the order of detection."""

    def __init__(self, issues: Iterable[Issue], source: str) -> None:
        self.issues = tuple(issues)
        self.source = source
        super().__init__(self.issues, source)

    def __str__(self) -> str:
        source = Source(self.source)
        # The first issues are shown, ordered by offset; the sort is stable.
        shown = sorted(self.issues[:ISSUES_SHOWN_MAX], key=lambda issue: issue.offset)
        lines = [_display(issue, source) for issue in shown]
        if more := len(self.issues) - len(shown):
            lines.append(f"{more} more errors were truncated")
        return "\n".join(lines)


def _display(issue: Issue, source: Source) -> str:
    """Return an issue as text: location, message and, if possible, the line with a caret."""
    location = source.location(issue.offset)
    where = f"<input>:{location.line}:{location.column + 1}"
    return f"ERROR: {where}: {issue.message}{source.pointer(location)}"


class InstantiationError(Exception):
    """A checked expression that cannot be planned."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.checked: CheckedAST  # set by plan()


class EvalError(Exception):
    """An expression that has no value for this input."""


class Cancelled(Exception):  # noqa: N818 - it is not an error of the expression
    """An evaluation that exceeded its cost limit."""


class MacroError(Exception):
    """A macro whose arguments do not fit."""

    def __init__(self, issue: Issue) -> None:
        super().__init__(issue.message)
        self.issue = issue


class LiteralError(ValueError):
    """A literal that has no value."""


NO_SUCH_OVERLOAD: Final = "no such overload"
COST_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"


def mismatch(wanted: object, given: object) -> str:
    """Return the message for a value of the wrong type."""
    return f"expected type '{wanted}' but found '{given}'"


def no_such_overload() -> EvalError:
    """Return the error of a function that has no overload for its arguments."""
    return EvalError(NO_SUCH_OVERLOAD)


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
