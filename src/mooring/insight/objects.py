"""Documents as objects of resource.k8s.io, in the version that is stored, each with its text."""

from __future__ import annotations

from typing import Any, NamedTuple

from mooring.api.catalogue import to_hub
from mooring.api.codec import Place
from mooring.api.documents import Document
from mooring.api.documents.places import Position
from mooring.api.fieldpath import path_of
from mooring.api.kinds import Kind
from mooring.api.reading import Remark, read_document
from mooring.api.resource.v1 import GROUP, ResourceSlice
from mooring.validation.admission import strategy_of, written_path
from mooring.validation.context import Context
from mooring.validation.verdicts import written_place as written_place


class Object(NamedTuple):
    """An object and the document it was read from."""

    document: Document
    kind: Kind
    value: Any
    remarks: tuple[Remark, ...] = ()
    problems: tuple[Remark, ...] = ()

    @property
    def full_name(self) -> str:
        """The name, with its namespace if the kind has one."""
        metadata = self.value.metadata
        name: str = metadata.name or metadata.generate_name
        if not self.kind.namespaced:
            return name
        return f"{metadata.namespace or 'default'}/{name}"

    def locate(self, place: Place) -> Position:
        """Return where the text has what stands at a place of the stored version."""
        if place:
            place = written_path(path_of(place), self.kind).segments
        return self.document.locate(written_place(self.document.tree, place))


def resource_kind(document: Document) -> str:
    """Return the kind of an object of resource.k8s.io, "" for everything else."""
    tree = document.tree
    if not isinstance(tree, dict):
        return ""
    version, kind = tree.get("apiVersion"), tree.get("kind")
    is_ours = isinstance(version, str) and version.startswith(f"{GROUP}/")
    return kind if is_ours and isinstance(kind, str) else ""


def read_object(document: Document, context: Context) -> Object:
    """Return the object of a document, or raise DecodeError."""
    reading = read_document(document, gates=context.gates, extensions=context.extensions)
    value = to_hub(reading.value, reading.kind)
    return Object(document, reading.kind, value, reading.remarks, reading.problems)


def read_slice(document: Document, context: Context) -> ResourceSlice:
    """Return the slice of a document without what disabled features lose, or raise DecodeError."""
    found = read_object(document, context)
    slice_: ResourceSlice = strategy_of(found.kind).prepare_create(found.value, context)
    return slice_
