"""Trees made from the table of messages, for laws that hold for every kind."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st
from msgspec import Raw

from moorage.api.protobuf.values import VALUES
from moorage.api.protobuf.wire import WireError
from moorage.api.schema import Field, api_type

DEPTH_MAX = 5

_texts = st.text(st.characters(codec="utf-8"), max_size=6)
_instants = st.integers(1, 9)

_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": _texts,
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "bytes": st.sampled_from(["", "AA==", "TW9vcmluZw=="]),
    "quantity": st.sampled_from(["0", "500m", "10Gi", "-3"]),
    "time": _instants.map(lambda digit: f"200{digit}-02-03T04:05:06Z"),
    "microtime": _instants.map(lambda digit: f"195{digit}-02-03T04:05:06.00000{digit}Z"),
    "int-or-string": st.integers(-(2**31), 2**31 - 1) | _texts,
    "json": st.sampled_from([Raw(b'{"a": 1.50}'), Raw(b"[]"), Raw(b'"x"')]),
    "strings": st.lists(_texts, max_size=2),
}


@cache
def trees(message: str, depth: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of trees as decoding gives them: what cannot be absent is there."""
    fields = [field for field in api_type(message).fields if field.number]

    @st.composite
    def draw_tree(draw: st.DrawFn) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        chosen = draw(st.sets(st.sampled_from(fields), max_size=4)) if fields else set()
        for field in fields:
            if field.is_inline:
                tree.update(draw(trees(field.type, depth)))
            elif _is_always_there(field) or (field in chosen and _goes_deeper(field, depth)):
                tree[field.name] = draw(_values(field, depth))
        return {name: value for name, value in tree.items() if value is not None}

    return draw_tree()


def _is_always_there(field: Field) -> bool:
    can_be_absent = field.is_pointer or field.is_list or field.is_map
    return not can_be_absent and (
        field.is_shown or field.type not in VALUES or field.type in ("int-or-string", "quantity")
    )


def _goes_deeper(field: Field, depth: int) -> bool:
    return field.type in VALUES or depth < DEPTH_MAX


def _values(field: Field, depth: int) -> st.SearchStrategy[Any]:
    values = _VALUES.get(field.type)
    if values is None:
        values = st.deferred(lambda: trees(field.type, depth + 1))
    if field.is_list:
        return st.lists(values, min_size=1, max_size=2)
    if field.is_map:
        return st.dictionaries(_texts, values, min_size=1, max_size=2)
    if not _is_always_there(field) and not field.is_pointer:
        return values.map(lambda value: value or None)  # A zero is left out.
    return values


def representable(tree: dict[str, Any], message: str) -> dict[str, Any]:
    """Return what a message has fields for; a declared `Json` may hold anything."""
    kept: dict[str, Any] = {}
    for field in api_type(message).fields:
        if not field.number:
            continue
        if field.is_inline:
            kept.update(representable(tree, field.type))
            continue
        value = _representable_value(tree.get(field.name), field)
        is_empty = value is None or ((field.is_list or field.is_map) and not value)
        if not is_empty:
            kept[field.name] = value
    return kept


def _representable_value(value: Any, field: Field) -> Any:
    if field.is_list:
        items = value if isinstance(value, list) else []
        return [kept for item in items if (kept := _one(item, field.type)) is not None]
    if field.is_map:
        members = value.items() if isinstance(value, dict) else ()
        return {key: kept for key, item in members if (kept := _one(item, field.type)) is not None}
    return _one(value, field.type)


def _one(value: Any, type_name: str) -> Any:
    if value is None:
        return None
    if type_name not in VALUES:
        return representable(value, type_name) if isinstance(value, dict) else None
    try:
        VALUES[type_name].write(value)
    except WireError:
        return None
    return value
