"""Documents in, objects of a cluster out, as an API server would store them.

    document ─┬─ with a uid or revision: stored ─ default ─ hub version ─ drop disabled ─┬─ object
              └─ with neither: new ─ admit as on create, then its status ────────────────┘

Stored objects are accepted unchanged, with their status, whether or not they would be admitted
today. New ones are admitted or refused, with the position of every error.

Dumps of a cluster are often scrubbed of uids. An object that only lacks uids in its references
counts as stored; the references are resolved by kind and name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from moorage.api.batch import CronJob
from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree
from moorage.api.core import Namespace, ReplicationController, Service
from moorage.api.custom_workloads import is_workload
from moorage.api.documents import Document
from moorage.api.errors import DecodeError
from moorage.api.gates import Gate, Gates
from moorage.api.kinds import Kind
from moorage.api.object_reader import ReadObject, kind_of, read_document
from moorage.api.resource.v1 import ResourceSlice
from moorage.api.timestamp import Timestamp
from moorage.insight.messages import Concern, counted, titled
from moorage.insight.snapshot.item_reader import SharingItemReader
from moorage.insight.snapshot.snapshot import (
    FIELDS,
    Snapshot,
    identified,
    key_of,
    with_references,
    without_empty_attributes,
)
from moorage.insight.snapshot.unread import Unread, UnreadKind
from moorage.insight.snapshot.workloads import next_job
from moorage.insight.snapshot.written_objects import (
    DroppedFields,
    ObjectKey,
    Operators,
    RefusedObject,
    WrittenDocument,
    names_in,
)
from moorage.kit.checkpoints import checkpoint
from moorage.validation.errors import ErrorType
from moorage.validation.manifests import Finding, ManifestValidator, Severity, Verdict
from moorage.validation.registry import GENERATED_SUFFIX, defaulted_hub, strategy_for
from moorage.validation.strategy import Context

_TAKEN_KINDS = {struct.__name__ for struct in FIELDS} | {CronJob.__name__}
# Kinds that decide nothing here and are ignored. All others are reported.
_IGNORED_KINDS = {kind.name for kind in CATALOGUE} - _TAKEN_KINDS
_FOREIGN_IGNORED_KINDS = {
    *("networking.k8s.io/v1/Ingress", "networking.k8s.io/v1/NetworkPolicy"),
    "apiextensions.k8s.io/v1/CustomResourceDefinition",
}

# Kinds of which only the selectors of pods count; a snapshot may have no more of them.
_SELECTING = (Service, ReplicationController)

_REFERENCE_UID = re.compile(r"(metadata\.ownerReferences|status\.reservedFor)\[\d+\]\.uid")
_DROPPED = re.compile(r"fields of (\w+) are dropped")
_INDEX = re.compile(r"\[\d+\]")


class SnapshotBuilder:
    """Collects documents and objects, and concerns about them."""

    def __init__(
        self,
        context: Context,
        *,
        namespace: str = "default",
        known: Iterable[Namespace] = (),
        is_cluster: bool = False,
    ) -> None:
        """Expect objects of a cluster, or else objects to create."""
        self._context = context
        self._namespace = namespace
        self._is_cluster = is_cluster
        self._judge = ManifestValidator(context, namespace=namespace)
        for each in known:  # existing namespaces decide about admin access
            self._judge.record_namespace(each)
        self._objects: dict[tuple[str, str, str], tuple[Any, str]] = {}
        self._generated: Counter[str] = Counter()
        self._warnings: list[Concern] = []
        self._unknown: Counter[str] = Counter()
        self._remarks: Counter[tuple[str, str]] = Counter()
        self._dropped: Counter[tuple[str, Gate]] = Counter()
        self._scrubbed: Counter[str] = Counter()  # by kind
        self.item_reader = SharingItemReader(context)  # of dumps
        self.on_object: Callable[[str], None] = _nobody  # called with the source of each object
        self._documents: list[Document] = []  # of manifests, to write them again
        self._keys: dict[int, ObjectKey] = {}  # of the objects of documents, by identity
        self._operators = Operators()
        self.refused: list[str] = []
        self.refused_objects: list[RefusedObject] = []
        self.dropped_fields: list[DroppedFields] = []
        self.unreadable: list[str] = []
        self.unread: list[UnreadKind] = []

    @property
    def gates(self) -> Gates:
        """The feature gates that decide which fields there are."""
        return self._context.gates

    def add_concerns(self, concerns: Iterable[Concern]) -> None:
        """Add concerns of a source about its objects."""
        self._warnings += concerns

    def finish(self) -> None:
        """Add what operators create, if it is not there, and what waited for its namespace."""
        for made in self._operators.missing(self._objects, self._namespace):
            self._add_new(made)
        for document, verdict in self._judge.remaining():
            self._add_judged(document, verdict)

    def node_names(self) -> Iterable[str]:
        """Return the names of the nodes added so far."""
        return [name for kind, _, name in self._objects if kind == "Node"]

    def snapshot(self) -> Snapshot:
        """Return all objects added."""
        self.finish()
        uids = {key: value.metadata.uid for key, (value, _) in self._objects.items()}
        values = (with_references(value, uids) for value, _ in self._objects.values())
        return Snapshot.of(values, Unread(tuple(self.unread)))

    def written(self) -> Iterator[WrittenDocument]:
        """Yield the documents of manifests in the order in which they came."""
        for document in self._documents:
            made = self._operators.made_of(document)
            yield WrittenDocument(document, self._keys.get(id(document)), made)

    def concerns(self) -> Iterator[Concern]:
        """Yield the concerns about the objects added."""
        yield from self._warnings
        for (kind, message), count in self._remarks.items():
            yield Concern("remark", f"{message} in {counted(count, 'object')} of kind {kind}")
        for (kind, gate), count in self._dropped.items():
            objects = f"{counted(count, 'object')} of kind {kind}"
            fact = f"fields of {gate} are dropped in {objects}"
            yield Concern("dropped-fields", fact, "its feature gate is off")
        for kind, count in self._scrubbed.items():
            fact = f"uids of references are missing in {counted(count, 'object')} of kind {kind}"
            yield Concern("scrubbed", fact, "what they refer to is found by kind and name")
        for message, count in self._unknown.items():
            yield Concern(
                "unknown-kind",
                f"{message} ({counted(count, 'object')})",
                "left out; pods or devices that come from it are missing from the answer",
            )

    def add_document(self, document: Document) -> None:
        """Add the object of a document, if its kind matters."""
        self.on_object(document.source)
        if not self._is_cluster:
            self._documents.append(document)
        reading: ReadObject | None = document.reading
        if reading is not None:
            kind = reading.kind
        else:
            try:
                kind = kind_of(document.tree, extensions=self._context.extensions)
            except DecodeError as error:
                if is_workload(document):
                    self._add_workload(document)
                else:
                    self._without_kind(document, error)
                return
        if kind.name in _IGNORED_KINDS:
            return
        if kind.struct in _SELECTING:
            self._add_selecting(document, kind)
            return
        if kind.name not in _TAKEN_KINDS:
            self._unknown[f"{kind.name} ({kind.api_version}) is not looked at"] += 1
        elif _was_stored(document):
            self._add_stored(document)
        else:
            self._add_new(document)

    def _add_workload(self, document: Document) -> None:
        """Add what an operator creates; a cluster that stored the workload has that already."""
        if self._is_cluster and _was_stored(document):
            return
        try:
            remarks = self._operators.add(document)
        except DecodeError as error:
            self._complain(document, error)
            return
        self._warnings += (Concern("remark", f"{_place(document)}: {fact}") for fact in remarks)

    def _without_kind(self, document: Document, error: DecodeError) -> None:
        match document.tree:
            case {"apiVersion": str(version), "kind": str(name)} if version and name:
                if f"{version}/{name}" in _FOREIGN_IGNORED_KINDS:
                    return
                # For kinds that no server has, the error suggests the right kind or version.
                is_foreign = CATALOGUE.is_foreign(version, name)
                if not is_foreign:
                    self._note_version(document, version, name)
                self._unknown[f"{name} ({version}) is not known" if is_foreign else str(error)] += 1
            case _:
                self._complain(document, error)

    def _note_version(self, document: Document, version: str, name: str) -> None:
        """Remember an object of a known kind in a version that no server has."""
        served = sorted({k.api_version for k in CATALOGUE if k.name == name and not k.is_extension})
        if served:
            known = ", ".join(f'"{each}"' for each in served)
            reason = f'apiVersion: Unsupported value: "{version}": supported values: {known}'
            names = names_in(document.tree, self._namespace)
            self.refused_objects.append(RefusedObject(name, *names, (reason,), document.tree))

    def _add_stored(self, document: Document) -> None:
        context = self._context
        try:
            reading = read_document(document, gates=context.gates, extensions=context.extensions)
        except DecodeError as error:
            self._complain(document, error)
            return
        for remark in (*reading.remarks, *reading.problems):
            self._remarks[reading.kind.name, _INDEX.sub("[]", remark.message)] += 1
        self._judge.record_namespace(reading.value)
        value = defaulted_hub(reading.value, reading.kind, context)
        value = _in_namespace(value, reading.kind, self._namespace)
        if not self._is_cluster:
            self._keys[id(document)] = key_of(value)
        if document.reading is None:
            self.item_reader.share(value)
        self._add_hub(value, _place(document))

    def _add_selecting(self, document: Document, kind: Kind) -> None:
        """Add an object of which only the selector of pods counts, without validation."""
        try:
            value = decode_tree(document.tree, kind.struct).value
        except DecodeError as error:
            self._complain(document, error)
            return
        if kind.struct is ReplicationController:
            self._unknown[f"{kind.name} ({kind.api_version}) makes no pods here"] += 1
        value = identified(_in_namespace(value, kind, self._namespace))
        self._keys[id(document)] = key_of(value)
        self._put(value, _place(document))

    def _add_new(self, document: Document) -> None:
        verdict = self._judge.validate(document)
        if verdict is not None:  # None: it waits for its namespace
            self._add_judged(document, verdict)

    def _add_judged(self, document: Document, verdict: Verdict) -> None:
        if self._is_cluster and _lacks_uids_only(verdict):
            self._scrubbed[verdict.kind] += 1
            self._add_stored(document)
            return
        for finding in verdict.findings:
            if (dropped := _DROPPED.match(finding.message)) is not None:
                names = (verdict.kind, verdict.namespace, verdict.name)
                self.dropped_fields.append(DroppedFields(*names, dropped[1]))
            if finding.severity is Severity.WARNING:
                self._warnings.append(Concern("remark", _finding_text(verdict, finding)))
            else:
                self.refused.append(_finding_text(verdict, finding))
        if not verdict.is_accepted:
            self._note_refused(document, verdict)
            return
        if verdict.stored is None:  # accepted: the namespace's label is unknown
            self._add_stored(document)
            return
        value = identified(_as_old(self._named(verdict.stored), document))
        self._keys[id(document)] = key_of(value)
        self._put(value, _place(document))

    def _note_refused(self, document: Document, verdict: Verdict) -> None:
        errors = (f.message for f in verdict.findings if f.severity is not Severity.WARNING)
        names = (verdict.namespace, verdict.name)
        if not verdict.namespace and verdict.stored is None:
            names = names_in(document.tree, self._namespace)
        refused = RefusedObject(verdict.kind, *names, tuple(errors), document.tree)
        self.refused_objects.append(refused)
        self._keys[id(document)] = refused[:3]

    def _named(self, value: Any) -> Any:
        """Return the object with a number in its name where a server would generate a suffix."""
        metadata = value.metadata
        if metadata.name != f"{metadata.generate_name}{GENERATED_SUFFIX}":
            return value
        base = f"{value.kind}/{metadata.namespace}/{metadata.generate_name}"
        number = self._generated[base]
        self._generated[base] += 1
        return replace(value, metadata=replace(metadata, name=f"{metadata.generate_name}{number}"))

    def add_object(self, value: Any, place: str) -> None:
        """Add an object in its hub version, without disabled fields."""
        self.on_object(place)
        self._add_hub(value, place)

    def _add_hub(self, value: Any, place: str) -> None:
        checkpoint()
        kind = CATALOGUE.find(value.api_version, value.kind)
        for gate in strategy_for(kind).disabled_gates(value, None, self._context):
            self._dropped[kind.name, gate] += 1
            names = (kind.name, value.metadata.namespace, value.metadata.name)
            self.dropped_fields.append(DroppedFields(*names, str(gate)))
        self._put(identified(without_disabled(value, self._context)), place)

    def _put(self, value: Any, place: str) -> None:
        if isinstance(value, CronJob):
            if value.spec.suspend:
                return
            value = next_job(value)
        key = key_of(value)
        before = self._objects.get(key)
        if before is not None and before[0] != value:
            fact = f"{titled(value)} is there twice, at {before[1]} and at {place}, and differs"
            self._warnings.append(Concern("contradiction", fact, "the latter counts"))
        self._objects[key] = (value, place)

    def _complain(self, document: Document, error: DecodeError) -> None:
        line, column = document.locate(error.place)
        self.unreadable.append(f"{document.source}:{line}:{column}: {error}")


def _nobody(_: str) -> None:
    pass


def _was_stored(document: Document) -> bool:
    if document.reading is not None:
        of_object = document.reading.value.metadata
        return bool(of_object.uid or of_object.resource_version)
    tree = document.tree
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    if not isinstance(metadata, dict):
        return False
    return bool(metadata.get("uid") or metadata.get("resourceVersion"))


def _as_old(value: Any, document: Document) -> Any:
    """Return a new object as old as its manifest says: of two classes, the newer one counts.

    A server would set the time. But who keeps it in a file has removed the uid, not the age.
    """
    match document.tree:
        case {"metadata": {"creationTimestamp": str(created)}}:
            time = Timestamp.parse(created)
            return replace(value, metadata=replace(value.metadata, creation_timestamp=time))
        case _:
            return value


def _lacks_uids_only(verdict: Verdict) -> bool:
    """Return whether the only errors of an object are missing uids in its references."""
    errors = [each for each in verdict.findings if each.severity is Severity.ERROR]
    return bool(errors) and all(
        _REFERENCE_UID.fullmatch(error.field) and error.type == ErrorType.REQUIRED
        for error in errors
    )


def _in_namespace(value: Any, kind: Kind, namespace: str) -> Any:
    if not kind.namespaced or value.metadata.namespace:
        return value
    return replace(value, metadata=replace(value.metadata, namespace=namespace))


def _place(document: Document) -> str:
    return f"{document.source}:{document.line}"


def _finding_text(verdict: Verdict, finding: Finding) -> str:
    """Return a finding with its position and object, as `moor validate` prints it."""
    names = (verdict.namespace, verdict.name) if verdict.name else ()
    subject = f"{verdict.kind} {'/'.join(filter(None, names))}".strip()
    about = f"{subject}: " if subject else ""
    return f"{verdict.source}:{finding.line}:{finding.column}: {about}{finding.message}"


def without_disabled(value: Any, context: Context) -> Any:
    """Return a stored object in its hub version without the fields that the gates disable."""
    strategy = strategy_for(CATALOGUE.find(value.api_version, value.kind))
    prepared = strategy.prepare_for_create(value, context)
    if isinstance(prepared, ResourceSlice) and not context.enabled(Gate.DRA_LIST_TYPE_ATTRIBUTES):
        prepared = without_empty_attributes(prepared)
    kept = {"metadata": value.metadata}
    if hasattr(value, "status"):
        kept["status"] = value.status
    return replace(prepared, **kept)
