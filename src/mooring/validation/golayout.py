"""Objects as Kubernetes shows them in errors: with the Go fields of its internal types.

Every field comes in the order of its Go struct, null where it is absent.

    # layout: the fields of a Go struct, in order; `Field:kind`, `Field=jsonName:kind` where the
    #         names differ by more than case, `+Struct` for the fields of another struct
    # kind:   s text, b truth, i number, q quantity, any (shown as it is), or a struct;
    #         in front of it: * may be null, [ list, { map
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any, NamedTuple

Json = Any

_ZEROS: dict[str, Json] = {"s": "", "b": False, "i": 0, "q": "0", "any": None}
_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


class Field(NamedTuple):
    """A field of a Go struct: its name, its JSON name in lower case, and its kind."""

    name: str
    json_name: str
    kind: str


class Layouts:
    """Go structs by name; a line is a struct and its fields, and goes on if it is indented."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: dict[str, tuple[Field, ...]] = {}

    def shown(self, value: Json, kind: str) -> Json:
        """Return a value as one of its kind."""
        if kind[0] in "*[{":
            return None if value is None else self._shown_all(value, kind[0], kind[1:])
        if kind in _ZEROS:
            return _ZEROS[kind] if value is None else value
        given = {name.lower(): item for name, item in (value or {}).items()}
        return {
            field.name: self.shown(given.get(field.json_name), field.kind)
            for field in self._fields(kind)
        }

    def _shown_all(self, value: Json, sort: str, inner: str) -> Json:
        match sort:
            case "[":
                return [self.shown(item, inner) for item in value]
            case "{":
                return {key: self.shown(item, inner) for key, item in sorted(value.items())}
            case _:
                return self.shown(value, inner)

    def _fields(self, struct: str) -> tuple[Field, ...]:
        known = self._known.get(struct)
        if known is None:
            known = self._known[struct] = tuple(self._read(struct))
        return known

    def _read(self, struct: str) -> list[Field]:
        fields: list[Field] = []
        for text in self._lines[struct]:
            if text.startswith("+"):
                fields += self._fields(text[1:])
                continue
            names, _, kind = text.partition(":")
            name, _, json_name = names.partition("=")
            fields.append(Field(name, (json_name or name).lower(), kind))
        return fields

    @cached_property
    def _lines(self) -> dict[str, list[str]]:
        lines: dict[str, list[str]] = {}
        for line in self._text.replace("\n    ", " ").split("\n"):
            struct, *fields = line.split()
            lines[struct] = fields
        return lines


def go_json(value: Json, *, indent: int | None = None) -> str:
    """Return JSON as Go writes it: without spaces unless it is indented, and fit for HTML."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=False)
    for character, escape in _HTML.items():
        text = text.replace(character, escape)
    return text
