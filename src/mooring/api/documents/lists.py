"""Lists of objects: `kind: List`, and typed ones such as `kind: ResourceClaimList`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mooring.api.documents.document import Document, Tree
from mooring.api.documents.places import Duplicate
from mooring.api.fieldpath import Segment


def expand_lists(document: Document) -> Iterator[Document]:
    """Yield the objects of a list, lists in lists too; what is not a list comes back as it is.

    An item of a typed list that does not say what it is gets the list's apiVersion and the kind
    without `List`. Places and duplicates of an item are those of the item in the whole text.
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
    """Return an item that says what it is, as far as the list knows."""
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
