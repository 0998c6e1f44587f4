"""Changes to objects as data: made to structs to try them, and to manifests to write them.

    ObjectChange(kind, namespace, name, (Edit(path, value), …))

A path goes through the object as it is written in JSON. Maps that are missing on the way are
created; `-` appends to a list.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from moorage.api.codec import decode_tree, to_tree

Step = str | int
EditPath = tuple[Step, ...]
APPEND: Final = "-"
_SERVER_FIELDS: Final = (
    *("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"),
)
_OF_JOBS: Final = (  # labels that the server adds to jobs and their pods
    *("controller-uid", "job-name"),
    *("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"),
)


class Removal(Struct, frozen=True):
    """Stands for a value that is taken away."""


REMOVED: Final = Removal()


class Edit(Struct, frozen=True):
    """A value at a path, or its removal."""

    path: EditPath
    value: Any = REMOVED  # as JSON has it

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer."""
        parts = (str(step).replace("~", "~0").replace("/", "~1") for step in self.path)
        return "".join(f"/{part}" for part in parts)


class ObjectChange(Struct, frozen=True):
    """Edits of one object; of an object that does not exist yet, its whole tree."""

    kind: str
    namespace: str
    name: str
    edits: tuple[Edit, ...] = ()
    new: Any = None  # the tree of a new object

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name, by which snapshots keep objects."""
        return self.kind, self.namespace, self.name

    def __str__(self) -> str:
        """Return the kind and name of the object."""
        return f"{self.kind} {'/'.join(filter(None, (self.namespace, self.name)))}"


def change_of(value: Any, *edits: Edit) -> ObjectChange:
    """Return the change of an existing object."""
    metadata = value.metadata
    return ObjectChange(value.kind, metadata.namespace, metadata.name, edits)


def value_at(tree: Any, path: EditPath) -> Any:
    """Return what is at a path of a tree; None if nothing is."""
    for step in path:
        try:
            tree = tree[step]
        except (LookupError, TypeError):
            return None
    return tree


def edited_tree(tree: Any, edits: Iterable[Edit]) -> Any:
    """Return a copy of a tree with the edits made, or raise LookupError."""
    copied = copy.deepcopy(tree)
    for edit in edits:
        _make(copied, edit)
    return copied


def _make(tree: Any, edit: Edit) -> None:
    *way, last = edit.path
    inner = tree
    for step, following in zip(way, edit.path[1:], strict=True):
        if isinstance(inner, dict) and step not in inner:
            inner[step] = [] if following == APPEND or isinstance(following, int) else {}
        inner = inner[step]
    if edit.value is REMOVED:
        del inner[last]
    elif isinstance(inner, list) and last == APPEND:
        inner.append(edit.value)
    else:
        inner[last] = edit.value


def edited(value: Any, edits: Iterable[Edit]) -> Any:
    """Return an object with the edits made, decoded again, or raise DecodeError or LookupError."""
    return decode_tree(edited_tree(to_tree(value), edits), type(value)).value


def merged(changes: Iterable[ObjectChange]) -> tuple[ObjectChange, ...]:
    """Return the changes with all edits of one object together."""
    found: dict[tuple[str, str, str], ObjectChange] = {}
    for change in changes:
        before = found.get(change.key)
        if before is None:
            found[change.key] = change
        else:
            edits = (*before.edits, *(e for e in change.edits if e not in before.edits))
            found[change.key] = ObjectChange(*change.key, edits, before.new or change.new)
    return tuple(found.values())


def without_server_fields(tree: Any) -> Any:
    """Return an object as it can be created: without its status, and what a server generates."""
    metadata = {k: v for k, v in tree.get("metadata", {}).items() if k not in _SERVER_FIELDS}
    found = {k: v for k, v in tree.items() if k != "status"} | {"metadata": metadata}
    if found.get("kind") == "Job" and not found["spec"].get("manualSelector"):
        template = found["spec"]["template"]
        found["spec"] = {k: v for k, v in found["spec"].items() if k != "selector"} | {
            "template": template | {"metadata": _without_job_labels(template.get("metadata"))}
        }
        found["metadata"] = _without_job_labels(metadata)
    return found


def _without_job_labels(metadata: Any) -> Any:
    labels = {k: v for k, v in ((metadata or {}).get("labels") or {}).items() if k not in _OF_JOBS}
    return {k: v for k, v in (metadata or {}).items() if k != "labels"} | (
        {"labels": labels} if labels else {}
    )


def json_patch(tree: Any, edits: Iterable[Edit]) -> list[dict[str, Any]]:
    """Return edits as operations of a JSON patch (RFC 6902) for this tree, or raise LookupError.

    A patch creates no parents, so where one is missing, the first missing one is added whole.
    """
    copied = copy.deepcopy(tree)
    operations: list[dict[str, Any]] = []
    for edit in edits:
        length = _existing_length(copied, edit.path)
        missing = Edit(edit.path[: length + 1])
        is_there = length == len(edit.path)
        _make(copied, edit)
        if edit.value is REMOVED:
            operations.append({"op": "remove", "path": edit.pointer})
        elif is_there:
            operations.append({"op": "replace", "path": edit.pointer, "value": edit.value})
        else:
            value = edit.value if missing.path == edit.path else _found(copied, missing.path)
            operations.append({"op": "add", "path": missing.pointer, "value": value})
    return operations


def _existing_length(tree: Any, path: EditPath) -> int:
    """Return how many steps of a path lead somewhere."""
    inner = tree
    for length, step in enumerate(path):
        try:
            inner = inner[step]
        except (LookupError, TypeError):
            return length
    return len(path)


def _found(tree: Any, path: EditPath) -> Any:
    inner = tree
    for step in path:
        inner = inner[step]
    return copy.deepcopy(inner)
