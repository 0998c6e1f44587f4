"""`moor validate`: would an API server take these objects?"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from moorage import __version__
from moorage.api.documents import CORE, KUBERNETES
from moorage.api.gates import Gates
from moorage.api.resource.v1 import ResourceSlice
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
from moorage.sources.cluster_sources import empty_concerns
from moorage.sources.errors import NoManifestsError, UnreadableError
from moorage.sources.inputs import (
    DocumentPart,
    Skipped,
    find_sources,
    skipped_concerns,
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
    progress = Progress()
    skipped: list[Skipped] = []
    empty: list[str] = []
    kept = empty if allows_empty else None
    for part in _parts(filenames, printer, skipped, kept, recursive=recursive):
        printer.files += 1
        skipped_before, found = len(skipped), False
        try:
            for document in part.documents(schema=KUBERNETES if strict else CORE, skipped=skipped):
                found = True
                verdict = judge.validate(document)
                if verdict is not None:
                    printer.verdict(verdict)
                progress.tick(part.name)
            if not found and len(skipped) == skipped_before:
                empty.append(part.name)
        except UnreadableError as error:
            printer.unreadable(str(error))
    for _, verdict in judge.remaining():
        printer.verdict(verdict)
    progress.clear()
    if not (allows_empty or printer.objects or printer.unreadable_count):
        printer.no_objects(empty_error(filenames))
        empty.clear()  # which the error names
    printer.finish((*empty_concerns(empty), *skipped_concerns(skipped)))
    sys.exit(printer.exit_status)


def _printer(output: str, *, quiet: bool) -> _Printer:
    if output in REPORT_FORMATS:
        return _ReportPrinter(output, quiet=quiet)
    return _TextPrinter(quiet=quiet) if output == "text" else _DataPrinter(output, quiet=quiet)


def _parts(
    filenames: tuple[str, ...],
    printer: _Printer,
    skipped: list[Skipped],
    empty: list[str] | None,
    *,
    recursive: bool,
) -> Iterator[DocumentPart]:
    """Yield everything to check; print what cannot be read.

    Folders and archives without manifests go to `empty`; without it, they are errors.
    """
    for name in filenames:
        try:
            for source in list(find_sources([name], recursive=recursive)):
                try:
                    yield from source.parts(skipped)
                except UnreadableError as error:
                    _take_unreadable(error, source.name, printer, empty)
        except UnreadableError as error:
            _take_unreadable(error, name, printer, empty)


def _take_unreadable(
    error: UnreadableError, name: str, printer: _Printer, empty: list[str] | None
) -> None:
    if isinstance(error, NoManifestsError) and empty is not None:
        empty.append(name)
    else:
        printer.unreadable(str(error))


class _Printer:
    """Counts verdicts; subclasses print them."""

    def __init__(self) -> None:
        self.accepted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.foreign: Counter[str] = Counter()  # not checked, by kind and apiVersion
        self.files = 0
        self.warnings = 0
        self.devices = 0
        self.unreadable_count = 0
        self.is_empty = False  # and must not be

    def verdict(self, verdict: Verdict) -> None:
        if verdict.is_foreign:
            self.foreign[f"{verdict.kind} ({verdict.api_version})"] += 1
            return
        counts = self.accepted if verdict.is_accepted else self.refused
        counts[verdict.kind or "(no kind)"] += 1
        self.warnings += sum(f.severity is Severity.WARNING for f in verdict.findings)
        if isinstance(verdict.stored, ResourceSlice):
            self.devices += len(verdict.stored.spec.devices or ())

    def unreadable(self, message: str) -> None:
        self.unreadable_count += 1
        self.input_error(message)

    def no_objects(self, message: str) -> None:
        self.is_empty = True
        self.input_error(message)

    def input_error(self, message: str) -> None:
        raise NotImplementedError

    def finish(self, notes: Sequence[Concern]) -> None:
        raise NotImplementedError

    @property
    def objects(self) -> int:
        """How many objects there were, checked or not."""
        return self.accepted.total() + self.refused.total() + self.foreign.total()

    def summary(self) -> str:
        """Return one line about everything."""
        accepted, refused = self.accepted.total(), self.refused.total()
        checked = f"{counted(self.objects, 'object')} in {counted(self.files, 'file')}"
        outcomes = f"{accepted} accepted, {refused} refused, {counted(self.warnings, 'warning')}"
        if self.foreign:
            outcomes += f", {self.foreign.total():,} not checked"
        if self.unreadable_count:
            outcomes += f", {counted(self.unreadable_count, 'source')} could not be read"
        return f"{checked}: {outcomes}"

    @property
    def exit_status(self) -> int:
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
        rows = [row for each in self._verdicts for row in _rows(each)]
        print_answer(
            self._output,
            table=lambda is_wide: print_findings(rows, is_wide=is_wide),
            document=lambda: self._document(notes),
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

    def _document(self, notes: Sequence[Concern]) -> dict[str, Any]:
        return {
            "objects": list(map(_as_json, self._verdicts)),
            "unreadable": self._unreadable,
            "notChecked": dict(sorted(self.foreign.items())),
            "skipped": list(map(str, notes)),
            "summary": {
                "files": self.files,
                "accepted": self.accepted.total(),
                "refused": self.refused.total(),
                "notChecked": self.foreign.total(),
                "warnings": self.warnings,
            },
        }


COLUMNS = (
    *("file", "line", "column", "api_version", "kind", "name", "accepted", "severity", "rule"),
    *("field", "message"),
)


def _rows(verdict: Verdict) -> Iterator[dict[str, Any]]:
    """Yield a row for each finding about an object; one for an object without any."""
    about = (verdict.api_version, verdict.kind, _full_name(verdict), verdict.is_accepted)
    for each in verdict.findings:
        found = (each.severity.value, each.type or None, each.field or None, each.message)
        place = (verdict.source, each.line, each.column)
        yield dict(zip(COLUMNS, (*place, *about, *found), strict=True))
    if not verdict.findings:
        nothing = (None, None, None, None)
        yield dict(zip(COLUMNS, (verdict.source, verdict.line, 1, *about, *nothing), strict=True))


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
    name = " ".join(filter(None, (verdict.kind, _full_name(verdict))))
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
    subject = " ".join(part for part in (verdict.kind, _full_name(verdict)) if part)
    about = f"{subject}: " if subject else ""
    severity = coloured(finding.severity.value, colour)
    return f"{printable(place)}: {severity}: {printable(about)}{printable_message(finding.message)}"


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
