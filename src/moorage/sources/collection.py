"""The slices and other objects of sources, with their source text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from msgspec.structs import replace

from moorage.api.codec import encode_json
from moorage.api.custom_workloads import expand_workload, is_workload
from moorage.api.documents import Document, read
from moorage.api.errors import DecodeError
from moorage.api.gates import Gates
from moorage.api.resource.v1 import ResourceSlice
from moorage.insight.lint.subjects import LintObject, read_object, read_slice, resource_kind
from moorage.insight.messages import Concern
from moorage.insight.snapshot.item_reader import SharingItemReader
from moorage.insight.snapshot.unread import UnreadKind
from moorage.validation.strategy import Context


class Collected:
    """Objects with their source text; sources pass objects to it as to an intake."""

    def __init__(
        self, context: Context, *, kinds: Collection[str] = (), namespace: str = "default"
    ) -> None:
        """Take objects of these kinds; slices are taken in any case."""
        self._context = context
        self._kinds = kinds
        self._namespace = namespace
        self._sources: dict[str, None] = {}
        self.item_reader = SharingItemReader(context)  # of dumps
        self.slices: list[ResourceSlice] = []
        self.objects: list[LintObject] = []
        self.ignored = 0  # objects of other kinds
        self.unwritten: set[str] = set()  # sources without lines: clusters, profiles
        self.unreadable: list[str] = []
        self.unread: list[UnreadKind] = []
        self.concerns: list[Concern] = []
        self.on_object: Callable[[str], None] = lambda _: None

    @property
    def gates(self) -> Gates:
        """The gates that decide which fields there are."""
        return self._context.gates

    @property
    def files(self) -> int:
        """How many files have objects."""
        return len(self._sources)

    def finish(self) -> None:
        """Do nothing: objects are collected independently of each other."""

    def node_names(self) -> list[str]:
        """Return the names of the nodes taken so far."""
        return [each.value.metadata.name for each in self.objects if each.kind.name == "Node"]

    def add_concerns(self, concerns: Iterable[Concern]) -> None:
        """Record the concerns of a source."""
        self.concerns += concerns

    def add_object(self, value: Any, place: str) -> None:
        """Collect an object without source text, through its JSON."""
        self.unwritten.add(place)
        for document in read(encode_json(value), source=place):
            self.add_document(document)

    def add_document(self, document: Document) -> None:
        """Collect the object of a document, if it is of one of the kinds."""
        self.on_object(document.source)
        self._sources.setdefault(document.source.partition("!objects/")[0])  # a snapshot is a file
        kind = resource_kind(document)
        try:
            if is_workload(document):
                self._add_workload(document)
            elif kind == "ResourceSlice":
                found = read_slice(document, self._context)
                self.slices.append(found.stored)
                if kind in self._kinds:
                    self.objects.append(found)
            elif kind in self._kinds:
                self.objects.append(self._in_namespace(read_object(document, self._context)))
            else:
                self.ignored += 1
        except DecodeError as error:
            line, column = document.locate(error.place)
            self.unreadable.append(f"{document.source}:{line}:{column}: {error}")

    def _add_workload(self, document: Document) -> None:
        """Collect what an operator creates, which a cluster with the workload already has."""
        match document.tree:
            case {"metadata": {"uid": str(uid)}} if uid:
                return
        for made in expand_workload(document).made:
            if not made.made.is_copy:
                self.add_document(made.document)

    def _in_namespace(self, found: LintObject) -> LintObject:
        metadata = found.value.metadata
        if not found.kind.namespaced or metadata.namespace:
            return found
        placed = replace(metadata, namespace=self._namespace)
        return found._replace(value=replace(found.value, metadata=placed))
