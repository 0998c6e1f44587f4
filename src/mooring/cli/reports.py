"""The reports of `-o sarif|junit|github`: places in the workspace, and printing.

The workspace is the checkout of a CI job (GITHUB_WORKSPACE), if the command runs in it, else the
current folder. Reports name files relative to it, and only files in it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from mooring.cli.output import print_tree
from mooring.cli.terminal import echo
from mooring.insight.reports import (
    CheckedObject,
    FindingReport,
    ReportPlace,
    github_commands,
    junit_document,
    sarif_document,
)
from mooring.insight.reports.findings import unreadable_input

_PLACED = re.compile(r"(?P<source>.+?):(?P<line>\d+):(?P<column>\d+): (?P<fact>.*)", re.DOTALL)
_NAMED = re.compile(r"(?P<source>.+?): (?P<fact>.*)", re.DOTALL)


class Workspace(NamedTuple):
    """The folder that reports are about, and the current folder in it."""

    root: Path
    current: Path

    @classmethod
    def find(cls) -> Workspace:
        """Return the workspace of this process."""
        current = Path.cwd().resolve()
        given = os.environ.get("GITHUB_WORKSPACE", "")
        root = Path(given).resolve() if given else current
        return cls(root if current.is_relative_to(root) else current, current)

    def place(self, source: str, line: int = 0, column: int = 0) -> ReportPlace:
        """Return a place in a source of objects; a member of an archive is in the archive's file.

        A link in the workspace is a file of it, wherever it leads.
        """
        file, mark, _ = source.partition("!")
        path = Path(os.path.normpath(self.current / file))
        is_file = not source.startswith("<") and path.is_relative_to(self.root) and path.is_file()
        inside = path.relative_to(self.root).as_posix() if is_file else ""
        if is_file and not mark:
            return ReportPlace(inside, line, column)
        is_outside = not is_file and path.is_file()
        return ReportPlace(inside, line, column, path.name if is_outside else source)

    def unreadable(self, message: str) -> CheckedObject:
        """Return an input that could not be read, at the place that the message begins with."""
        found = _PLACED.fullmatch(message)
        if found is not None and self._is_source(found["source"]):
            line, column = int(found["line"]), int(found["column"])
            return unreadable_input(found["fact"], self.place(found["source"], line, column))
        found = _NAMED.fullmatch(message)
        if found is not None and self._is_source(found["source"]):
            return unreadable_input(found["fact"], self.place(found["source"]))
        return unreadable_input(message, ReportPlace())

    def _is_source(self, text: str) -> bool:
        return text == "<stdin>" or (self.current / text.partition("!")[0]).is_file()


def print_report(report: FindingReport, output: str, summary: str = "") -> None:
    """Print a report in the format of -o; GitHub's log gets the summary, too."""
    match output:
        case "sarif":
            print_tree(sarif_document(report))
        case "junit":
            echo(junit_document(report))
        case _:
            for line in github_commands(report):
                echo(line)
            if summary:
                echo(summary)
