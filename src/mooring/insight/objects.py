"""Documents as objects, in the version that is stored, each with its text."""

from __future__ import annotations

from typing import Any, NamedTuple

from mooring.api.catalogue import KINDS, to_hub
from mooring.api.codec import Place
from mooring.api.documents import Document
from mooring.api.documents.places import Position
from mooring.api.fieldpath import path_of
from mooring.api.kinds import Kind
from mooring.api.reading import Remark, read_document
from mooring.validation.admission import strategy_of, written_path
from mooring.validation.context import Context
from mooring.validation.verdicts import written_place as written_place

# By kind: no kind that is asked for here is in two groups.
_GROUPS = {kind.name: kind.group for kind in KINDS}


class Object(NamedTuple):
    """An object and the document it was read from."""

    document: Document
    kind: Kind
    value: Any
    remarks: tuple[Remark, ...] = ()
    problems: tuple[Remark, ...] = ()
    stored: Any = None  # of a slice: without what disabled features lose

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
    """Return the kind of an object of a group that we know, "" for everything else.

    Whether the version is known is not asked here: reading the object tells.
    """
    tree = document.tree
    if not isinstance(tree, dict):
        return ""
    version, kind = tree.get("apiVersion"), tree.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return ""
    return kind if _GROUPS.get(kind) == version.rpartition("/")[0] else ""


def read_object(document: Document, context: Context) -> Object:
    """Return the object of a document, or raise DecodeError."""
    reading = read_document(document, gates=context.gates, extensions=context.extensions)
    value = to_hub(reading.value, reading.kind)
    return Object(document, reading.kind, value, reading.remarks, reading.problems)


def read_slice(document: Document, context: Context) -> Object:
    """Return the slice of a document, with what is stored of it, or raise DecodeError."""
    found = read_object(document, context)
    return found._replace(stored=strategy_of(found.kind).prepare_create(found.value, context))
