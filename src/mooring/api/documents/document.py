"""One document of a stream: its tree, its positions in the text, and the items of lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from mooring.api.documents.positions import Duplicate, Position
from mooring.api.fieldpath import Segment

Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | int | float | bool | None"


class Origin(Protocol):
    """The text of a document."""

    @property
    def line(self) -> int:
        """The first line of the document."""

    @property
    def json(self) -> bytes | None:
        """The document's own bytes if they are JSON."""

    def locate(self, segments: tuple[Segment, ...]) -> Position:
        """Return the position of a field, or of its deepest existing ancestor."""


@dataclass(frozen=True, slots=True)
class Document:
    """A value read from a stream.

    tree        dicts, lists and scalars; a number that is not an integer is a NumberText
    source      the name of the stream
    index       number of the document in the stream, from 0; empty documents are not counted
    duplicates  keys that were set twice in one mapping; the tree has the last value
    within      the path of the tree in its document, () unless it was an item of a list
    """

    tree: Tree
    source: str
    index: int
    duplicates: tuple[Duplicate, ...]
    origin: Origin = field(repr=False, compare=False)
    within: tuple[Segment, ...] = ()

    @property
    def line(self) -> int:
        """The first line, from 1."""
        return self.locate(()).line if self.within else self.origin.line

    @property
    def raw(self) -> bytes | None:
        """The JSON text of exactly this tree, for a typed decoder; None for YAML and items."""
        return None if self.within else self.origin.json

    def locate(self, segments: tuple[Segment, ...]) -> Position:
        """Return the position of a field, or of its deepest existing ancestor."""
        return self.origin.locate(self.within + segments)


def expand_lists(document: Document) -> Iterator[Document]:
    """Yield the objects of a list (`kind: List`, `kind: ResourceClaimList`), also of nested lists.

    Any other document is yielded unchanged. An item of a typed list without a type gets the list's
    apiVersion and its kind without `List`. Positions and duplicates of an item are those in the
    whole text.
    """
    tree = document.tree
    if not isinstance(tree, dict):
        yield document
        return
    items = _items(tree)
    if items is None:
        yield document
        return
    for index, item in enumerate(items):
        yield from expand_lists(_item(document, _with_type(item, tree), index))


def _items(tree: dict[str, Tree]) -> list[Tree] | None:
    """Return the items if the object is a list."""
    kind = tree.get("kind")
    if not isinstance(kind, str) or not kind.endswith("List"):
        return None
    items = tree.get("items", False)
    if items is None:
        return []
    return items if isinstance(items, list) else None


def _with_type(item: Tree, listed: dict[str, Tree]) -> Tree:
    """Return an item with the type that its list implies."""
    kind = str(listed["kind"]).removesuffix("List")
    if not isinstance(item, dict) or not kind:
        return item
    inherited: dict[str, Tree] = {}
    if not item.get("apiVersion") and "apiVersion" in listed:
        inherited["apiVersion"] = listed["apiVersion"]
    if not item.get("kind"):
        inherited["kind"] = kind
    return {**item, **inherited} if inherited else item


def _item(document: Document, tree: Tree, index: int) -> Document:
    here: tuple[Segment, ...] = ("items", index)
    inside = tuple(
        Duplicate(duplicate.segments[2:], duplicate.position)
        for duplicate in document.duplicates
        if duplicate.segments[:2] == here
    )
    return replace(document, tree=tree, duplicates=inside, within=document.within + here)
