"""Names of objects in files, found fast: by their lines, without parsing YAML or JSON.

    kind: Pod            an object; its metadata follows at the same column
    metadata:
      name: train        the first column below it has the name, and the namespace

People and kubectl write objects like that. Other forms, and objects in archives, are not found,
because a missing completion does no harm. Time, files and bytes are bounded.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

TIME_S_MAX: Final = 0.08
FILES_MAX: Final = 200
FILE_BYTES_MAX: Final = 4 * 1024 * 1024
NAMES_MAX: Final = 5000
_INDENT_MAX: Final = 100
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_PART_BYTES: Final = 256 * 1024  # that are read between two checks of the clock
_LINE: Final = re.compile(
    r"""^(?P<indent>[ ]*(?:-[ ]+)*)["']?(?P<key>kind|metadata|name|namespace)["']?:[ \t]*"""
    r"""(?P<value>[^\n]*)$|^(?P<end>---)""",
    re.MULTILINE,
)
_FLOW: Final = re.compile(r"""["']?\b(name|namespace)["']?:\s*["']?([A-Za-z0-9.\-]+)""")
_VALUE: Final = re.compile(r"""["']?([A-Za-z0-9.\-]+)["']?,?\s*(?:\#.*)?""")


class FoundObject(NamedTuple):
    """An object in a file."""

    kind: str
    namespace: str  # empty if the file does not say it
    name: str


def names_in_files(names: Iterable[str], *, recursive: bool) -> list[FoundObject]:
    """Return objects in files and folders, as far as time allows."""
    until_s = time.monotonic() + TIME_S_MAX
    found: dict[FoundObject, None] = {}
    for number, path in enumerate(_paths(names, recursive=recursive)):
        if number >= FILES_MAX or time.monotonic() > until_s or len(found) > NAMES_MAX:
            break
        for text in _parts(path, until_s):
            found.update(dict.fromkeys(names_in(text)))
    return list(found)[:NAMES_MAX]


def names_in(text: str) -> Iterator[FoundObject]:
    """Yield the objects in a text."""
    kinds: dict[int, str] = {}  # by column
    open_kind, column, inner = "", -1, -1
    facts: dict[str, str] = {}
    for line in _LINE.finditer(text):
        indent = len(line["indent"] or "")
        if open_kind and (line["end"] or indent <= column):
            yield from _object(open_kind, facts)
            open_kind, facts = "", {}
        if line["end"]:
            kinds.clear()
            continue
        key, value = line["key"], line["value"].strip()
        if key == "kind":
            kinds = {c: kind for c, kind in kinds.items() if c < indent}
            kinds[indent] = _plain(value)
        elif key == "metadata" and kinds.get(indent):
            open_kind, column, inner = kinds.pop(indent), indent, _indent(text, line.end() + 1)
            facts = dict(_FLOW.findall(value)) if value.startswith("{") else {}
        elif open_kind and indent == inner and (name := _plain(value)):
            facts.setdefault(key, name)
    if open_kind:
        yield from _object(open_kind, facts)


def _indent(text: str, start: int) -> int:
    """Return the indentation of the line that begins there."""
    head = text[start : start + _INDENT_MAX]
    return len(head) - len(head.lstrip(" "))


def _object(kind: str, facts: dict[str, str]) -> Iterator[FoundObject]:
    if name := facts.get("name"):
        yield FoundObject(kind, facts.get("namespace", ""), name)


def _plain(value: str) -> str:
    found = _VALUE.fullmatch(value)
    return found[1] if found else ""


def _parts(path: str, until_s: float) -> Iterator[str]:
    """Yield the text of a file in parts of whole lines; nothing if it cannot be read."""
    try:
        if not os.path.isfile(path):  # reading a pipe would block
            return
        with open(path, encoding="utf-8", errors="replace") as file:
            text, left = "", FILE_BYTES_MAX
            while left > 0 and time.monotonic() <= until_s and (part := file.read(_PART_BYTES)):
                left -= len(part)
                text += part
        yield text
    except OSError:
        return


def _paths(names: Iterable[str], *, recursive: bool) -> Iterator[str]:
    for name in names:
        path = os.path.expanduser(name)
        if not os.path.isdir(path):
            yield path
            continue
        for folder, below, files in os.walk(path):
            below[:] = sorted(below) if recursive else []
            yield from (
                os.path.join(folder, file) for file in sorted(files) if file.endswith(_SUFFIXES)
            )
