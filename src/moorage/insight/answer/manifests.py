"""Manifests with a fix made: every document that was given, and what else the fix touches.

Documents keep their order, and YAML keeps its comments where nothing or only single values change.
A document that the fix changes keeps its form where the change can be written in it; one in another
version or form of the KEPs is written as a server would store it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from moorage.api.codec import to_tree
from moorage.api.custom_workloads import MadeDocument
from moorage.api.documents import Document, read
from moorage.api.documents.yaml_writer import text_of, with_value
from moorage.api.errors import DecodeError, DocumentError
from moorage.api.object_reader import read_tree
from moorage.insight.answer.changes.edits import (
    APPEND,
    Edit,
    EditPath,
    ObjectChange,
    Removal,
    edited_tree,
    without_server_fields,
)
from moorage.insight.answer.finding import Fix
from moorage.insight.errors import UnwritableFixError
from moorage.insight.snapshot.snapshot import Snapshot, key_of
from moorage.insight.snapshot.written_objects import ObjectKey, WrittenDocument
from moorage.validation.strategy import Context


class FixedDocument(NamedTuple):
    """A document with the fix made, and the text for it if its author's can stay."""

    tree: Any
    text: str | None = None


def fixed_manifests(
    fix: Fix, documents: Iterable[WrittenDocument], snapshot: Snapshot, context: Context
) -> list[FixedDocument]:
    """Return the objects of the cluster that the fix changes or adds, then all documents with it.

    Namespaces come first: what is created in them may depend on their labels.
    """
    changes = {change.key: change for change in fix.changes}
    existing = {key_of(each): each for each in snapshot.objects()}
    written: list[FixedDocument] = []
    made: set[ObjectKey] = set()
    for document, key, of_workload in documents:
        if of_workload:
            edits = _edits_of_workload(of_workload, changes)
            made |= of_workload.keys() & changes.keys()
            written.append(_with_text(document, edited_tree(document.tree, edits), edits))
            continue
        change = _replacement(document, changes) if key is None else changes.get(key)
        if change is None:
            written.append(_with_text(document, document.tree, ()))
            continue
        made.add(change.key)
        written.append(_changed(document, change, existing, context))
    others = (change for key, change in changes.items() if key not in made)
    added = (FixedDocument(_other(change, existing)) for change in others)
    return sorted([*added, *written], key=lambda each: not _is_namespace(each.tree))


def _edits_of_workload(
    made: Mapping[ObjectKey, MadeDocument], changes: Mapping[ObjectKey, ObjectChange]
) -> tuple[Edit, ...]:
    """Return changes of what an operator creates as edits of its custom workload."""
    found: dict[Edit, None] = {}
    for key in made.keys() & changes.keys():
        for edit in changes[key].edits:
            place = made[key].made.written_place(edit.path)
            if place is None:
                path = ".".join(map(str, edit.path))
                raise UnwritableFixError(
                    f"{path} of {key[0]} {key[2]} is set by an operator, not by the manifests"
                )
            found[Edit(cast("EditPath", place), edit.value)] = None
    return tuple(found)


def _is_namespace(tree: Any) -> bool:
    return isinstance(tree, dict) and tree.get("kind") == "Namespace"


def _replacement(
    document: Document, changes: Mapping[ObjectKey, ObjectChange]
) -> ObjectChange | None:
    """Return the new object that stands for a document which a server does not take."""
    tree: Any = document.tree
    match tree:
        case {"kind": str(kind), "metadata": {"name": str(name)} as metadata}:
            for change in changes.values():
                is_named = (change.kind, change.name) == (kind, name)
                if is_named and metadata.get("namespace") in (None, "", change.namespace):
                    return None if change.new is None else change
    return None


def _changed(
    document: Document, change: ObjectChange, existing: Mapping[ObjectKey, Any], context: Context
) -> FixedDocument:
    """Return a document with a change."""
    tree: Any = document.tree
    if change.new is not None:
        return FixedDocument(change.new)
    value = existing[change.key]
    if tree.get("apiVersion") == value.api_version:
        try:
            edited = edited_tree(tree, change.edits)
            if _means_the_same(tree, edited, change.edits, context):
                return _with_text(document, edited, change.edits)
        except (LookupError, TypeError, DecodeError):
            pass  # It is written in another form.
    return FixedDocument(_renamed(edited_tree(plain_tree(value), change.edits), tree))


def _with_text(document: Document, tree: Any, edits: Iterable[Edit]) -> FixedDocument:
    """Return a document with its author's text, if the edits can be made there."""
    text = text_of(document)
    for edit in edits:
        is_value = not isinstance(edit.value, Removal) and APPEND not in edit.path
        text = with_value(text, edit.path, edit.value) if text and is_value else None
    return FixedDocument(tree, text if text and _reads_as(text, tree) else None)


def _reads_as(text: str, tree: Any) -> bool:
    try:
        return [each.tree for each in read(text.encode(), source="")] == [tree]
    except DocumentError:
        return False


def _means_the_same(tree: Any, edited: Any, edits: Iterable[Edit], context: Context) -> bool:
    """Return whether the edits change the document as they change the object that it describes."""

    def read(each: Any) -> Any:
        reading = read_tree(each, gates=context.gates, extensions=context.extensions)
        return to_tree(reading.value)

    return bool(read(edited) == edited_tree(read(tree), edits))


def _renamed(tree: Any, written: Any) -> Any:
    """Return a tree that has a name, or has one generated, as the document says."""
    match written:
        case {"metadata": {"generateName": str()} as metadata} if not metadata.get("name"):
            tree["metadata"].pop("name", None)
    return tree


def _other(change: ObjectChange, existing: Mapping[ObjectKey, Any]) -> Any:
    """Return an object of the cluster with a change, or a new one."""
    if change.new is not None:
        return change.new
    return edited_tree(plain_tree(existing[change.key]), change.edits)


def plain_tree(value: Any) -> Any:
    """Return an object as a tree, without what a server adds."""
    return without_server_fields(to_tree(value))
