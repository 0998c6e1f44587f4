"""One step of a path through an object, as managedFields writes it.

    f:NAME          a field of a struct, or a key of a map
    k:{"a":1,…}     the item of a list whose key fields have these values
    v:VALUE         the item of a set with this value
    i:NUMBER        the item at this place

A step is kept as this very text: two steps are the same if their texts are, so that sets of
steps are sets of strings. For that the text has one form only: keys by name, no blanks, Go's
escapes, whole numbers without a point.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from mooring.apiserver.patching.gotext import quoted

Element = str

_FIELD, _KEY, _VALUE, _INDEX = "f:", "k:", "v:", "i:"

_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_HTML_TABLE = str.maketrans(_HTML)


class ElementError(ValueError):
    """A step that cannot be read."""


def field(name: str) -> Element:
    """Return the step to a field or to a key of a map."""
    return _FIELD + name


def by_keys(names: Sequence[str], values: Sequence[Any]) -> Element:
    """Return the step to the item with these key fields."""
    try:
        # With the types, since 1 and true are one key of a dict.
        return _by_scalar_keys(tuple(names), tuple(values), tuple(map(type, values)))
    except TypeError:  # not scalars
        return _by_keys(names, values)


@lru_cache(maxsize=16384)
def _by_scalar_keys(
    names: tuple[str, ...],
    values: tuple[Any, ...],
    types: tuple[type, ...],  # noqa: ARG001
) -> Element:
    return _by_keys(names, values)


def _by_keys(names: Sequence[str], values: Sequence[Any]) -> Element:
    pairs = sorted(zip(names, values, strict=True), key=itemgetter(0))
    return _KEY + "{" + ",".join(f"{_json(name)}:{_json(value)}" for name, value in pairs) + "}"


def by_value(value: Any) -> Element:
    """Return the step to an item of a set."""
    return _VALUE + _json(value)


def is_field(element: Element) -> bool:
    """Whether the step leads to a field or to a key of a map."""
    return element.startswith(_FIELD)


def is_item(element: Element) -> bool:
    """Whether the step leads to an item by its key fields."""
    return element.startswith(_KEY)


def field_name(element: Element) -> str:
    """Return the name in a step to a field."""
    return element[2:]


@lru_cache(maxsize=16384)
def canonical(text: str) -> Element | None:
    """Return a step in its one form, None if its sort is unknown, or raise ElementError."""
    if len(text) < 2:
        raise ElementError("key must be 2 characters long:")
    sort, rest = text[:2], text[2:]
    if sort[1] != ":":
        raise ElementError(f"missing colon: {text}")
    match sort:
        case "f:":
            return text
        case "v:":
            return by_value(_parsed(rest))
        case "k:":
            keys = _parsed(rest)
            if not isinstance(keys, dict):
                raise ElementError(f"not a map of keys: {text}")
            return by_keys(list(keys), list(keys.values()))
        case "i:":
            return f"{_INDEX}{_index(rest)}"
        case _:
            return None


@lru_cache(maxsize=16384)
def order(element: Element) -> tuple[Any, ...]:
    """Return what steps are sorted by: fields, keyed items, values, places."""
    match element[:2]:
        case "f:":
            return (0, element[2:])
        case "k:":
            keys = json.loads(element[2:])
            return (1, tuple((name, *_value_order(value)) for name, value in keys.items()))
        case "v:":
            return (2, *_value_order(json.loads(element[2:])))
        case _:
            return (3, int(element[2:]))


def shown(element: Element) -> str:
    """Return a step as messages write it: `.name`, `[key="value"]`, `[="value"]`."""
    match element[:2]:
        case "f:":
            return "." + element[2:]
        case "k:":
            keys = json.loads(element[2:])
            return "[" + ",".join(f"{name}={_scalar(value)}" for name, value in keys.items()) + "]"
        case "v:":
            return f"[={_scalar(json.loads(element[2:]))}]"
        case _:
            return f"[{element[2:]}]"


def _scalar(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else _json(value)


def _value_order(value: Any) -> tuple[int, Any]:
    match value:
        case bool():
            return (2, value)
        case int() | float():
            return (0, value)
        case str():
            return (1, value)
        case _:  # not in sets and keys that we write
            return (3, _json(value))


@lru_cache(maxsize=16384, typed=True)
def _scalar_json(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        value = int(value)
    return json.dumps(value, ensure_ascii=False).translate(_HTML_TABLE)


def _json(value: Any) -> str:
    if isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        return text.translate(_HTML_TABLE)
    return _scalar_json(value)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ElementError(f"not JSON: {text[:80]}") from None


def _index(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ElementError(f"not a number: {text[:80]}") from None
