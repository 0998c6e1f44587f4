r"""Parses block mappings of YAML as tools print them, line by line, and refuses everything else.

    line    =  spaces *( "- " ) ( key ":" [ " " scalar ] / scalar )
    key     =  plain / DQUOTE *char DQUOTE
    scalar  =  plain / DQUOTE … DQUOTE / "'" … "'" / "{}" / "[]"

A scalar is on one line, has ASCII characters only, no tag, no anchor and no comment. A text of such
lines means to every YAML parser what it means here, if its indentation is that of mappings and
lists; all else is for the full parser, a text of several lines as well.

Most lines of a dump are there again and again, so what a line means is remembered.

# column: where a key or a dash begins; all keys of a mapping, all dashes of a list share theirs
# waiting: a line that ends with a colon; the value of its key is in the next line
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple, cast

from moorage.api.documents.document import Tree
from moorage.api.documents.scalars import ScalarRefusedError, Schema, from_yaml_float

LINES_REMEMBERED_MAX: Final = 100_000
KEY_LENGTH_MAX: Final = 1000  # libyaml takes longer ones for no keys

_LINE = re.compile(
    r"""(?P<spaces>[ ]*+)
    (?P<dashes>(?:-[ ]++)*+)
    (?: (?P<key>[A-Za-z0-9_./][A-Za-z0-9_./-]*+|"[\x20-\x21\x23-\x5b\x5d-\x7e]*+")
        : (?:[ ](?P<value>[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?+))?+
    |   (?P<item>[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?+) )""",
    re.VERBOSE,
).fullmatch
_PLAIN = re.compile(r"(?:[A-Za-z0-9_/.+~<=(^$\\]|-(?=[A-Za-z0-9.]))[\x20-\x7e]*+").fullmatch
_NOT_PLAIN = re.compile(r":(?: |$)| #").search
_DOUBLE = re.compile(r'"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\nt])*+"').fullmatch
_EMPTY: Final[dict[str, type]] = {"{}": dict, "[]": list}
_SINGLE = re.compile(r"'(?:[\x20-\x26\x28-\x7e]|'')*+'").fullmatch


class NotBlockError(Exception):
    """A line that the full parser must read."""


class _Line(NamedTuple):
    column: int
    dashes: tuple[int, ...]  # the columns after each dash
    key: str | None
    is_waiting: bool
    value: Any  # dict or list for an empty one, which every line needs its own of


class BlockParser:
    """Parses mappings, each by itself."""

    def __init__(self, schema: Schema, depth_max: int) -> None:
        self._schema = schema
        self._depth_max = depth_max
        self._lines: dict[str, _Line] = {}

    def mapping(self, texts: list[str], column: int) -> dict[str, Tree]:
        """Return the mapping whose keys begin in a column of some lines, or raise NotBlockError.

        One loop, because a call for each of a million lines would take as long as the rest.
        """
        if len(self._lines) > LINES_REMEMBERED_MAX:
            self._lines.clear()
        remembered = self._lines.get
        root: dict[str, Tree] = {}
        place, target = column, cast("Any", root)  # the innermost open collection, and its column
        opened: list[tuple[int, Any]] = [(-1, None)]  # those around it
        key: str | None = None
        is_waiting = False
        for text in texts:
            line = remembered(text) or self._read(text)
            column, dashes, next_key, next_is_waiting, value = line
            # A list may begin in the column of its key.
            if is_waiting and (column > place or (dashes and column == place)):
                opened.append((place, target))
                inside: Any = [] if dashes else {}
                target[key] = inside
                place, target = column, inside
            else:
                while place > column:
                    place, target = opened.pop()
                if type(target) is list and not dashes and opened[-1][0] == column:
                    place, target = opened.pop()
                if place != column or (type(target) is list) is not bool(dashes):
                    raise NotBlockError
            key, is_waiting = next_key, next_is_waiting
            if dashes:
                for after in dashes if key is not None else dashes[:-1]:
                    opened.append((place, target))
                    inside = {} if key is not None and after == dashes[-1] else []
                    target.append(inside)
                    place, target = after, inside
            if value.__class__ is type:
                value = value()
            if key is None:
                target.append(value)
            elif key in target:
                raise NotBlockError  # a key that comes twice needs its position
            else:
                target[key] = value
            if len(opened) > self._depth_max:
                raise NotBlockError
        return root

    def _read(self, text: str) -> _Line:
        found = _LINE(text)
        if found is None or text.startswith(("---", "...")):
            raise NotBlockError
        column = len(found["spaces"])
        columns = []
        place = column
        for dash in re.findall("- +", found["dashes"]):
            place += len(dash)
            columns.append(place)
        key, value = found["key"], found["value"]
        if key is None:
            if not columns:
                raise NotBlockError
            value = found["item"]
        is_waiting = key is not None and value is None
        line = self._lines[text] = _Line(
            column=column,
            dashes=tuple(columns),
            key=None if key is None else self._key(key),
            is_waiting=is_waiting,
            value=None if is_waiting else self._scalar(value),
        )
        return line

    def _key(self, text: str) -> str:
        if len(text) > KEY_LENGTH_MAX:
            raise NotBlockError
        if text[0] == '"':
            return text[1:-1]
        if not isinstance(self._value(text), str):
            raise NotBlockError
        return text

    def _scalar(self, text: str) -> Any:
        if text in _EMPTY:
            return _EMPTY[text]
        if text[0] == '"' and _DOUBLE(text):
            return json.loads(text)
        if text[0] == "'" and _SINGLE(text):
            return text[1:-1].replace("''", "'")
        if not _PLAIN(text) or _NOT_PLAIN(text):
            raise NotBlockError
        return self._value(text)

    def _value(self, text: str) -> Any:
        try:
            value = self._schema(text)
            return from_yaml_float(value) if isinstance(value, float) else value
        except ScalarRefusedError:
            raise NotBlockError from None
