"""Converts a custom workload to documents of the objects that its operator creates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from moorage.api.custom_workloads.adapters import ADAPTERS, unmodelled_in
from moorage.api.custom_workloads.made_object import CustomWorkload, MadeObject
from moorage.api.documents.document import Document, Position
from moorage.api.field_path import Place, Segment, render


@dataclass(frozen=True, slots=True)
class MadeOrigin:
    """The origin of a created object: the text of its custom resource."""

    document: Document
    made: MadeObject
    json: bytes | None = None
    yaml: str | None = None

    @property
    def line(self) -> int:
        """The first line of the custom resource."""
        return self.document.line

    def locate(self, segments: tuple[Segment, ...]) -> Position:
        """Return the position of the source of a field, or of the custom resource."""
        return self.document.locate(self.made.written_place(segments) or ())


class MadeDocument(NamedTuple):
    """A document of an object that an operator creates."""

    document: Document
    made: MadeObject

    def written_place(self, place: Place) -> Place | None:
        """Return the path in the custom resource of a part of the object, if it has one."""
        return self.made.written_place(place)


class ExpandedWorkload(NamedTuple):
    """What an operator creates, and the fields that matter but are not modelled."""

    made: Iterator[MadeDocument]
    remarks: tuple[str, ...]


def is_workload(document: Document) -> bool:
    """Return whether a document is a custom workload."""
    if document.reading is not None:  # its tree may not be parsed yet
        known = document.reading.kind
        return (known.api_version, known.name) in ADAPTERS
    match document.tree:
        case {"apiVersion": str(version), "kind": str(kind)}:
            return (version, kind) in ADAPTERS
    return False


def expand_workload(document: Document) -> ExpandedWorkload:
    """Return the documents of a custom workload; they raise DecodeError where it is malformed."""
    workload = _workload(document)
    remarks = (
        f"{render(each.place)} is not modelled: {each.fact}" for each in unmodelled_in(workload)
    )
    return ExpandedWorkload(_documents(document, workload), tuple(remarks))


def _workload(document: Document) -> CustomWorkload:
    assert isinstance(document.tree, dict), "is_workload"
    return CustomWorkload(document.tree)


def _documents(document: Document, workload: CustomWorkload) -> Iterator[MadeDocument]:
    for made in ADAPTERS[workload.api_version, workload.kind](workload):
        inner = _document(document, made)
        if is_workload(inner):  # an object in a wrapper
            for each in _documents(inner, _workload(inner)):
                within = each.made.within(made)
                yield MadeDocument(_document(document, within), within)
        else:
            yield MadeDocument(inner, made)


def _document(document: Document, made: MadeObject) -> Document:
    return Document(made.tree, document.source, document.index, (), MadeOrigin(document, made))
