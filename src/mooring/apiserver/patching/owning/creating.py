"""What the creator of an object owns: all that it has and that an empty object has not.

Comparing with the empty object says the same (`structured.comparing`), with sets that are then
taken apart again. This writes fieldsV1 in one walk, for every create pays for it.
"""

from __future__ import annotations

from typing import Any

from mooring.apiserver.patching import elements
from mooring.apiserver.patching.shapes import ListForm, MapForm, Relation, Shape
from mooring.apiserver.patching.structured.items import step_to
from mooring.apiserver.patching.values import Tree, same

Fields = dict[str, Any]  # fieldsV1: each step with what is below it

_LEAF: Fields = {}
_SERVERS_METADATA = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)


class Unusual(Exception):  # noqa: N818  # not an error: the long way is to be gone
    """A value whose form differs from that of the empty object's."""


def created_fields(shape: Shape, empty: Tree, new: Tree, *, left_alone: frozenset[str]) -> Fields:
    """Return what the creator of an object owns, but for some fields of the first level."""
    if shape.map is None:
        raise Unusual
    kept = {
        name: value
        for name, value in new.items()
        if name not in left_alone and name not in ("apiVersion", "kind")
    }
    if isinstance(metadata := kept.get("metadata"), dict):
        mine = {name: metadata[name] for name in metadata if name not in _SERVERS_METADATA}
        kept["metadata"] = mine
        if not mine:
            del kept["metadata"]
    fields = _of_map(shape.map, empty, kept)
    below = fields.get("f:metadata")
    if below is not None:
        below.pop(".", None)  # that there is metadata is nobody's
    return fields


def _of_map(form: MapForm, empty: dict[str, Tree], new: dict[str, Tree]) -> Fields:
    fields, element = form.fields, form.element
    result: Fields = {}
    for name in sorted(new):
        declared = fields.get(name)
        shape = declared.shape if declared is not None else element
        if shape is None:
            continue
        if name in empty:
            below = _changed(shape, empty[name], new[name])
        else:
            below = _whole(shape, new[name])
        if below is not None:
            result[f"f:{name}"] = below
    return result


def _changed(shape: Shape, empty: Tree, new: Tree) -> Fields | None:
    """Return what is owned below a field that the empty object has too; None is not even it."""
    if empty is new or (empty == new and shape.is_plain):
        return None
    if isinstance(new, dict) and isinstance(empty, dict) and shape.map is not None:
        if not shape.map.is_atomic:
            return _of_map(shape.map, empty, new) or None
    elif isinstance(new, list) and not empty and shape.list is not None and shape.map is None:
        if new and shape.list.relation is not Relation.ATOMIC:
            return _of_list(shape.list, new)
    elif isinstance(new, list) or isinstance(empty, list | dict) or shape.map is not None:
        raise Unusual
    return None if same(empty, new) else _LEAF


def _whole(shape: Shape, value: Tree) -> Fields:
    """Return what is owned below a field that only the new object has."""
    if not value:
        return _LEAF
    form = shape.map
    if isinstance(value, dict) and form is not None and not form.is_atomic:
        fields, element = form.fields, form.element
        result: Fields = {".": _LEAF}
        for name in sorted(value):
            declared = fields.get(name)
            below = declared.shape if declared is not None else element
            if below is not None:
                result[f"f:{name}"] = _whole(below, value[name])
        return result if len(result) > 1 else _LEAF
    items = shape.list
    if isinstance(value, list) and items is not None and items.relation is not Relation.ATOMIC:
        return {".": _LEAF, **_of_list(items, value)}
    return _LEAF


def _of_list(form: ListForm, value: list[Tree]) -> Fields:
    by_step: dict[str, list[Tree]] = {}
    for item in value:
        by_step.setdefault(step_to(form, item), []).append(item)
    return {
        step: _whole(form.element, by_step[step][0]) if len(by_step[step]) == 1 else _LEAF
        for step in sorted(by_step, key=elements.order)
    }
