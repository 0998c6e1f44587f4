"""Paths to fields, as `fieldPath` of rules and `selectableFields` write them.

    path   = 1*( "." name | "['" text "']" )

`find_field` follows one through a schema.
"""

from __future__ import annotations

import re

from moorage.api.field_path import MapKey, Path
from moorage.validation.custom_resources.structural import Structural

_TOKEN = re.compile(r"'(?:\\.|[^'\\])*'|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "'": "'", "\\": "\\",
}  # fmt: skip


class FieldPathError(Exception):
    """A path that is invalid, or that leads to no field."""


def find_field(
    text: str, schema: Structural, *, allows_brackets: bool = True
) -> tuple[Path, Structural | None]:
    """Return the parsed path, and the schema of the field at its end."""
    path: Path | None = None
    here: Structural | None = schema
    tokens = _TOKEN.findall(text)
    place = 0
    while place < len(tokens):
        first, rest = tokens[place], tokens[place + 1 : place + 3]
        if first not in (".", "["):
            raise FieldPathError(f"expected [ or . but got: {first}")
        if first == "[" and not allows_brackets:
            raise FieldPathError("array notation is not allowed")
        if not rest:
            raise FieldPathError("unexpected end of JSON path")
        name = rest[0] if first == "." else _unquoted(rest[0])
        path, here = _step(name, path, here)
        place += 2
        if first == "[":
            if len(rest) < 2:
                raise FieldPathError("unexpected end of JSON path")
            if rest[1] != "]":
                raise FieldPathError(f"expected ] but got {rest[1]}")
            place += 1
    if path is None:
        raise FieldPathError("unexpected end of JSON path")
    return path, here


def _step(name: str, path: Path | None, here: Structural | None) -> tuple[Path, Structural | None]:
    if here is not None and here.properties:
        if name not in here.properties:
            raise FieldPathError("does not refer to a valid field")
        return Path(name, path), here.properties[name]
    if here is not None and here.additional is not None:
        return Path(MapKey(name), path), here.additional_schema
    raise FieldPathError("does not refer to a valid field")


def _unquoted(text: str) -> str:
    if len(text) < 2 or text[0] != "'" or text[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {text}")

    def unescaped(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            raise FieldPathError(f"invalid string literal: invalid escape char {found[0]}")
        return _ESCAPES[found[1]]

    return _ESCAPE.sub(unescaped, text[1:-1])
