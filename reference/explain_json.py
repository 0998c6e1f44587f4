"""The page and the schema of what `moor explain -o json` prints, made from its types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from moorage.insight.answer.document import explain_schema
from reference.markdown import MADE, page_of, table_of

_INTRODUCTION = """\
`moor explain -o json` (and `-o yaml`) prints one object of the type [Explanations](#explanations).
[explain.schema.json](explain.schema.json) is the same as a JSON schema. Both are kept: a field that
is there keeps its name, type and meaning; later versions may add fields. [How to read an
explanation](../how-to/explain-pending-pods.md) shows examples."""


def explain_page() -> str:
    """Return the page of all types."""
    types = explain_schema()["$defs"]
    return page_of(["# Explanations as JSON", MADE, _INTRODUCTION, *_sections(types)])


def schema_text() -> str:
    """Return the schema as a file."""
    return msgspec.json.format(msgspec.json.encode(explain_schema())).decode() + "\n"


def _sections(types: Mapping[str, Any]) -> Iterator[str]:
    for name, each in types.items():
        yield f"## {name}"
        yield each["description"]
        yield table_of(("field", "type", "meaning"), _rows(each))


def _rows(each: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    required = each.get("required", ())
    for name, field in each["properties"].items():
        kind = _type(field)
        yield f"`{name}`", kind if name in required else f"{kind}, optional", _meaning(field)


def _type(field: Mapping[str, Any]) -> str:
    """Return the type of a field, with links to other types."""
    match field:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        case {"anyOf": list(types)}:
            return " or ".join(map(_type, types))
        case {"enum": list(values)}:
            return ", ".join(f"`{value}`" for value in values)
        case {"type": "array", "items": items}:
            return f"list of {_type(items)}"
        case {"type": str(kind)}:
            return kind
    return "any"


def _meaning(field: Mapping[str, Any]) -> str:
    text = str(field.get("description", ""))
    limit = field.get("maxLength")
    return text if limit is None else f"{text} At most {limit} characters."
