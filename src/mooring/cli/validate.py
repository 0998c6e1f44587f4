"""`moor validate`: would an API server take these objects?"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from mooring.api.documents import CORE, KUBERNETES
from mooring.api.gates import Gates
from mooring.api.resource.v1 import ResourceSlice
from mooring.api.timestamp import Timestamp
from mooring.cli import CONTEXT
from mooring.cli.exits import DOES_NOT_FIT, FITS, UNREADABLE
from mooring.cli.gate_options import gate_options
from mooring.cli.inputs import UnreadableError, find_sources
from mooring.cli.listing import printable_lines
from mooring.cli.progress import Progress
from mooring.cli.report_options import report_options
from mooring.validation.context import Context
from mooring.validation.verdicts import Finding, Judge, Severity, Verdict


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 all accepted, 1 some refused, 2 usage, 3 some could not be read.",
)
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    required=True,
    metavar="FILE|DIR|-",
    help="YAML or JSON to check: a file, a directory, or - for standard input. May be repeated.",
)
@click.option("-R", "--recursive", is_flag=True, help="Look into subdirectories, too.")
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse unknown and duplicate fields, and all that Kubernetes 1.37 does not have.",
)
@report_options
@gate_options
def command(
    filenames: tuple[str, ...],
    recursive: bool,
    strict: bool,
    quiet: bool,
    output: str,
    gates: Gates,
) -> None:
    """Check objects as the API server of Kubernetes 1.37 would when they are created.

    Reads every kind that Dynamic Resource Allocation uses, in all versions, sets defaults and
    applies Kubernetes' rules. Prints each error and warning with the file and line it is about,
    then a summary.
    """
    now = Timestamp(datetime.now(UTC))
    context = Context(gates=gates, now=now, extensions=not strict)
    printer: _Printer = _JsonPrinter() if output == "json" else _TextPrinter(quiet=quiet)
    judge = Judge(context, strict=strict)
    progress = Progress()
    try:
        sources = list(find_sources(filenames, recursive=recursive))
    except UnreadableError as error:
        printer.unreadable(str(error))
        sources = []
    for source in sources:
        try:
            for document in source.documents(schema=KUBERNETES if strict else CORE):
                verdict = judge.judge(document)
                if verdict is not None:
                    printer.verdict(verdict)
                progress.tick(source.name)
        except UnreadableError as error:
            printer.unreadable(str(error))
    for _, verdict in judge.rest():
        printer.verdict(verdict)
    progress.clear()
    printer.finish(files=len(sources))
    sys.exit(printer.exit_status)


class _Printer:
    """Counts verdicts; subclasses print them."""

    def __init__(self) -> None:
        self.accepted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.warnings = 0
        self.devices = 0
        self.unreadable_count = 0

    def verdict(self, verdict: Verdict) -> None:
        counts = self.accepted if verdict.is_accepted else self.refused
        counts[verdict.kind or "(no kind)"] += 1
        self.warnings += sum(f.severity is Severity.WARNING for f in verdict.findings)
        if isinstance(verdict.stored, ResourceSlice):
            self.devices += len(verdict.stored.spec.devices or ())

    def unreadable(self, message: str) -> None:  # noqa: ARG002
        self.unreadable_count += 1

    def finish(self, *, files: int) -> None:
        raise NotImplementedError

    @property
    def exit_status(self) -> int:
        if self.unreadable_count:
            return UNREADABLE
        return DOES_NOT_FIT if self.refused.total() else FITS


class _TextPrinter(_Printer):
    """Prints `file:line:column: error: …` as findings come, and a table at the end."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__()
        self._quiet = quiet

    def verdict(self, verdict: Verdict) -> None:
        super().verdict(verdict)
        for finding in verdict.findings:
            click.echo(_finding_line(verdict, finding))

    def unreadable(self, message: str) -> None:
        super().unreadable(message)
        click.echo(f"{_coloured('error', 'red')}: {printable_lines(message)}", err=True)

    def finish(self, *, files: int) -> None:
        if self._quiet:
            return
        kinds = sorted({*self.accepted, *self.refused})
        if kinds:
            click.echo()
            width = max(map(len, kinds))
            for kind in kinds:
                click.echo(f"  {kind:{width}}  {self._outcomes(kind)}")
        click.echo(self._summary(files))

    def _outcomes(self, kind: str) -> str:
        parts = []
        if self.accepted[kind]:
            parts.append(f"{self.accepted[kind]} accepted")
        if self.refused[kind]:
            parts.append(f"{self.refused[kind]} refused")
        text = ", ".join(parts)
        if kind == "ResourceSlice" and self.devices:
            text += f" ({_counted(self.devices, 'device')})"
        return text

    def _summary(self, files: int) -> str:
        accepted, refused = self.accepted.total(), self.refused.total()
        checked = f"{_counted(accepted + refused, 'object')} in {_counted(files, 'file')}"
        outcomes = f"{accepted} accepted, {refused} refused, {_counted(self.warnings, 'warning')}"
        unread = f", {_counted(self.unreadable_count, 'source')} could not be read"
        return f"{checked}: {outcomes}{unread if self.unreadable_count else ''}"


class _JsonPrinter(_Printer):
    """Prints one JSON object when all is done."""

    def __init__(self) -> None:
        super().__init__()
        self._objects: list[dict[str, Any]] = []
        self._unreadable: list[str] = []

    def verdict(self, verdict: Verdict) -> None:
        super().verdict(verdict)
        self._objects.append(_as_json(verdict))

    def unreadable(self, message: str) -> None:
        super().unreadable(message)
        self._unreadable.append(message)

    def finish(self, *, files: int) -> None:
        report = {
            "objects": self._objects,
            "unreadable": self._unreadable,
            "summary": {
                "files": files,
                "accepted": self.accepted.total(),
                "refused": self.refused.total(),
                "warnings": self.warnings,
            },
        }
        click.echo(msgspec.json.format(msgspec.json.encode(report)).decode())


def _finding_line(verdict: Verdict, finding: Finding) -> str:
    colour = "red" if finding.severity is Severity.ERROR else "yellow"
    place = f"{verdict.source}:{finding.line}:{finding.column}"
    subject = " ".join(part for part in (verdict.kind, _full_name(verdict)) if part)
    about = f"{subject}: " if subject else ""
    severity = _coloured(finding.severity.value, colour)
    return f"{place}: {severity}: {printable_lines(about + finding.message)}"


def _full_name(verdict: Verdict) -> str:
    if verdict.namespace and verdict.name:
        return f"{verdict.namespace}/{verdict.name}"
    return verdict.name


def _as_json(verdict: Verdict) -> dict[str, Any]:
    def of(severity: Severity) -> Iterable[dict[str, Any]]:
        for finding in verdict.findings:
            if finding.severity is severity:
                facts = {"field": finding.field, "type": finding.type, "detail": finding.detail}
                yield {
                    "message": finding.message,
                    "line": finding.line,
                    "column": finding.column,
                    **{name: fact for name, fact in facts.items() if fact},
                }

    return {
        "file": verdict.source,
        "line": verdict.line,
        "apiVersion": verdict.api_version,
        "kind": verdict.kind,
        "namespace": verdict.namespace,
        "name": verdict.name,
        "accepted": verdict.is_accepted,
        "errors": list(of(Severity.ERROR)),
        "warnings": list(of(Severity.WARNING)),
    }


def _coloured(text: str, colour: str) -> str:
    return click.style(text, fg=colour, bold=True)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
