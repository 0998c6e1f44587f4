"""Faults of expressions.

CompileError    an expression that does not parse or does not check; holds all its issues

(EvalError, an expression without a value for some input, is in values.py.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from mooring.cel.lang.source import Source

ISSUES_SHOWN_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong, and the offset of the character it is about, or NOWHERE."""

    offset: int
    message: str


class CompileError(Exception):
    """An expression that cannot be used; `issues` are in the order they were found."""

    def __init__(self, issues: Iterable[Issue], source: str) -> None:
        self.issues = tuple(issues)
        self.source = source
        super().__init__(self.issues, source)

    def __str__(self) -> str:
        source = Source(self.source)
        # What was found first is shown, ordered by place; the sort keeps the order of equals.
        shown = sorted(self.issues[:ISSUES_SHOWN_MAX], key=lambda issue: issue.offset)
        lines = [_display(issue, source) for issue in shown]
        if more := len(self.issues) - len(shown):
            lines.append(f"{more} more errors were truncated")
        return "\n".join(lines)


def _display(issue: Issue, source: Source) -> str:
    """Return an issue as text: place, message and, where it has one, the line with a caret."""
    location = source.location(issue.offset)
    place = f"<input>:{location.line}:{location.column + 1}"
    return f"ERROR: {place}: {issue.message}{source.pointer(location)}"
