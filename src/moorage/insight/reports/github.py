"""Workflow commands of GitHub Actions: one line per finding, which GitHub shows as annotation.

    ::error file=claim.yaml,line=9,col=7,title=FieldValueRequired::ResourceClaim default/x: …

Characters that could end a line or a property are escaped, so names and messages from files cannot
inject commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.insight.reports.findings import (
    CheckedObject,
    FindingLevel,
    FindingReport,
    ReportFinding,
)
from moorage.kit.printable import printable

_COMMANDS: Final = {
    FindingLevel.ERROR: "error",
    FindingLevel.WARNING: "warning",
    FindingLevel.NOTE: "notice",
}
_IN_MESSAGES: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES: Final = _IN_MESSAGES | str.maketrans({":": "%3A", ",": "%2C"})


def github_commands(report: FindingReport) -> Iterator[str]:
    """Yield a report as workflow commands, one per line."""
    for each, finding in report.findings():
        yield _command(each, finding)


def _command(each: CheckedObject, finding: ReportFinding) -> str:
    properties: dict[str, str] = {}
    if finding.place.file:
        properties["file"] = printable(finding.place.file)
    if finding.place.position is not None:
        properties["line"], properties["col"] = map(str, finding.place.position)
    properties["title"] = finding.rule
    given = (f"{name}={text.translate(_IN_PROPERTIES)}" for name, text in properties.items())
    message = f"{each.title}: {finding.text}".translate(_IN_MESSAGES)
    return f"::{_COMMANDS[finding.level]} {','.join(given)}::{message}"
