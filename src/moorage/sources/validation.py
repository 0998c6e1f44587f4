"""Validation of whole sources, as `moor validate` and `moorage.validate` do it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from moorage.api.documents import Document, Schema
from moorage.api.resource.v1 import ResourceSlice
from moorage.insight.messages import Concern, counted
from moorage.sources.cluster_sources import empty_concerns
from moorage.sources.errors import NoManifestsError, UnreadableError
from moorage.sources.inputs import DocumentPart, Skipped, find_sources, skipped_concerns
from moorage.validation.manifests import ManifestValidator, Severity, Verdict


class ValidationTally(ABC):
    """Counts verdicts; subclasses print or keep them."""

    def __init__(self) -> None:
        self.accepted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.foreign: Counter[str] = Counter()  # not checked, by kind and apiVersion
        self.files = 0
        self.warnings = 0
        self.devices = 0
        self.unreadable_count = 0

    def verdict(self, verdict: Verdict) -> None:
        """Count a verdict."""
        if verdict.is_foreign:
            self.foreign[f"{verdict.kind} ({verdict.api_version})"] += 1
            return
        counts = self.accepted if verdict.is_accepted else self.refused
        counts[verdict.kind or "(no kind)"] += 1
        self.warnings += sum(f.severity is Severity.WARNING for f in verdict.findings)
        if isinstance(verdict.stored, ResourceSlice):
            self.devices += len(verdict.stored.spec.devices or ())

    def unreadable(self, message: str) -> None:
        """Count a source that cannot be read."""
        self.unreadable_count += 1
        self.input_error(message)

    @abstractmethod
    def input_error(self, message: str) -> None:
        """Take an error of the input."""

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


class FileCheck:
    """Validates the documents of files one after the other.

    empty    folders, archives and files without an object, if they may be empty
    skipped  documents of known tools that are no manifests
    """

    def __init__(
        self,
        judge: ManifestValidator,
        tally: ValidationTally,
        schema: Schema,
        on_object: Callable[[str], None],
    ) -> None:
        self._judge, self._tally, self._schema = judge, tally, schema
        self._on_object = on_object
        self.empty: list[str] = []
        self.skipped: list[Skipped] = []

    def files(self, names: Iterable[str], *, recursive: bool, allows_empty: bool = False) -> None:
        """Validate all documents of files, folders and archives."""
        for part in self._parts(names, recursive=recursive, allows_empty=allows_empty):
            self._tally.files += 1
            self._check_part(part)

    def documents(self, documents: Iterable[Document]) -> None:
        """Validate documents that are not in a file."""
        for document in documents:
            self._check(document)

    def finish(self) -> None:
        """Validate what waited for its namespace, after all sources."""
        for _, verdict in self._judge.remaining():
            self._tally.verdict(verdict)

    def notes(self) -> tuple[Concern, ...]:
        """Return what was found empty or skipped."""
        return (*empty_concerns(self.empty), *skipped_concerns(self.skipped))

    def _parts(
        self, names: Iterable[str], *, recursive: bool, allows_empty: bool
    ) -> Iterator[DocumentPart]:
        for name in names:
            try:
                for source in list(find_sources([name], recursive=recursive)):
                    try:
                        yield from source.parts(self.skipped)
                    except UnreadableError as error:
                        self._take(error, source.name, allows_empty=allows_empty)
            except UnreadableError as error:
                self._take(error, name, allows_empty=allows_empty)

    def _take(self, error: UnreadableError, name: str, *, allows_empty: bool) -> None:
        if isinstance(error, NoManifestsError) and allows_empty:
            self.empty.append(name)
        else:
            self._tally.unreadable(str(error))

    def _check_part(self, part: DocumentPart) -> None:
        skipped_before, has_object = len(self.skipped), False
        try:
            for document in part.documents(schema=self._schema, skipped=self.skipped):
                has_object = True
                self._check(document)
                self._on_object(part.name)
            if not has_object and len(self.skipped) == skipped_before:
                self.empty.append(part.name)
        except UnreadableError as error:
            self._tally.unreadable(str(error))

    def _check(self, document: Document) -> None:
        verdict = self._judge.validate(document)
        if verdict is not None:
            self._tally.verdict(verdict)


# --- verdicts as data -----------------------------------------------------------------------


def validation_tree(
    tally: ValidationTally,
    verdicts: Iterable[Verdict],
    unreadable: Sequence[str],
    notes: Sequence[Concern],
) -> dict[str, Any]:
    """Return verdicts as `moor validate -o json` prints them."""
    return {
        "objects": list(map(_verdict_tree, verdicts)),
        "unreadable": list(unreadable),
        "notChecked": dict(sorted(tally.foreign.items())),
        "skipped": list(map(str, notes)),
        "summary": {
            "files": tally.files,
            "accepted": tally.accepted.total(),
            "refused": tally.refused.total(),
            "notChecked": tally.foreign.total(),
            "warnings": tally.warnings,
        },
    }


def _verdict_tree(verdict: Verdict) -> dict[str, Any]:
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


COLUMNS = (
    *("file", "line", "column", "api_version", "kind", "name", "accepted", "severity", "rule"),
    *("field", "message"),
)


def validation_rows(verdict: Verdict) -> Iterator[dict[str, Any]]:
    """Yield a row for each finding about an object; one for an object without any."""
    about = (verdict.api_version, verdict.kind, full_name_of(verdict), verdict.is_accepted)
    for each in verdict.findings:
        found = (each.severity.value, each.type or None, each.field or None, each.message)
        place = (verdict.source, each.line, each.column)
        yield dict(zip(COLUMNS, (*place, *about, *found), strict=True))
    if not verdict.findings:
        nothing = (None, None, None, None)
        yield dict(zip(COLUMNS, (verdict.source, verdict.line, 1, *about, *nothing), strict=True))


def full_name_of(verdict: Verdict) -> str:
    """Return namespace and name of the object of a verdict."""
    if verdict.namespace and verdict.name:
        return f"{verdict.namespace}/{verdict.name}"
    return verdict.name
