"""An object without some of its fields."""

from __future__ import annotations

import msgspec

from mooring.apiserver.patching.fieldset import FieldSet
from mooring.apiserver.patching.shapes import ListForm, MapForm, Relation, Shape
from mooring.apiserver.patching.structured.items import step_to
from mooring.apiserver.patching.values import Tree

_encode = msgspec.json.Encoder(enc_hook=float).encode


def remove(shape: Shape, value: Tree, fields: FieldSet) -> Tree:
    """Return the value without the fields; a list or map that lost everything is null."""
    if isinstance(value, dict) and shape.map is not None:
        return _map(shape.map, value, fields)
    if isinstance(value, list) and shape.list is not None:
        return _list(shape.list, value, fields)
    return value if shape.scalar else None


def _map(form: MapForm, value: dict[str, Tree], fields: FieldSet) -> Tree:
    if form.is_atomic:
        return None
    kept = {}
    for name, item in value.items():
        step = f"f:{name}"
        if step in fields.members:
            continue
        below = fields.children.get(step)
        declared = form.fields.get(name)
        shape = declared.shape if declared is not None else form.element
        if below is not None and not below.is_empty and shape is not None:
            item = remove(shape, item, below)
        kept[name] = item
    return kept or None


def _list(form: ListForm, value: list[Tree], fields: FieldSet) -> Tree:
    if form.relation is Relation.ATOMIC:
        return None
    kept = []
    for item in value:
        step = step_to(form, item)
        if step in fields.members:
            continue
        below = fields.children.get(step)
        kept.append(item if below is None else remove(form.element, item, below))
    return kept or None


def without_emptied(shape: Shape, value: Tree) -> Tree:
    """Return the value without lists and maps that are null, as Go keeps it."""
    return _without_emptied(shape, value) if _may_hold_null(value) else value


def _may_hold_null(value: Tree) -> bool:
    """Tell whether there may be a null somewhere; few objects have one, and text tells quickly."""
    try:
        return b"null" in _encode(value)
    except (TypeError, ValueError, OverflowError):  # a number that msgspec does not know
        return True


def _without_emptied(shape: Shape, value: Tree) -> Tree:
    if isinstance(value, dict) and shape.map is not None and not shape.map.is_atomic:
        return _map_without_emptied(shape.map, value)
    if isinstance(value, list) and shape.list is not None:
        if shape.list.relation is not Relation.KEYED:
            return value
        items = [_without_emptied(shape.list.element, item) for item in value]
        is_same = all(a is b for a, b in zip(items, value, strict=True))
        return value if is_same else items
    return value


def _map_without_emptied(form: MapForm, value: dict[str, Tree]) -> Tree:
    kept: dict[str, Tree] = {}
    is_same = True
    for name, item in value.items():
        declared = form.fields.get(name)
        shape = declared.shape if declared is not None else form.element
        if item is None and shape is not None and not shape.scalar:
            is_same = False
            if declared is None:  # a key of a map stays, with nothing in it
                kept[name] = {}
            continue
        cleaned = item if shape is None else _without_emptied(shape, item)
        is_same = is_same and cleaned is item
        kept[name] = cleaned
    return value if is_same else kept
