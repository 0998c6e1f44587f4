"""Validate manifests as an API server would, with the line of every finding.

    document → decode → registry → Verdict: accepted or rejected, and the findings

Objects are validated one by one. They depend on each other in one thing only: the label of a
Namespace decides whether claims in it may have admin access. Such a claim waits for its namespace,
so that the order of documents does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec.structs import replace

from moorage.api.catalogue import CATALOGUE
from moorage.api.core import Namespace
from moorage.api.custom_workloads import MadeObject, expand_workload, is_workload
from moorage.api.documents import Document
from moorage.api.errors import DecodeError
from moorage.api.field_path import MapKey, Place, render
from moorage.api.kinds import Kind
from moorage.api.meta import ObjectMeta
from moorage.api.object_reader import ReadObject, Remark, read_document
from moorage.api.resource.v1 import ADMIN_NAMESPACE_LABEL
from moorage.validation.errors import FieldError
from moorage.validation.registry import (
    RegistryResult,
    before_create,
    before_status_update,
    has_status,
    with_resource_version,
)
from moorage.validation.resource_claim import ADMIN_LABEL_MISSING
from moorage.validation.strategy import Context
from moorage.validation.versioned_paths import versioned_path


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    WARNING = "warning"


class Finding(NamedTuple):
    """One error or warning about one object, and its place in the file."""

    severity: Severity
    message: str
    line: int
    column: int
    field: str = ""
    type: str = ""
    detail: str = ""


class Verdict(NamedTuple):
    """The verdict on one document."""

    source: str
    line: int
    api_version: str
    kind: str
    namespace: str
    name: str
    findings: tuple[Finding, ...]
    stored: Any = None
    is_foreign: bool = False  # of a kind that Moorage does not know

    @property
    def is_accepted(self) -> bool:
        """Whether an API server would store the object."""
        return not any(finding.severity is Severity.ERROR for finding in self.findings)


class ManifestValidator:
    """Validates documents one after the other.

    `strict` makes unknown and duplicate fields errors, not warnings; `foreign` accepts objects of
    kinds that Moorage does not know. Of custom workloads, the pods are validated.
    """

    def __init__(
        self,
        context: Context,
        *,
        strict: bool = False,
        foreign: bool = False,
        namespace: str = "default",
    ) -> None:
        self._context = context
        self._strict = strict
        self._foreign = foreign
        self._namespace = namespace  # of objects that do not say theirs
        self._namespaces: dict[str, bool] = {}  # name: whether it has the admin label
        self._waiting: list[tuple[Document, ReadObject]] = []

    def validate(self, document: Document) -> Verdict | None:
        """Return the verdict of an API server on the document.

        None if it depends on a namespace that may still follow: `rest` has those verdicts.
        """
        context = self._context
        try:
            reading = read_document(document, gates=context.gates, extensions=context.extensions)
        except DecodeError as error:
            verdict = _undecodable(document, error)
            if self._foreign and is_workload(document):
                return verdict._replace(
                    namespace=self._written_namespace(document),
                    findings=tuple(self._findings_of_made(document)),
                )
            is_foreign = CATALOGUE.is_foreign(verdict.api_version, verdict.kind)
            if not (is_foreign and self._foreign):
                return verdict
            return verdict._replace(findings=(), is_foreign=True)
        self.record_namespace(reading.value)
        namespace = self._namespace_of(reading)
        admission = self._admit(reading, namespace)
        if namespace not in self._namespaces and _lacks_admin_label(admission):
            self._waiting.append((document, reading))
            return None
        return self._verdict(document, reading, admission)

    def remaining(self) -> Iterator[tuple[Document, Verdict]]:
        """Return the documents that waited for a namespace, after the last document."""
        waiting, self._waiting = self._waiting, []
        for document, reading in waiting:
            admission = self._admit(reading, self._namespace_of(reading))
            yield document, self._verdict(document, reading, admission)

    def record_namespace(self, value: Any) -> None:
        """Record whether an object is a Namespace with the admin label."""
        if isinstance(value, Namespace):
            is_admin = value.metadata.labels.get(ADMIN_NAMESPACE_LABEL) == "true"
            self._namespaces[value.metadata.name] = is_admin

    def _findings_of_made(self, document: Document) -> Iterator[Finding]:
        """Yield the findings about what an operator creates from a custom workload."""
        try:
            for made, origin in expand_workload(document).made:
                if not origin.is_copy and (verdict := self.validate(made)) is not None:
                    yield from (_in_workload(each, verdict, origin) for each in verdict.findings)
        except DecodeError as error:
            yield _undecodable(document, error).findings[0]

    def _written_namespace(self, document: Document) -> str:
        match document.tree:
            case {"metadata": {"namespace": str(namespace)}} if namespace:
                return namespace
        return self._namespace

    def _namespace_of(self, reading: ReadObject) -> str:
        if not reading.kind.namespaced:
            return ""
        return _metadata_of(reading).namespace or self._namespace

    def _admit(self, reading: ReadObject, namespace: str) -> RegistryResult:
        is_admin = self._namespaces.get(namespace, False)
        context = self._context._replace(namespace_is_admin=is_admin)
        return _admit(reading, context, namespace)

    def _verdict(
        self, document: Document, reading: ReadObject, admission: RegistryResult
    ) -> Verdict:
        kind, metadata = reading.kind, _metadata_of(reading)
        namespace = self._namespace_of(reading)
        report = _Report(document, kind)
        for remark in reading.remarks:
            report.add_remark(remark, is_error=self._strict and remark.is_strict)
        for problem in reading.problems:
            report.add_remark(problem, is_error=True)
        for error in admission.errors:
            # A namespace that is not among the objects may have the label.
            unknown = error.detail == ADMIN_LABEL_MISSING and namespace not in self._namespaces
            report.add_error(error, severity=Severity.WARNING if unknown else Severity.ERROR)
        for warning in admission.warnings:
            report.add(Severity.WARNING, (), warning)
        return Verdict(
            source=document.source,
            line=document.line,
            api_version=kind.api_version,
            kind=kind.name,
            namespace=namespace,
            name=metadata.name or metadata.generate_name,
            findings=tuple(report.findings),
            stored=admission.stored,
        )


def _in_workload(finding: Finding, verdict: Verdict, made: MadeObject) -> Finding:
    """Return a finding about a made object with the path in its custom workload, if it has one."""
    for place, written in made.written:
        prefix = render(place)
        rest = finding.field.removeprefix(prefix)
        if finding.field.startswith(prefix) and rest[:1] in ("", ".", "["):
            field = render(written) + rest
            message = field + finding.message.removeprefix(finding.field)
            return finding._replace(field=field, message=message)
    return finding._replace(message=f"{verdict.kind} {verdict.name}: {finding.message}", field="")


def _metadata_of(reading: ReadObject) -> ObjectMeta:
    metadata: ObjectMeta = getattr(reading.value, "metadata", ObjectMeta())
    return metadata


def _lacks_admin_label(admission: RegistryResult) -> bool:
    return any(error.detail == ADMIN_LABEL_MISSING for error in admission.errors)


def _admit(reading: ReadObject, context: Context, namespace: str) -> RegistryResult:
    """Create the object and then, if it has a status, update its status."""
    admission = before_create(reading.value, reading.kind, context, namespace=namespace)
    if admission.stored is None or not has_status(reading.value):
        return admission
    created = _as_created(admission.stored, reading.value.metadata)
    with_status = before_status_update(reading.value, created, reading.kind, context)
    stored = with_status.stored and with_resource_version(with_status.stored, "")
    return replace(
        with_status,
        stored=stored,
        warnings=tuple(dict.fromkeys((*admission.warnings, *with_status.warnings))),
    )


def _as_created(stored: Any, written: ObjectMeta) -> Any:
    """Return an object as a server has it, with the system fields that the manifest has."""
    metadata = replace(
        stored.metadata,
        resource_version=written.resource_version or "1",
        uid=written.uid,
        creation_timestamp=written.creation_timestamp,
    )
    return replace(stored, metadata=metadata)


class _Report:
    """Findings on one document."""

    def __init__(self, document: Document, kind: Kind) -> None:
        self.findings: list[Finding] = []
        self._document = document
        self._kind = kind

    def add(self, severity: Severity, place: Place, message: str, **facts: str) -> None:
        line, column = self._document.locate(written_place(self._document.tree, place))
        self.findings.append(Finding(severity, message, line, column, render(place), **facts))

    def add_remark(self, remark: Remark, *, is_error: bool) -> None:
        severity = Severity.ERROR if is_error else Severity.WARNING
        self.add(severity, remark.place, remark.message)

    def add_error(self, error: FieldError, *, severity: Severity) -> None:
        place = versioned_path(error.path, self._kind).segments
        line, column = self._document.locate(written_place(self._document.tree, place))
        finding = Finding(
            severity, str(error), line, column, error.field, str(error.type), error.detail
        )
        self.findings.append(finding)


def written_place(tree: Any, place: Place) -> Place:
    """Return the path in the document for the path of a field.

    KEP forms leave out levels that the released form has, and Kubernetes leaves some out of its
    paths; the variant that goes deepest into the document is the right one.
    """
    return max(_variants(place), key=lambda variant: _depth(tree, variant) - len(variant))


def _variants(place: Place) -> Iterator[Place]:
    yield place
    yield tuple(segment for segment in place if segment != "exactly")
    match place:
        case ("spec", "devices", *rest):
            yield ("spec", *rest)
            yield ("spec", "spec", "devices", *rest)
            match rest:
                case ["requests", int(position), *field]:
                    request = ("devices", "requests", position, "exactly", *field)
                    yield ("spec", *request)
                    yield ("spec", "spec", *request)


def _depth(tree: Any, place: Place) -> int:
    """Return how many segments of the place exist in the document."""
    for depth, segment in enumerate(place):
        match segment:
            case int():
                if not isinstance(tree, list) or segment >= len(tree):
                    return depth
                tree = tree[segment]
            case _:
                name = segment.name if isinstance(segment, MapKey) else segment
                if not isinstance(tree, dict) or name not in tree:
                    return depth
                tree = tree[name]
    return len(place)


def _undecodable(document: Document, error: DecodeError) -> Verdict:
    tree = document.tree if isinstance(document.tree, dict) else {}
    metadata = tree.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    line, column = document.locate(error.place)
    return Verdict(
        source=document.source,
        line=document.line,
        api_version=_text(tree.get("apiVersion")),
        kind=_text(tree.get("kind")),
        namespace="",
        name=_text(name),
        findings=(Finding(Severity.ERROR, str(error), line, column, render(error.place)),),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
