"""The reports of `-o sarif|junit|github`: places in the workspace, and printing.

The workspace is the checkout of a CI job (GITHUB_WORKSPACE) if the command runs in it, otherwise
the current directory. Reports name only files in the workspace, with relative paths.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from moorage.cli.output import Cell, print_table, print_tree
from moorage.cli.terminal import echo
from moorage.insight.reports import (
    CheckedObject,
    FindingReport,
    ReportPlace,
    github_commands,
    junit_document,
    sarif_document,
)
from moorage.insight.reports.findings import unreadable_input

_PLACED = re.compile(r"(?P<source>.+?):(?P<line>\d+):(?P<column>\d+): (?P<fact>.*)", re.DOTALL)
_NAMED = re.compile(r"(?P<source>.+?): (?P<fact>.*)", re.DOTALL)


class Workspace:
    """The directory that reports cover, and the current directory in it."""

    def __init__(self, root: Path, current: Path) -> None:
        self._current = current
        self._root = root if current.is_relative_to(root) else current
        self._files: dict[str, ReportPlace] = {}  # by source; findings have few

    @classmethod
    def find(cls) -> Workspace:
        """Return the workspace of this process."""
        current = Path.cwd().resolve()
        given = os.environ.get("GITHUB_WORKSPACE", "")
        return cls(Path(given).resolve() if given else current, current)

    def place(self, source: str, line: int = 0, column: int = 0) -> ReportPlace:
        """Return a place in a source of objects; a member of an archive is in the archive's file.

        A symbolic link in the workspace counts as a file in it, whatever its target.
        """
        if source not in self._files:
            self._files[source] = self._file(source)
        return self._files[source]._replace(line=line, column=column)

    def _file(self, source: str) -> ReportPlace:
        file, mark, _ = source.partition("!")
        path = Path(os.path.normpath(self._current / file))
        is_file = not source.startswith("<") and os.path.isfile(path)
        if not (is_file and path.is_relative_to(self._root)):
            return ReportPlace(origin=path.name if is_file else source)
        inside = path.relative_to(self._root).as_posix()
        return ReportPlace(inside, origin=source if mark else "")

    def unreadable(self, message: str) -> CheckedObject:
        """Return an input that could not be read, at the place with which the message begins."""
        found = _PLACED.fullmatch(message)
        if found is not None and self._is_source(found["source"]):
            line, column = int(found["line"]), int(found["column"])
            return unreadable_input(found["fact"], self.place(found["source"], line, column))
        found = _NAMED.fullmatch(message)
        if found is not None and self._is_source(found["source"]):
            return unreadable_input(found["fact"], self.place(found["source"]))
        return unreadable_input(message, ReportPlace())

    def _is_source(self, text: str) -> bool:
        file = self._current / text.partition("!")[0]
        return text == "<stdin>" or os.path.isfile(file)  # which takes any text


SEVERITIES = {"error": "red", "warning": "yellow", "note": "cyan"}
FINDINGS = ("PLACE", "SEVERITY", "KIND", "NAME", "RULE", "MESSAGE")


def print_findings(rows: Iterable[Mapping[str, Any]], *, is_wide: bool) -> None:
    """Print findings as a table; wide names the field and the remedy."""
    header = (*FINDINGS, "FIELD", "REMEDY") if is_wide else FINDINGS
    print_table(header, (_finding_row(row, is_wide=is_wide) for row in rows), is_wide=is_wide)


def _finding_row(row: Mapping[str, Any], *, is_wide: bool) -> list[str | Cell]:
    position = [str(row[name]) for name in ("line", "column") if row.get(name)]
    severity = row.get("severity") or ""
    cells: list[str | Cell] = [
        ":".join([row["file"], *position]),
        Cell(severity, SEVERITIES.get(severity)),
        *(row[name] or "" for name in ("kind", "name", "rule")),
        " ".join((row["message"] or "").split()),
    ]
    more = [row.get("field") or "", " ".join((row.get("remedy") or "").split())]
    return [*cells, *more] if is_wide else cells


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
