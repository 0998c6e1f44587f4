"""Documents and what became of them: objects, refused ones, lost fields, objects of operators."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any, NamedTuple

from moorage.api.custom_workloads import MadeDocument, expand_workload
from moorage.api.documents import Document

ObjectKey = tuple[str, str, str]  # kind, namespace, name


class WrittenDocument(NamedTuple):
    """A document as it was written, and the object that it describes, if its kind matters.

    Of a custom workload, these are the objects that its operator creates.
    """

    document: Document
    key: ObjectKey | None
    made: Mapping[ObjectKey, MadeDocument] = {}


class RefusedObject(NamedTuple):
    """An object that an API server would not take, and why."""

    kind: str
    namespace: str
    name: str
    reasons: tuple[str, ...]
    tree: Any  # as it was written


class DroppedFields(NamedTuple):
    """An object that lost fields because their feature gate is off."""

    kind: str
    namespace: str
    name: str
    gate: str


def names_in(tree: Any, namespace: str) -> tuple[str, str]:
    """Return the namespace and name of an object that was not decoded."""
    match tree:
        case {"metadata": {"name": str(name), "namespace": str(own)}}:
            return own, name
        case {"metadata": {"name": str(name)}}:
            return namespace, name
    return namespace, ""


# --- custom workloads ----------------------------------------------------------------------


class Operators:
    """Collects custom workloads, and gives the objects of their operators when all is read."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Document, MadeDocument]] = []
        # By identity of the custom workloads' documents, which their own keep alive.
        self._made: dict[int, dict[ObjectKey, MadeDocument]] = {}

    def add(self, document: Document) -> tuple[str, ...]:
        """Add a custom workload; return remarks on it, or raise DecodeError."""
        expanded = expand_workload(document)
        self._waiting += [(document, made) for made in expanded.made]
        return expanded.remarks

    def missing(self, existing: Container[ObjectKey], namespace: str) -> Iterator[Document]:
        """Yield the objects of the operators that do not exist."""
        waiting, self._waiting = self._waiting, []
        for workload, made in waiting:
            tree: Any = made.document.tree
            key = (str(tree.get("kind", "")), *names_in(tree, namespace))
            if key not in existing:
                self._made.setdefault(id(workload), {})[key] = made
                yield made.document

    def made_of(self, document: Document) -> Mapping[ObjectKey, MadeDocument]:
        """Return the objects that came from a custom workload."""
        return self._made.get(id(document), {})
