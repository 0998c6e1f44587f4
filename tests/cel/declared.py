"""Declarations from signatures as text, so that checking can be tested without any library.

signature = id ":" [ type "." ] "(" [ type { "," type } ] ")" "->" type
type      = "<" name ">" | name [ "(" type { "," type } ")" ]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from moorage.cel.lang.environment import Function, Library, Overload
from moorage.cel.lang.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
    list_of,
    map_of,
    opaque,
    param,
    struct,
    type_of,
)

_NAMED = {
    type_.name: type_
    for type_ in (BOOL, BYTES, DOUBLE, DURATION, DYN, INT, NULL, STRING, TIMESTAMP, TYPE, UINT, ANY)
}
_OPAQUE = ("net.IP", "net.CIDR", "optional_type")
_TOKEN = re.compile(r"[A-Za-z_][\w.]*|[<>(),]")

STANDARD_TYPES = (
    *(BOOL, BYTES, DOUBLE, DURATION, INT, NULL, STRING, TIMESTAMP, TYPE, UINT),
    list_of(param("A")),
    map_of(param("A"), param("B")),
)


def parse_type(text: str) -> Type:
    """Return the type that a text names."""
    tokens = _TOKEN.findall(text)
    type_ = _type(tokens)
    assert not tokens, text
    return type_


def _type(tokens: list[str]) -> Type:
    name = tokens.pop(0)
    if name == "<":
        name = tokens.pop(0)
        assert tokens.pop(0) == ">"
        return param(name)
    params = []
    if tokens[:1] == ["("]:
        while tokens.pop(0) != ")":
            params.append(_type(tokens))
    match name:
        case "list":
            return list_of(*params)
        case "map":
            return map_of(*params)
        case "type" if params:
            return type_of(*params)
    if name in _OPAQUE:
        return opaque(name, *params)
    return _NAMED.get(name) or struct(name)


def overload(text: str) -> Overload:
    """Return the overload that a signature declares."""
    id_, signature = text.split(": ", 1)
    left, result = signature.rsplit(" -> ", 1)
    target, params = re.fullmatch(r"(?:(.*)\.)?\((.*)\)", left).groups()  # type: ignore[union-attr]
    types = list(_types(params))
    if target is not None:
        types.insert(0, parse_type(target))
    return Overload(id_, tuple(types), parse_type(result), is_member=target is not None)


def _types(text: str) -> Iterable[Type]:
    tokens = _TOKEN.findall(text)
    while tokens:
        yield _type(tokens)
        assert not tokens or tokens.pop(0) == ","


def library(functions: Mapping[str, Iterable[str]], types: Iterable[Type] = ()) -> Library:
    """Return a library of declared functions: name to signatures."""
    return Library(
        "declared",
        functions=tuple(
            Function(name, tuple(map(overload, signatures)))
            for name, signatures in functions.items()
        ),
        types=tuple(types),
    )
