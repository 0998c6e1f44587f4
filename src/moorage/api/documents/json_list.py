r"""Reads a dump, a JSON list of many objects, item by item: one tree at a time is in memory.

    {"apiVersion": "v1", "items": [ … ], "kind": "List"}
    ╰────────── head ───────────╯ ╰ items ╯ ╰─ head ──╯

1. The text between the first `"items":` and the last `]` must be a JSON array, and the text around
   it, with any number in its place, an object that has this number as `items`. Then the whole
   text is that object with the array in it.
2. Each item must be a plain object (see `reader`). So must the head.
3. In any doubt the careful reader reads everything: nothing is yielded before all this is proven.

Whoever knows the kinds of objects passes an `ItemReader`: an item that it reads is proven by that,
and its object is kept until the document is gone. Other items are parsed when they are asked for.
The position of an item is found in the text when a message needs it.

The text of a large file stays in the file (`StoredText`): a batch of items is in memory at a time.
Batches end where the indentation of kubectl shows the end of an item. A wrong guess does no harm:
each batch must be a list by itself, and lists of items, joined by commas, are the whole list.

    # batch: the text of some items and the commas between them
"""

from __future__ import annotations

import codecs
import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from msgspec import Raw

from moorage.api.documents.document import (
    DEFAULT_LIMITS,
    START,
    Document,
    Duplicate,
    Limits,
    Position,
    TextPart,
    Tree,
    list_items,
    with_type,
)
from moorage.api.documents.json_scan import (
    JsonPositions,
    has_surely_few_values,
    may_hold_long_number,
)
from moorage.api.documents.reader import decode_plain, is_shallow, plain_object
from moorage.api.field_path import Segment

ITEMS: Final = "items"
_ITEMS_KEY = re.compile(rb'"items"[ \t\r\n]*+:[ \t\r\n]*+(?=\[)')
_HEAD_BYTES_MAX = 64 * 1024  # on each side of the items
_GAP = re.compile(rb"[ \t\r\n,]*+")
_NOT_BEFORE_VALUES = bytes(code for code in range(256) if code not in b",[{")
_CHUNK_BYTES = 1024 * 1024
BATCH_BYTES = 2 * 1024 * 1024  # at least, unless there are no more
_FIRST_ITEM = re.compile(rb"\[([ \t]*+\r?+\n[ \t]*+)\{")
_decode_items = msgspec.json.Decoder(list[Raw]).decode


class StoredText(Protocol):
    """Text that is read part by part, and is the same each time."""

    @property
    def bytes_count(self) -> int:
        """The length of the text."""

    def part(self, start: int, end: int) -> bytes:
        """Return the bytes from a start up to an end, or up to the end of the text."""


class _TextInMemory(NamedTuple):
    data: bytes

    @property
    def bytes_count(self) -> int:
        return len(self.data)

    def part(self, start: int, end: int) -> bytes:
        return self.data[start:end]


class ItemReader(Protocol):
    """A reader of objects, for the items of lists."""

    def read_json(self, text: bytes) -> Any | None:
        """Return what the careful readers make of JSON text without spaces; None in doubt."""

    def read_tree(self, tree: Tree) -> Any | None:
        """Return what the careful readers make of a tree of few values; None if they refuse it.

        Its texts are printable ASCII.
        """


class ObjectList(NamedTuple):
    """A list: its own fields without the items, its text, and the items that are read already."""

    head: dict[str, Tree]
    text: JsonListText
    readings: list[Any]

    def documents(self) -> Iterator[Document]:
        """Yield the items as documents."""
        for index, reading in enumerate(self.readings):
            self.readings[index] = None  # The document has it.
            yield ListItem(self, index, reading)


def json_list(
    data: bytes | StoredText,
    *,
    source: str,
    limits: Limits = DEFAULT_LIMITS,
    objects: ItemReader | None = None,
    batch_bytes: int = BATCH_BYTES,
) -> ObjectList | None:
    """Return the only document of the text if it is a list of plain objects; None in doubt."""
    text = _TextInMemory(data) if isinstance(data, bytes) else data
    opening = text.part(0, _HEAD_BYTES_MAX)
    place = _ITEMS_KEY.search(opening)
    if place is None or text.bytes_count > limits.bytes_max:
        return None
    closing_start = max(text.bytes_count - _HEAD_BYTES_MAX - 1, place.end() + 1)
    closing = text.part(closing_start, text.bytes_count)
    end = closing.rfind(b"]")
    before, after = opening[: place.end()], closing[end + 1 :]
    head = None if end < 0 else _head(before, after, limits.depth_max)
    if head is None or may_hold_long_number(before) or may_hold_long_number(after):
        return None
    items = _Items(head, limits, objects, before, after)
    for batch in _batches(text, place.end(), closing_start + end, batch_bytes):
        if not items.add(batch):
            return None
    return ObjectList(head, JsonListText(text, source, items.spans, items.lines), items.readings)


class _Batch(NamedTuple):
    start: int  # in the text
    data: bytes


def _batches(text: StoredText, start: int, end: int, batch_bytes: int) -> Iterator[_Batch]:
    """Yield the text between the brackets of a list in batches; commas between them are left out.

    Items that are not indented are one batch.
    """
    first = _FIRST_ITEM.match(text.part(start, start + _HEAD_BYTES_MAX))
    between = b"%b},%b{" % (first[1], first[1]) if first is not None else None
    place, length = start + 1, batch_bytes
    while between is not None and end - place > length:
        data = text.part(place, place + length)
        last = data.rfind(between)
        if last < 0:
            length *= 2  # An item is longer than that.
            continue
        last += between.index(b"}") + 1
        yield _Batch(place, data[:last])
        place, length = place + last + 1, batch_bytes
    yield _Batch(place, text.part(place, end))


class _Items:
    """The items of all batches so far."""

    def __init__(
        self,
        head: dict[str, Tree],
        limits: Limits,
        objects: ItemReader | None,
        before: bytes,
        after: bytes,
    ) -> None:
        self.readings: list[Any] = []
        self.spans: list[Span] = []
        self.lines = array("Q")  # the first of each item
        self._head, self._limits, self._objects = head, limits, objects
        self._values = _values_at_most(before) + _values_at_most(after)
        self._line = 1 + before.count(b"\n")

    def add(self, batch: _Batch) -> bool:
        """Add the items of a batch, and return whether nothing about them is in doubt."""
        data = b"[%b]" % batch.data
        left = self._limits.nodes_max - self._values
        if not has_surely_few_values(data, left) or may_hold_long_number(data):
            return False
        try:
            items = _decode_items(data)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return False
        if not all(map(self._add, items)):
            return False
        self._add_places(data, batch.start - 1, items)
        return True

    def _add(self, item: Raw) -> bool:
        depth_max = self._limits.depth_max - 2
        text = _without_spaces(item)
        self._values += _values_at_most(text)
        if self._values >= self._limits.nodes_max:
            return False
        reading = self._objects.read_json(text) if self._objects is not None else None
        is_proven = reading is not None and is_shallow(text, depth_max)
        self.readings.append(reading if is_proven else None)
        return is_proven or _is_plain(text, self._head, depth_max)

    def _add_places(self, data: bytes, offset: int, items: list[Raw]) -> None:
        last = 0
        for start, end in _spans(data, 0, items):
            self._line += data.count(b"\n", last, start)
            self.spans.append(Span(offset + start, offset + end))
            self.lines.append(self._line)
            last = start
        self._line += data.count(b"\n", last)


def _values_at_most(data: bytes) -> int:
    """Return how many values follow a comma or an opening bracket; in strings, signs count too."""
    return len(data.translate(None, _NOT_BEFORE_VALUES))


def _without_spaces(item: Raw) -> bytes:
    return msgspec.json.format(item, indent=-1)


def _head(before: bytes, after: bytes, depth_max: int) -> dict[str, Tree] | None:
    """Return the fields of the list around its items; None if there is no such list."""
    heads = [plain_object(b"%b%d%b" % (before, number, after), depth_max) for number in (0, 1)]
    # With one number only, another field named `items` might have it.
    if [head and head.get(ITEMS) for head in heads] != [0, 1] or heads[0] is None:
        return None
    head = {name: value for name, value in heads[0].items() if name != ITEMS}
    return None if list_items({**head, ITEMS: []}) is None else head


def _is_plain(item: bytes, head: dict[str, Tree], depth_max: int) -> bool:
    """Return whether an item is a plain object, and no list of more objects."""
    tree = plain_object(item, depth_max)
    typed = None if tree is None else with_type(tree, head)
    return isinstance(typed, dict) and list_items(typed) is None


class Span(NamedTuple):
    """The bytes of an item."""

    start: int
    end: int


def _spans(data: bytes, start: int, items: list[Raw]) -> list[Span]:
    found = []
    place = start + 1
    for item in items:
        gap = _GAP.match(data, place)
        assert gap is not None
        place = gap.end() + len(item)
        found.append(Span(gap.end(), place))
    return found


class JsonListText:
    """The text of a list, and where its items are; the origin of their documents."""

    def __init__(
        self, data: bytes | StoredText, source: str, spans: list[Span], lines: Sequence[int] = ()
    ) -> None:
        self._text = _TextInMemory(data) if isinstance(data, bytes) else data
        self.source = source
        self.spans = spans
        self._lines = lines
        # The last answers: counting from the top for each item would be quadratic.
        self._last_position = (0, START)
        self._last_tree: tuple[int, Tree] = (-1, None)

    @property
    def line(self) -> int:
        """The first line of the list."""
        return 1

    @property
    def json(self) -> bytes | None:
        """The bytes of the list, if they are JSON."""
        return self._text.part(0, self._text.bytes_count)

    @property
    def yaml(self) -> str | None:
        """The text of the list, if it is YAML."""
        return None

    def duplicates(self, index: int) -> tuple[Duplicate, ...]:  # noqa: ARG002
        """Return the keys that an item has twice: none."""
        return ()

    def tree(self, index: int) -> Tree:
        """Return the tree of an item; the last one is remembered."""
        if self._last_tree[0] != index:
            start, end = self.spans[index]
            self._last_tree = index, decode_plain(self._text.part(start, end))
        return self._last_tree[1]

    def line_of(self, index: int) -> int:
        """Return the first line of an item."""
        return self._lines[index]

    def locate(self, segments: tuple[Segment, ...]) -> Position:
        """Return the position of a field of an item, or of its deepest existing ancestor."""
        _, index, *rest = segments
        assert isinstance(index, int), "all documents of a list are items"
        start, end = self.spans[index]
        text = self._text.part(start, end).decode()
        place = JsonPositions(text, 0).find(tuple(rest))
        return TextPart(text[:place], self._position(start)).end

    def _position(self, place: int) -> Position:
        last, position = self._last_position if self._last_position[0] <= place else (0, START)
        decoder = codecs.getincrementaldecoder("utf-8")()
        for start in range(last, place, _CHUNK_BYTES):
            text = decoder.decode(self._text.part(start, min(start + _CHUNK_BYTES, place)))
            position = TextPart(text, position).end
        self._last_position = place, position
        return position


class ListItem(Document):
    """An item of a list that was proven to be plain: it is parsed when its tree is needed."""

    __slots__ = ("_list", "_reading")
    _list: ObjectList
    _reading: Any

    def __init__(self, of: ObjectList, index: int, reading: Any) -> None:
        """Make the document of an item by its number in the list."""
        text = of.text
        values = {"_list": of, "source": text.source, "index": 0, "within": (ITEMS, index)}
        values["_reading"] = reading
        values |= {"origin": text, "duplicates": text.duplicates(index)}
        for name, value in values.items():
            object.__setattr__(self, name, value)  # as for every frozen dataclass

    @property
    def tree(self) -> Tree:
        """The item, with the type that its list implies."""
        return with_type(self._list.text.tree(self._number), self._list.head)

    @property
    def reading(self) -> Any:
        """The object, if it was read together with its text."""
        return self._reading

    @property
    def line(self) -> int:
        """The first line, from 1."""
        return self._list.text.line_of(self._number)

    @property
    def _number(self) -> int:
        number = self.within[1]
        assert isinstance(number, int)
        return number
