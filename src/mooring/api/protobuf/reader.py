"""From the bytes of a message to a tree, as JSON would have it.

A `MessageReader` is made once for each message, from its declaration. For every tag it has a take:
a function that puts the value into the tree. What is on the wire is in the tree, but for the zeros
of fields that cannot be absent: Go writes all of these, and JSON leaves them out.

As in Kubernetes: unknown fields are passed over, of a value that comes twice the last one counts,
messages that come twice are merged, lists of numbers may be packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mooring.api.fieldpath import Key
from mooring.api.protobuf.table import Field, declaration
from mooring.api.protobuf.values import VALUES, Value
from mooring.api.protobuf.wire import (
    LENGTH,
    VARINT,
    Fault,
    Shape,
    check_unknown,
    pass_over,
    tag_of,
    truncated,
    varint,
)

Tree = dict[str, Any]

DEPTH_MAX = 100
MESSAGES_MAX = 500_000


@dataclass(slots=True)
class Budget:
    """How much more a reading may do."""

    messages_left: int = MESSAGES_MAX
    depth_left: int = DEPTH_MAX


# take: (tree, data, start, stop, budget) -> None; for a varint, start is its value
Take = Callable[[Tree, bytes, int, int, Budget], None]


@lru_cache(maxsize=1024)
def reader_of(name: str) -> MessageReader:
    """Return the reader of a message by its full name."""
    return MessageReader(name)


class MessageReader:
    """Reads one message."""

    def __init__(self, name: str) -> None:
        fields = declaration(name).fields
        self._numbers = frozenset(field.number for field in fields)
        self._takes = {tag: (field.name, take) for field in fields for tag, take in _takes(field)}

    def read(self, tree: Tree, data: bytes, at: int, end: int, budget: Budget) -> None:
        """Put the fields of a message into a tree."""
        takes = self._takes
        name = ""
        _enter(budget)
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
        except Fault as fault:
            raise _within(fault, name) from None
        except IndexError:
            raise _within(truncated(), name) from None
        except UnicodeDecodeError:
            raise _within(Fault("the text is not valid UTF-8"), name) from None
        budget.depth_left += 1


def _enter(budget: Budget) -> None:
    budget.messages_left -= 1
    budget.depth_left -= 1
    if budget.messages_left < 0:
        raise Fault("too many messages")
    if budget.depth_left < 0:
        raise Fault("nested too deeply")


def _within(fault: Fault, name: str) -> Fault:
    if name:
        fault.place.append(name)
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
    is_zero_told = field.is_pointer or field.is_shown or field.type == "int-or-string"

    def take(tree: Tree, data: bytes, start: int, stop: int, _: Budget) -> None:
        found = read(data, start, stop)
        if found or (is_zero_told and found is not None):
            tree[name] = found
        else:
            tree.pop(name, None)  # The last one counts, and it is zero.

    return take


def _list_take(name: str, value: Value) -> Take:
    read = value.read

    def take(tree: Tree, data: bytes, start: int, stop: int, _: Budget) -> None:
        items = tree.get(name)
        if items is None:
            items = tree[name] = []
        with _Item(items):
            items.append(read(data, start, stop))

    return take


def _packed_take(name: str, value: Value) -> Take:
    read = value.read

    def take(tree: Tree, data: bytes, at: int, stop: int, _: Budget) -> None:
        items = tree.setdefault(name, []) if at < stop else []
        with _Item(items):
            while at < stop:
                number, at = varint(data, at, stop)
                items.append(read(data, number, 0))

    return take


def _message_take(field: Field) -> Take:
    name, message = field.name, field.type
    if field.is_inline:

        def take(tree: Tree, data: bytes, start: int, stop: int, budget: Budget) -> None:
            reader_of(message).read(tree, data, start, stop, budget)

    elif field.is_list:

        def take(tree: Tree, data: bytes, start: int, stop: int, budget: Budget) -> None:
            items = tree.get(name)
            if items is None:
                items = tree[name] = []
            item: Tree = {}
            with _Item(items):
                reader_of(message).read(item, data, start, stop, budget)
            items.append(item)

    else:

        def take(tree: Tree, data: bytes, start: int, stop: int, budget: Budget) -> None:
            inner = tree.get(name)
            if inner is None:
                inner = tree[name] = {}
            reader_of(message).read(inner, data, start, stop, budget)

    return take


def _map_take(field: Field, value: Value | None) -> Take:
    name, message = field.name, field.type
    wire_type = LENGTH if value is None else value.wire_type
    entry = Shape(key=tag_of(1, LENGTH), value=tag_of(2, wire_type))

    def take(tree: Tree, data: bytes, start: int, stop: int, budget: Budget) -> None:
        members = tree.get(name)
        if members is None:
            members = tree[name] = {}
        found = entry.read(data, start, stop)
        low, high = found.get("key", (0, 0))
        key = data[low:high].decode()
        place = found.get("value")
        try:
            if value is None:
                members[key] = inner = {}
                low, high = place or (0, 0)
                reader_of(message).read(inner, data, low, high, budget)
            else:
                members[key] = value.read(data, *place) if place else value.zero
        except Fault as fault:
            fault.place.append(Key(key))
            raise
        except UnicodeDecodeError:
            raise _at(Fault("the text is not valid UTF-8"), Key(key)) from None

    return take


def _at(fault: Fault, key: Key) -> Fault:
    fault.place.append(key)
    return fault


class _Item:
    """Tells a fault which item of a list it is about: the next one."""

    __slots__ = ("_items",)

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        match error:
            case Fault():
                error.place.append(len(self._items))
            case UnicodeDecodeError():
                fault = Fault("the text is not valid UTF-8")
                fault.place.append(len(self._items))
                raise fault from None
