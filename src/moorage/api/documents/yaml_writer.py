"""Writes YAML: trees as every reader reads them back, and values into text that people wrote.

Readers disagree about plain scalars: `1e3` is a number to some and a string to others, and so are
`on` and `0o17`. So a string that any of them would take for something else is quoted.

Whoever has a file changed wants the rest of it left alone, with comments and order. So a value is
replaced in the text where that is possible: a scalar, on one line. The caller reads the text again
and compares, because anchors may carry a change elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import yaml

from moorage.api.documents.document import Document, Tree
from moorage.api.documents.scalars import CORE, KUBERNETES, NumberText, ScalarRefusedError, Schema

Path = tuple[str | int, ...]
_STRING: Final = "tag:yaml.org,2002:str"
_FLOAT: Final = "tag:yaml.org,2002:float"
_SEPARATOR: Final = re.compile(r"^---[ \t]*\n", re.MULTILINE)
_MARKER: Final = re.compile(r"^(?:---|\.\.\.|%)", re.MULTILINE)
_BROADEST: Final = 10**9  # characters of a line


def dump_yaml(trees: Iterable[Any], *, is_ascii: bool = False, width: int | None = None) -> str:
    """Return trees as documents of YAML."""
    text = yaml.dump_all(
        trees, Dumper=_Dumper, sort_keys=False, allow_unicode=not is_ascii, width=width
    )
    return str(text)


class _Dumper(yaml.SafeDumper):
    """Quotes strings that may be read as something else; texts of several lines are blocks."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Write everything out: a reader should not have to look elsewhere."""
        return True


def _string(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = None
    if "\n" in value:
        style = "|"
    elif not all(_is_string(value, schema) for schema in (CORE, KUBERNETES)):
        style = "'"
    return dumper.represent_scalar(_STRING, value, style=style)


def _is_string(text: str, schema: Schema) -> bool:
    try:
        return bool(text) and isinstance(schema(text), str)
    except ScalarRefusedError:
        return False


def _number(dumper: yaml.SafeDumper, value: NumberText) -> yaml.ScalarNode:
    return dumper.represent_scalar(_FLOAT, value.text)


_Dumper.add_representer(str, _string)
_Dumper.add_representer(NumberText, _number)
# PyYAML takes a number for one only if it has a point.
_Dumper.add_implicit_resolver(
    _FLOAT, re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+\Z"), [*"-+0123456789"]
)


# --- text that people wrote -------------------------------------------------------------------


def text_of(document: Document) -> str | None:
    """Return a document as it was written in YAML, with the comments before it and in it.

    None for JSON, for an item of a list, and for a document with directives or markers of its own.
    """
    text = document.text
    if text is None:
        return None
    # The first line with a separator is that of the document: comments may come before it.
    plain = _SEPARATOR.sub("", text.replace("\r\n", "\n"), count=1)
    return None if _MARKER.search(plain) else plain.strip("\n") + "\n"


def with_value(text: str, path: Path, value: Tree) -> str | None:
    """Return the text of one document with a scalar replaced; None if that cannot be done."""
    if isinstance(value, dict | list | float):
        return None
    node, is_in_flow = _found(yaml.compose(text, Loader=yaml.CSafeLoader), path)
    if not isinstance(node, yaml.ScalarNode) or node.style in ("|", ">"):
        return None
    start, end = node.start_mark.index, node.end_mark.index
    is_quoted = node.style == "'" and isinstance(value, str) and value.isprintable()
    new = _quoted(str(value)) if is_quoted else _inline(value, is_in_flow=is_in_flow)
    if "\n" in text[start:end] or "\n" in new:
        return None
    return f"{text[:start]}{new}{text[end:]}"


def _found(node: Any, path: Path) -> tuple[Any, bool]:
    """Return the node at a path, and whether it is in a flow: between brackets."""
    is_in_flow = False
    for step in path:
        is_in_flow = is_in_flow or bool(getattr(node, "flow_style", False))
        match node:
            case yaml.MappingNode():
                values = [each for key, each in node.value if key.value == step]
                node = values[-1] if values else None
            case yaml.SequenceNode() if isinstance(step, int) and step < len(node.value):
                node = node.value[step]
            case _:
                return None, is_in_flow
    return node, is_in_flow


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _inline(value: Tree, *, is_in_flow: bool) -> str:
    """Return a scalar as it is written within a line."""
    written = yaml.dump(
        [value], Dumper=_Dumper, default_flow_style=is_in_flow, width=_BROADEST, allow_unicode=True
    )
    text = str(written).strip()
    return text[1:-1] if is_in_flow else text.removeprefix("- ")
