"""Manifests with a fix made: every document that was given, and what else the fix touches.

Documents keep their order. One that the fix changes keeps its form where the change can be written
in it; one in another version or form of the KEPs is written as a server would store it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mooring.api.codec import to_tree
from mooring.api.errors import DecodeError
from mooring.api.object_reader import read_tree
from mooring.insight.answer.edits import (
    Edit,
    ObjectChange,
    edited_tree,
    without_server_fields,
)
from mooring.insight.answer.finding import Fix
from mooring.insight.snapshot.builder import ObjectKey, WrittenDocument
from mooring.insight.snapshot.snapshot import Snapshot, key_of
from mooring.validation.strategy import Context


def fixed_manifests(
    fix: Fix, documents: Iterable[WrittenDocument], snapshot: Snapshot, context: Context
) -> list[Any]:
    """Return all documents with the fix made, then the other objects that it changes or adds."""
    changes = {change.key: change for change in fix.changes}
    existing = {key_of(each): each for each in snapshot.objects()}
    written: list[Any] = []
    made: set[ObjectKey] = set()
    for document, key in documents:
        change = None if key is None else changes.get(key)
        if change is None:
            written.append(document.tree)
            continue
        made.add(change.key)
        written.append(_changed(document.tree, change, existing, context))
    for key, change in changes.items():
        if key not in made:
            written.append(_other(change, existing))
    return written


def _changed(
    tree: Any, change: ObjectChange, existing: Mapping[ObjectKey, Any], context: Context
) -> Any:
    """Return the tree of a document with a change."""
    if change.new is not None:
        return change.new
    value = existing[change.key]
    if tree.get("apiVersion") == value.api_version:
        try:
            edited = edited_tree(tree, change.edits)
            if _means_the_same(tree, edited, change.edits, context):
                return edited
        except (LookupError, TypeError, DecodeError):
            pass  # It is written in another form.
    return _renamed(edited_tree(plain_tree(value), change.edits), tree)


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
