"""From the bytes of a message to a tree, as JSON would have it.

A `MessageReader` is made once for each message, from its declaration. For every tag it has a take:
a function that puts the value into the tree. The tree has everything on the wire except the zeros
of fields that cannot be absent: Go writes all of these, and JSON omits them.

As in Kubernetes: unknown fields are passed over, of a value that comes twice the last one counts,
messages that come twice are merged, lists of numbers may be packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from moorage.api.field_path import MapKey, Segment
from moorage.api.protobuf.values import VALUES, Value
from moorage.api.protobuf.wire import (
    LENGTH,
    VARINT,
    WireError,
    WireFields,
    check_unknown,
    pass_over,
    tag_of,
    truncated,
    varint,
)
from moorage.api.schema import Field, api_type

Tree = dict[str, Any]

_KEY_TAG = tag_of(1, LENGTH)

DEPTH_MAX = 100
MESSAGES_MAX = 500_000


@dataclass(slots=True)
class ReadBudget:
    """How much more a reading may do."""

    messages_left: int = MESSAGES_MAX
    depth_left: int = DEPTH_MAX


# take: (tree, data, start, stop, budget) -> None; for a varint, start is its value
Take = Callable[[Tree, bytes, int, int, ReadBudget], None]


@lru_cache(maxsize=1024)
def reader_of(name: str) -> MessageReader:
    """Return the reader of a message by its full name."""
    return MessageReader(name)


class MessageReader:
    """Reads one message."""

    def __init__(self, name: str) -> None:
        fields = [field for field in api_type(name).fields if field.number]
        self._numbers = frozenset(field.number for field in fields)
        self._takes = {tag: (field.name, take) for field in fields for tag, take in _takes(field)}

    def read(self, tree: Tree, data: bytes, at: int, end: int, budget: ReadBudget) -> None:
        """Put the fields of a message into a tree."""
        takes = self._takes
        name = ""
        budget.messages_left -= 1
        budget.depth_left -= 1
        if budget.messages_left < 0 or budget.depth_left < 0:
            raise _exhausted(budget)
        try:
            while at < end:
                tag = data[at]
                at += 1
                if tag >= 0x80:
                    name = ""
                    tag, at = varint(data, at - 1, end)
                known = takes.get(tag)
                if known is None:
                    name = ""
                    check_unknown(tag, self._numbers)
                    at = pass_over(tag, data, at, end)
                    continue
                name, take = known
                size = data[at]
                at += 1
                if size >= 0x80:
                    size, at = varint(data, at - 1, end)
                if tag & 7 == VARINT:
                    take(tree, data, size, 0, budget)
                else:
                    start, at = at, at + size
                    if at > end:
                        raise truncated()
                    take(tree, data, start, at, budget)
            if at > end:
                raise truncated()
        except (WireError, UnicodeDecodeError, IndexError) as error:
            raise _within(error, name) from None
        budget.depth_left += 1


def _exhausted(budget: ReadBudget) -> WireError:
    return WireError("too many messages" if budget.messages_left < 0 else "nested too deeply")


def _within(error: WireError | UnicodeDecodeError | IndexError, segment: Segment) -> WireError:
    """Return the wire error for an exception, with one more path segment."""
    match error:
        case WireError():
            fault = error
        case UnicodeDecodeError():
            fault = WireError("the text is not valid UTF-8")
        case _:
            fault = truncated()
    if segment != "":
        fault.place.append(segment)
    return fault


def _takes(field: Field) -> Iterator[tuple[int, Take]]:
    """Yield the tags of a field with what each does."""
    value = VALUES.get(field.type)
    length_tag = tag_of(field.number, LENGTH)
    if field.is_map:
        yield length_tag, _map_take(field, value)
    elif value is None:
        yield length_tag, _message_take(field)
    elif not field.is_list:
        yield tag_of(field.number, value.wire_type), _value_take(field, value)
    else:
        yield tag_of(field.number, value.wire_type), _list_take(field.name, value)
        if value.wire_type == VARINT:
            yield length_tag, _packed_take(field.name, value)


def _value_take(field: Field, value: Value) -> Take:
    name, read = field.name, value.read
    shows_zero = field.is_pointer or field.is_shown or field.type == "int-or-string"

    def take(tree: Tree, data: bytes, start: int, stop: int, _: ReadBudget) -> None:
        found = read(data, start, stop)
        if found or (shows_zero and found is not None):
            tree[name] = found
        else:
            tree.pop(name, None)  # The last one counts, and it is zero.

    return take


def _list_take(name: str, value: Value) -> Take:
    read = value.read

    def take(tree: Tree, data: bytes, start: int, stop: int, _: ReadBudget) -> None:
        items = tree.get(name)
        if items is None:
            items = tree[name] = []
        try:
            items.append(read(data, start, stop))
        except (WireError, UnicodeDecodeError) as error:
            raise _within(error, len(items)) from None

    return take


def _packed_take(name: str, value: Value) -> Take:
    read = value.read

    def take(tree: Tree, data: bytes, at: int, stop: int, _: ReadBudget) -> None:
        items = tree.setdefault(name, []) if at < stop else []
        while at < stop:
            number, at = varint(data, at, stop)
            items.append(read(data, number, 0))

    return take


def _message_take(field: Field) -> Take:
    name, type_name = field.name, field.type
    if field.is_inline:

        def take(tree: Tree, data: bytes, start: int, stop: int, budget: ReadBudget) -> None:
            reader_of(type_name).read(tree, data, start, stop, budget)

    elif field.is_list:

        def take(tree: Tree, data: bytes, start: int, stop: int, budget: ReadBudget) -> None:
            items = tree.get(name)
            if items is None:
                items = tree[name] = []
            item: Tree = {}
            try:
                reader_of(type_name).read(item, data, start, stop, budget)
            except WireError as fault:
                raise _within(fault, len(items)) from None
            items.append(item)

    else:

        def take(tree: Tree, data: bytes, start: int, stop: int, budget: ReadBudget) -> None:
            inner = tree.get(name)
            if inner is None:
                inner = tree[name] = {}
            reader_of(type_name).read(inner, data, start, stop, budget)

    return take


def _map_take(field: Field, value: Value | None) -> Take:
    name, type_name = field.name, field.type
    find = _entry_finder(LENGTH if value is None else value.wire_type)

    def take(tree: Tree, data: bytes, start: int, stop: int, budget: ReadBudget) -> None:
        members = tree.get(name)
        if members is None:
            members = tree[name] = {}
        key, place = find(data, start, stop)
        try:
            if value is None:
                inner: Tree = {}
                members[key] = inner
                reader_of(type_name).read(inner, data, *(place or (0, 0)), budget)
            else:
                members[key] = value.read(data, *place) if place else value.zero
        except (WireError, UnicodeDecodeError) as error:
            raise _within(error, MapKey(key)) from None

    return take


def _entry_finder(
    wire_type: int,
) -> Callable[[bytes, int, int], tuple[str, tuple[int, int] | None]]:
    """Return what finds the key of a map's entry, and where its value is."""
    value_tag = tag_of(2, wire_type)
    entry = WireFields(key=_KEY_TAG, value=value_tag)
    bytes_of = [bytes((value_tag, size)) for size in range(0x80)]

    def find(data: bytes, start: int, stop: int) -> tuple[str, tuple[int, int] | None]:
        # Nearly all entries are a short key, then a short value: no need to look at each part.
        if wire_type == LENGTH and stop - start > 3 and data[start] == _KEY_TAG:
            high = start + 2 + data[start + 1]
            size = stop - high - 2
            if 0 <= size < 0x80 > data[start + 1] and data[high : high + 2] == bytes_of[size]:
                return data[start + 2 : high].decode(), (high + 2, stop)
        found = entry.read(data, start, stop)
        return data[slice(*found.get("key", (0, 0)))].decode(), found.get("value")

    return find
