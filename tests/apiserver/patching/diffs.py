"""Patches that lead from one object to another, as kubectl makes them; for laws."""

from __future__ import annotations

from typing import Any

from moorage.apiserver.patching.shapes import Shape, ShapeField


def json_patch_back(document: Any, operation: dict[str, Any]) -> dict[str, Any]:
    """Return the operation that undoes another, which must apply to a map or list of scalars."""
    path = operation["path"]
    key = path[1:]
    holder, name = (document, key) if "/" not in key else (document[key[:1]], key[2:])
    is_list = isinstance(holder, list)
    before = holder[int(name)] if is_list and int(name) < len(holder) else None
    if operation["op"] == "add" and (is_list or name not in holder):
        return {"op": "remove", "path": path}
    before = before if is_list else holder[name]
    op = "add" if operation["op"] == "remove" else "replace"
    return {"op": op, "path": path, "value": before}


def strategic_diff(shape: Shape, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return a strategic merge patch that makes new of old."""
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    assert shape.map is not None
    for name, value in new.items():
        before = old.get(name)
        if before == value:
            continue
        field = shape.map.fields.get(name)
        if field is not None and isinstance(before, list) and isinstance(value, list):
            patch.update(_list_diff(name, field, before, value))
        elif field is not None and isinstance(before, dict) and field.shape.is_struct:
            patch[name] = strategic_diff(field.shape, before, value)
        elif isinstance(before, dict):
            patch[name] = {**dict.fromkeys(before), **value}
        else:
            patch[name] = value
    return patch


def _list_diff(name: str, field: ShapeField, old: list[Any], new: list[Any]) -> dict[str, Any]:
    if "merge" not in field.strategy:
        return {name: new}
    if not old or not new:  # which kubectl leaves to null and to the new list
        return {name: new or None}
    key = field.merge_key
    if not key:
        gone = [item for item in old if item not in new]
        directives = {f"$deleteFromPrimitiveList/{name}": gone} if gone else {}
        return {**directives, name: new, f"$setElementOrder/{name}": new}
    assert field.shape.list is not None
    element = field.shape.list.element
    before = {item[key]: item for item in old}
    kept = {item[key] for item in new}
    items = [
        {**strategic_diff(element, before[item[key]], item), key: item[key]}
        if item[key] in before
        else item
        for item in new
    ]
    items += [{key: k, "$patch": "delete"} for k in before if k not in kept]
    order = [{key: item[key]} for item in new]
    return {name: items, f"$setElementOrder/{name}": order}
