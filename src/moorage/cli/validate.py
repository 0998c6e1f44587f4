"""`moor validate`: would an API server take these objects?"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import click

from moorage import __version__
from moorage.api.documents import CORE, KUBERNETES
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.cli import CONTEXT
from moorage.cli.cluster_options import allow_empty_option, empty_error
from moorage.cli.command_classes import files_argument
from moorage.cli.errors import DOES_NOT_FIT, FITS, UNREADABLE
from moorage.cli.gate_options import gate_options
from moorage.cli.output import (
    REPORT_FORMATS,
    Progress,
    complain,
    print_answer,
    report_options,
)
from moorage.cli.reports import Workspace, print_findings, print_report
from moorage.cli.terminal import coloured, echo, printable, printable_message
from moorage.insight.messages import Concern, counted, listed
from moorage.insight.object_names import kubectl_name
from moorage.insight.reports import CheckedObject, FindingLevel, FindingReport, ReportFinding
from moorage.insight.reports.rules import VALIDATION_RULES, validation_rule
from moorage.sources.validation import (
    COLUMNS,
    FileCheck,
    ValidationTally,
    full_name_of,
    validation_rows,
    validation_tree,
)
from moorage.validation.manifests import Finding, ManifestValidator, Severity, Verdict
from moorage.validation.strategy import Context

KINDS_SHOWN_MAX = 12


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 all valid, 1 some invalid, 2 usage error, 3 an input could not be "
    "read or has no objects.",
)
@files_argument
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    metavar="FILE|DIR|-",
    help="Manifests to check: a YAML or JSON file, a directory, a tar or zip archive, or "
    "- for standard input. May be repeated.",
)
@click.option("-R", "--recursive", is_flag=True, help="Process subdirectories recursively.")
@click.option(
    "--strict",
    is_flag=True,
    help="Reject unknown and duplicate fields, and everything that Kubernetes 1.37 does "
    "not support.",
)
@click.option(
    "--strict-kinds",
    is_flag=True,
    help="Reject objects of kinds that cannot be checked instead of skipping them.",
)
@allow_empty_option
@report_options
@gate_options
def command(
    filenames: tuple[str, ...],
    recursive: bool,
    strict: bool,
    strict_kinds: bool,
    allows_empty: bool,
    quiet: bool,
    output: str,
    gates: Gates,
) -> None:
    """Validate objects as the API server of Kubernetes 1.37 does on create.

    The command reads the files of -f and [FILE|DIR]…, sets defaults, and applies Kubernetes'
    validation to objects of built-in kinds in all their versions. It prints each error and warning
    with its file and line, then a summary. Of JobSets and workloads of other well-known operators,
    it checks the objects that the operator would create. It counts other custom resources without
    checking them, and skips Kustomizations and files of Helm charts with a note.

    \b
    moor validate -R -f manifests
    moor validate claim.yaml pod.yaml
    helm template chart | moor validate --strict -f -
    """
    if not filenames:
        raise click.UsageError("nothing to check: give -f, or files")
    now = Timestamp(datetime.now(UTC))
    context = Context(gates=gates, now=now, extensions=not strict)
    printer = _printer(output, quiet=quiet)
    judge = ManifestValidator(context, strict=strict, foreign=not strict_kinds)
    with Progress() as progress:
        check = FileCheck(judge, printer, KUBERNETES if strict else CORE, progress.tick)
        check.files(filenames, recursive=recursive, allows_empty=allows_empty)
        check.finish()
    if not (allows_empty or printer.objects or printer.unreadable_count):
        printer.no_objects(empty_error(filenames))
        check.empty.clear()  # which the error names
    printer.finish(check.notes())
    sys.exit(printer.exit_status)


def _printer(output: str, *, quiet: bool) -> _Printer:
    if output in REPORT_FORMATS:
        return _ReportPrinter(output, quiet=quiet)
    return _TextPrinter(quiet=quiet) if output == "text" else _DataPrinter(output, quiet=quiet)


class _Printer(ValidationTally):
    """Prints verdicts while it counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.is_empty = False  # and must not be

    def no_objects(self, message: str) -> None:
        """Take the error that there is no object."""
        self.is_empty = True
        self.input_error(message)

    @abstractmethod
    def finish(self, notes: Sequence[Concern]) -> None:
        """Print what is left, and notes."""

    @property
    def exit_status(self) -> int:
        """The exit status of the command."""
        if self.unreadable_count or self.is_empty:
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
            echo(_finding_line(verdict, finding))

    def input_error(self, message: str) -> None:
        complain(message)

    def finish(self, notes: Sequence[Concern]) -> None:
        for note in (*self._foreign_notes(), *notes):
            echo(f"{coloured('note', 'cyan')}: {printable_message(str(note))}", err=True)
        if self._quiet:
            return
        kinds = sorted({*self.accepted, *self.refused})
        if kinds:
            echo()
            width = max(len(printable(kind)) for kind in kinds)
            for kind in kinds:
                echo(f"  {printable(kind):{width}}  {self._outcomes(kind)}")
        echo(self.summary())

    def _foreign_notes(self) -> Iterator[str]:
        if self.foreign:
            objects = f"{counted(self.foreign.total(), 'object')} of kinds that are not checked"
            kinds = sorted(map(printable, self.foreign))
            yield f"{objects}: {listed(kinds, shown_max=KINDS_SHOWN_MAX)}"

    def _outcomes(self, kind: str) -> str:
        parts = []
        if self.accepted[kind]:
            parts.append(f"{self.accepted[kind]} accepted")
        if self.refused[kind]:
            parts.append(f"{self.refused[kind]} refused")
        text = ", ".join(parts)
        if kind == "ResourceSlice" and self.devices:
            text += f" ({counted(self.devices, 'device')})"
        return text


class _DataPrinter(_Printer):
    """Prints a document, rows or names when all is done."""

    def __init__(self, output: str, *, quiet: bool) -> None:
        super().__init__()
        self._output, self._quiet = output, quiet
        self._verdicts: list[Verdict] = []
        self._unreadable: list[str] = []

    def verdict(self, verdict: Verdict) -> None:
        super().verdict(verdict)
        if not verdict.is_foreign:
            self._verdicts.append(verdict)

    def input_error(self, message: str) -> None:
        self._unreadable.append(message)
        if self._output not in ("json", "yaml"):  # which contain it
            complain(message)

    def finish(self, notes: Sequence[Concern]) -> None:
        is_table = self._output in ("table", "wide")
        rows = [row for each in self._verdicts for row in validation_rows(each)]
        print_answer(
            self._output,
            table=lambda is_wide: print_findings(rows, is_wide=is_wide),
            document=lambda: validation_tree(self, self._verdicts, self._unreadable, notes),
            rows=lambda: rows,
            names=lambda: (
                kubectl_name(each.kind, each.name, each.api_version.rpartition("/")[0])
                for each in self._verdicts
                if each.findings
            ),
            columns=COLUMNS,
        )
        if is_table and not self._quiet:
            echo(self.summary())


class _ReportPrinter(_Printer):
    """Prints a report for a CI system when all is done."""

    def __init__(self, output: str, *, quiet: bool) -> None:
        super().__init__()
        self._output, self._quiet = output, quiet
        self._workspace = Workspace.find()
        self._objects: list[CheckedObject] = []

    def verdict(self, verdict: Verdict) -> None:
        super().verdict(verdict)
        self._objects.append(_checked_object(verdict, self._workspace))

    def input_error(self, message: str) -> None:
        self._objects.append(self._workspace.unreadable(message))

    def finish(self, notes: Sequence[Concern]) -> None:
        for note in notes:
            echo(f"{coloured('note', 'cyan')}: {printable_message(str(note))}", err=True)
        report = FindingReport(
            "validate",
            __version__,
            VALIDATION_RULES,
            tuple(self._objects),
            failing=frozenset((FindingLevel.ERROR,)),
        )
        print_report(report, self._output, "" if self._quiet else self.summary())


def _checked_object(verdict: Verdict, workspace: Workspace) -> CheckedObject:
    name = " ".join(filter(None, (verdict.kind, full_name_of(verdict))))
    findings = (
        ReportFinding(
            rule=validation_rule(finding.type, is_error=finding.severity is Severity.ERROR),
            level=FindingLevel(finding.severity.value),
            place=workspace.place(verdict.source, finding.line, finding.column),
            message=finding.message,
            field=finding.field,
        )
        for finding in verdict.findings
    )
    place = workspace.place(verdict.source, verdict.line, 1)
    skipped = f"{verdict.api_version} is not checked" if verdict.is_foreign else ""
    return CheckedObject(name, place, tuple(findings), skipped)


def _finding_line(verdict: Verdict, finding: Finding) -> str:
    colour = "red" if finding.severity is Severity.ERROR else "yellow"
    place = f"{verdict.source}:{finding.line}:{finding.column}"
    subject = " ".join(part for part in (verdict.kind, full_name_of(verdict)) if part)
    about = f"{subject}: " if subject else ""
    severity = coloured(finding.severity.value, colour)
    return f"{printable(place)}: {severity}: {printable(about)}{printable_message(finding.message)}"
