"""Reads a dump in YAML, a list of many objects, item by item.

    apiVersion: v1
    items:
    - apiVersion: v1        # an item: from its dash to the next dash in this column
      kind: Node
    kind: List

An item of plain lines (see `yaml_block`) is parsed by itself, which is fast; any other item by the
full parser, but by itself as well. Where that fails, or an item has an anchor, which another one
may mean, the whole text is left to the full parser. So nothing is yielded before all is read;
meanwhile items are kept as objects if an `ItemReader` reads them, else as JSON, which takes a tenth
of the memory of their trees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import msgspec

from moorage.api.documents.document import (
    DEFAULT_LIMITS,
    DEPTH_CEILING,
    START,
    DocumentStream,
    Duplicate,
    Limits,
    PlacedError,
    Position,
    TextPart,
    Tree,
    find_position,
    list_items,
    with_type,
)
from moorage.api.documents.json_list import ITEMS, ItemReader, JsonListText, ObjectList, Span
from moorage.api.documents.reader import decode_plain
from moorage.api.documents.scalars import NumberText, Schema
from moorage.api.documents.yaml_block import BlockParser, NotBlockError
from moorage.api.documents.yaml_reader import has_forbidden, yaml_spots
from moorage.api.documents.yaml_tree import TreeComposer
from moorage.api.field_path import Segment

_ITEMS_LINE = re.compile(rb"^items:\n(?=- )", re.MULTILINE)
_ITEMS_END = re.compile(rb"^(?![ \n]|- )", re.MULTILINE)
_ITEM_START = b"\n- "
_MARKERS = (b"\n---", b"\n...", b"\n%", b"\r")
DEPTH_LEAST: Final = 4  # of a list, its items, an item, and something in it
_HEAD_BYTES_MAX: Final = 64 * 1024  # on each side of the items
ITEM_VALUES_MAX: Final = 10_000  # that an item may have to be read at once


class _NotSeparateError(Exception):
    """The items cannot be read one by one."""


class _Item(NamedTuple):
    """An item as an object or else as JSON, and the keys that it has twice."""

    reading: Any
    json: bytes
    is_block: bool  # it begins right behind its dash
    duplicates: tuple[Duplicate, ...] = ()


def yaml_list(
    data: bytes,
    *,
    source: str,
    schema: Schema,
    limits: Limits = DEFAULT_LIMITS,
    objects: ItemReader | None = None,
) -> ObjectList | None:
    """Return the only document of the bytes if it is a list whose items can be read one by one."""
    place = _ITEMS_LINE.search(data, 0, _HEAD_BYTES_MAX)
    if place is None or len(data) > limits.bytes_max or limits.depth_max < DEPTH_LEAST:
        return None
    if any(each in data for each in _MARKERS):
        return None
    start = place.end()
    last = data.rfind(_ITEM_START, start - 1) + 1
    end = _ITEMS_END.search(data, last)
    if end is None or len(data) - end.start() > _HEAD_BYTES_MAX:
        return None
    try:
        reader = _Reader(source, schema, limits, data.count(b"\n", 0, start) + 1, objects)
        head = reader.head(data[: start - 1] + b" []\n" + data[end.start() :])
        spans = list(_spans(data, start, end.start()))
        items = [reader.item(data, span, head) for span in spans]
    except (_NotSeparateError, PlacedError, UnicodeDecodeError):
        return None
    readings = [item.reading for item in items]
    kept = [item._replace(reading=None) for item in items]
    return ObjectList(head, YamlListText(data, source, spans, kept, schema), readings)


def _spans(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Yield the items; a dash in the first column begins one, unless it is in a text."""
    while start < end:
        following = data.find(_ITEM_START, start, end) + 1 or end
        yield Span(start, following)
        start = following


class _Reader:
    """Reads items, and adds up their values."""

    def __init__(
        self, source: str, schema: Schema, limits: Limits, line: int, objects: ItemReader | None
    ) -> None:
        """Begin with the first item, at a line; items are a level deeper than by themselves."""
        self._source = source
        self._schema = schema
        self._limits = replace(limits, depth_max=limits.depth_max - 1)
        self._blocks = BlockParser(schema, limits.depth_max - 2)
        self._line = line
        self._objects = objects
        self._values = 0
        self._duplicates = 0

    def head(self, text: bytes) -> dict[str, Tree]:
        """Return the fields of the list, without its items."""
        tree, duplicates = self._composed(text.decode())
        if not isinstance(tree, dict) or duplicates or list_items(tree) != []:
            raise _NotSeparateError
        return {name: value for name, value in tree.items() if name != ITEMS}

    def item(self, data: bytes, span: Span, head: dict[str, Tree]) -> _Item:
        """Return the item in a part of the text; parts are given in order."""
        text = data[span.start : span.end].decode()
        found = self._block(text) or self._odd(text)
        self._line += text.count("\n")
        tree, is_block, duplicates = found
        typed = with_type(tree, head)
        if isinstance(typed, dict) and list_items(typed) is not None:
            raise _NotSeparateError
        if is_block and self._objects is not None:
            # A line of a block has a value, and one more for each dash; so these are not too few.
            values = text.count("\n") + text.count("- ")
            reading = self._objects.read_tree(typed) if values < ITEM_VALUES_MAX else None
            if reading is not None:
                self._count(values)
                return _Item(reading, b"", is_block, duplicates)
        encoded = _encode(tree)
        # Signs in strings count as well: then the full parser decides.
        self._count(sum(map(encoded.count, (b",", b"[", b"{"))))
        return _Item(None, encoded, is_block, duplicates)

    def _block(self, text: str) -> tuple[Tree, bool, tuple[Duplicate, ...]] | None:
        """Return the item if it is made of plain lines."""
        if not text.endswith("\n"):
            return None
        try:
            return self._blocks.mapping(*_lines_of(text)), True, ()
        except NotBlockError:
            return None

    def _odd(self, text: str) -> tuple[Tree, bool, tuple[Duplicate, ...]]:
        """Return the item that the full parser reads."""
        listed, duplicates = self._composed(text, Position(self._line, 1))
        self._duplicates += len(duplicates)
        if not isinstance(listed, list) or len(listed) != 1:
            raise _NotSeparateError
        if self._duplicates >= self._limits.duplicates_max:  # of all items together
            raise _NotSeparateError
        inside = (each._replace(segments=each.segments[1:]) for each in duplicates)
        return listed[0], False, tuple(inside)

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > self._limits.nodes_max:
            raise _NotSeparateError

    def _composed(self, text: str, start: Position = START) -> tuple[Tree, tuple[Duplicate, ...]]:
        """Return the only document of a text that has no anchors."""
        if has_forbidden(DocumentStream(text, self._source, self._limits, self._schema)):
            raise _NotSeparateError
        composer = TreeComposer(
            TextPart(text, start), source=self._source, schema=self._schema, limits=self._limits
        )
        documents = list(composer.documents())
        if len(documents) != 1 or composer.anchors:
            raise _NotSeparateError
        return documents[0].tree, documents[0].duplicates


def _lines_of(text: str) -> tuple[list[str], int]:
    """Return the lines of an item without its dash, and the column of its keys."""
    return f"  {text[2:-1]}".split("\n"), len("- ")


def _as_written(value: Any) -> msgspec.Raw:
    assert isinstance(value, NumberText)
    return msgspec.Raw(value.text.encode())


_encode = msgspec.json.Encoder(enc_hook=_as_written).encode


class YamlListText(JsonListText):
    """The text of a list in YAML, with its items as JSON."""

    def __init__(
        self, data: bytes, source: str, spans: list[Span], items: list[_Item], schema: Schema
    ) -> None:
        super().__init__(data, source, spans)
        self._data = data
        self._items = items
        self._last_line = (0, 1)
        self._schema = schema

    @property
    def json(self) -> None:
        """Nothing: it is YAML."""

    @property
    def yaml(self) -> str:
        """The text of the list."""
        return self._data.decode()

    def duplicates(self, index: int) -> tuple[Duplicate, ...]:
        """Return the keys that an item has twice."""
        return self._items[index].duplicates

    def tree(self, index: int) -> Tree:
        """Return the tree of an item."""
        if self._last_tree[0] != index:
            self._last_tree = index, self._parsed(index)
        return self._last_tree[1]

    def _parsed(self, index: int) -> Tree:
        if json := self._items[index].json:
            tree: Tree = decode_plain(json)
            return tree
        start, end = self.spans[index]
        block = self._data[start:end].decode()
        return BlockParser(self._schema, DEPTH_CEILING).mapping(*_lines_of(block))

    def line_of(self, index: int) -> int:
        """Return the first line of an item."""
        is_block = self._items[index].is_block
        return self._dash_line(index) if is_block else self.locate((ITEMS, index)).line

    def _dash_line(self, index: int) -> int:
        place = self.spans[index].start
        last, line = self._last_line if self._last_line[0] <= place else (0, 1)
        self._last_line = place, line + self._data.count(b"\n", last, place)
        return self._last_line[1]

    def locate(self, segments: tuple[Segment, ...]) -> Position:
        """Return the position of a field of an item, or of its deepest existing ancestor."""
        _, index, *rest = segments
        assert isinstance(index, int), "all documents of a list are items"
        start, end = self.spans[index]
        part = TextPart(self._data[start:end].decode(), Position(self._dash_line(index), 1))
        return find_position(yaml_spots(part, schema=self._schema), (0, *rest))
