"""The input of all report writers: checked objects, and findings about them.

Every command converts its own findings into these. A place names a file of the workspace or no
file: other files appear in the message only, so no path in a report leaves the workspace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from moorage.kit.printable import printable, printable_lines


class FindingLevel(StrEnum):
    """The severity of a finding, in the words of SARIF."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class ReportPlace(NamedTuple):
    """A place in a file of the workspace.

    file    relative to the workspace, with slashes; empty if it is not in it
    origin  where the text was read, if that is no file of the workspace: a member of an archive,
            whose position it then is, a file elsewhere, standard input
    """

    file: str = ""
    line: int = 0  # from 1; 0: the whole file
    column: int = 0
    origin: str = ""

    @property
    def position(self) -> tuple[int, int] | None:
        """Line and column in the file, if known."""
        is_known = self.file and self.line and not self.origin
        return (self.line, max(self.column, 1)) if is_known else None

    @property
    def lead(self) -> str:
        """The beginning of a message: the part of the place that the file does not tell."""
        if not self.origin:
            return ""
        return f"{self.origin}:{self.line}:{self.column}: " if self.line else f"{self.origin}: "


class ReportFinding(NamedTuple):
    """One finding: its rule, its place, what is wrong, and what to do about it."""

    rule: str
    level: FindingLevel
    place: ReportPlace
    message: str
    fix: str = ""
    field: str = ""

    @property
    def text(self) -> str:
        """The message with the fix, printable."""
        lines = (f"{self.place.lead}{self.message}", self.fix)
        return printable_lines("\n".join(filter(None, lines)))


class CheckedObject(NamedTuple):
    """A checked object with its findings, or an input that could not be read."""

    name: str  # kind and name: `ResourceClaim default/gpu`
    place: ReportPlace
    findings: tuple[ReportFinding, ...] = ()
    skipped: str = ""  # why it was not checked

    @property
    def title(self) -> str:
        """The name, in one printable line."""
        return printable(self.name) or "object without a kind"


class ReportRule(NamedTuple):
    """A kind of finding, with the help text that code scanning shows."""

    id: str
    level: FindingLevel
    summary: str
    help: str
    link: str  # to documentation


class FindingReport(NamedTuple):
    """All findings of a command.

    failing  the levels for which the command exits with 1
    """

    command: str  # `validate`, `lint`, `plan`
    version: str
    rules: tuple[ReportRule, ...]
    objects: tuple[CheckedObject, ...]
    failing: frozenset[FindingLevel]

    @property
    def is_complete(self) -> bool:
        """Whether every input could be read."""
        return all(f.rule != UNREADABLE for each in self.objects for f in each.findings)

    def findings(self) -> Iterator[tuple[CheckedObject, ReportFinding]]:
        """Yield all findings; one that several objects share appears once."""
        seen: set[ReportFinding] = set()
        for each in self.objects:
            for finding in each.findings:
                if finding not in seen:
                    seen.add(finding)
                    yield each, finding


# An input that could not be read: every command has this rule.
UNREADABLE = "Unreadable"
UNREADABLE_RULE = ReportRule(
    UNREADABLE,
    FindingLevel.ERROR,
    "an input could not be read",
    "The file does not exist, is no YAML or JSON, has no objects, or goes beyond a limit of "
    "reading. Nothing in it was checked.",
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/",
)


def unreadable_input(message: str, place: ReportPlace) -> CheckedObject:
    """Return an input that could not be read."""
    finding = ReportFinding(UNREADABLE, FindingLevel.ERROR, place, message)
    return CheckedObject(place.file or place.origin or "input", place, (finding,))


def by_file(objects: Iterable[CheckedObject]) -> dict[str, list[CheckedObject]]:
    """Return the objects by file, in order; objects without a file are under their origin."""
    found: dict[str, list[CheckedObject]] = {}
    for each in objects:
        found.setdefault(each.place.file or each.place.origin or "cluster", []).append(each)
    return found
