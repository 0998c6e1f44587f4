"""JSON read as the Go types of Kubernetes read it, by the schema.

Reading a tree does to it what decoding to a Go type and encoding again does:

- a value of another type is refused
- a field that the type does not have is dropped and reported
- null is the same as nothing, and an empty value is left out unless Go writes it

How many items all lists of an object have together is bounded here, before anything is done for
each of them: a body of 3 MiB can hold 700,000 empty containers, each with several errors.

# message: a type of the schema by its full name, such as core/v1.Probe
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct

from moorage.api import schema
from moorage.api.documents.scalars import NumberText
from moorage.api.errors import ApiError, DecodeError
from moorage.api.field_path import MapKey, Place, render
from moorage.api.go_type_names import go_type, json_type, map_type, short_name
from moorage.api.json_schema import read_schema
from moorage.api.quantity import Quantity
from moorage.api.repeated_trees import RepeatedTrees
from moorage.api.timestamp import MicroTimestamp, Timestamp
from moorage.api.tolerant_reader import go_base64

S = TypeVar("S", bound=Struct)

ITEMS_MAX = 10_000  # of all lists of an object together, other than lists of plain values


class Unknown(list[Place]):
    """The unknown fields found so far, and how many more items of lists may be read."""

    def __init__(self) -> None:
        super().__init__()
        self._items_left = ITEMS_MAX

    @property
    def items_left(self) -> int:
        """How many more items may be read."""
        return self._items_left

    def has_room_for(self, number: int) -> bool:
        """Count items, if these may be read."""
        if number > self._items_left:
            return False
        self._items_left -= number
        return True

    def count_items(self, number: int, place: Place) -> None:
        """Raise GoMismatchError if these are more items than may be left."""
        self._items_left -= number
        if self._items_left < 0:
            words = f"the lists of the object have more than {ITEMS_MAX:,} items in all"
            raise GoMismatchError(words, place, f"{render(place)}: {words}")


# read: (value that is not null, its place, unknown fields so far) -> value as Go writes it
Read = Callable[[Any, Place, Unknown], Any]


# --- messages: how JSON is read -------------------------------------------------------------------


class GoField(NamedTuple):
    """One field of a Go struct, as JSON has it."""

    type: str  # a scalar of the table, or a message
    read: Read
    is_always_shown: bool = False
    plain: str = ""  # its type, if it is a scalar that Go leaves out if it is empty


class EmbeddedName(str):
    """The name of a field that JSON shows among those of the struct that embeds its own."""

    __slots__ = ("struct",)
    struct: str

    def __new__(cls, name: str, struct: str) -> EmbeddedName:
        """Return the name of a field of an embedded struct."""
        made = super().__new__(cls, name)
        made.struct = struct
        return made


class GoMessage:
    """A Go struct: the fields that JSON shows it with, those of embedded structs among them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: dict[str, GoField] = {}
        self._embedded: dict[str, EmbeddedName] = {}  # fields of embedded structs
        declared = schema.api_type(name)
        if declared.is_kind:
            for known in ("apiVersion", "kind"):
                self.fields[known] = _go_field(name, schema.Field(known, 0, "string"))
        for field in declared.fields:
            if not field.is_inline:
                self.fields[field.name] = _go_field(name, field)
                continue
            for inner in schema.api_type(field.type).fields:
                self.fields[inner.name] = _go_field(name, inner)
                self._embedded[inner.name] = EmbeddedName(inner.name, short_name(field.type))

    @cached_property
    def _plain(self) -> dict[str, type]:
        """The types of fields in which a value that is not empty stays as it is."""
        found = ((name, _PLAIN.get(field.plain)) for name, field in self.fields.items())
        return {name: wanted for name, wanted in found if wanted is not None}

    @cached_property
    def _zeros(self) -> dict[str, Any]:
        """The fields that Go writes for an empty struct."""
        return {n: _zero_of(f.type) for n, f in self.fields.items() if f.is_always_shown}

    def read(self, tree: Any, place: Place, unknown: Unknown) -> dict[str, Any]:
        """Return a tree as Go writes it."""
        found: dict[str, Any] = {}
        plain = self._plain
        for key, value in tree.items():
            if value and plain.get(key) is type(value):  # as most are
                found[key] = value
                continue
            field = self.fields.get(key)
            if field is None:
                unknown.append((*place, key))
            elif value is not None:
                after = field.read(value, (*place, self._embedded.get(key, key)), unknown)
                if after is not None:
                    found[key] = after
        return {**self._zeros, **found} if self._zeros else found


@lru_cache(maxsize=1024)
def message_named(name: str) -> GoMessage:
    """Return a message by its full name."""
    return GoMessage(name)


def _go_field(owner: str, field: schema.Field) -> GoField:
    read_value = _value_reader(owner, field)
    if field.is_list:
        read_list = _list_reader(owner, field, read_value)
        return GoField(field.type, repeated(read_list) if "." in field.type else read_list)
    if field.is_map:
        return GoField(field.type, _map_reader(owner, field, read_value))
    if field.is_pointer or field.type in ("json", "time", "microtime"):
        return GoField(field.type, read_value)
    # Go leaves no struct out for being empty, and to it these two are structs.
    if field.is_shown or "." in field.type or field.type in ("quantity", "int-or-string"):
        return GoField(field.type, read_value, is_always_shown=True)
    read_shown = _unless_zero(read_value, _ZEROS[field.type])
    return GoField(field.type, read_shown, plain=field.type)


def _unless_zero(read_value: Read, zero: Any) -> Read:
    def read(value: Any, place: Place, unknown: Unknown) -> Any:
        after = read_value(value, place, unknown)
        return None if after == zero else after

    return read


def _list_reader(owner: str, field: schema.Field, read_item: Read) -> Read:
    def read(value: Any, place: Place, unknown: Unknown) -> Any:
        if type(value) is not list:
            raise _mismatch(value, owner, place, f"[]{go_type(field)}")
        if "." in field.type:
            unknown.count_items(len(value), place)
        return [
            _zero_of(field.type) if item is None else read_item(item, (*place, i), unknown)
            for i, item in enumerate(value)
        ] or None

    return read


def _map_reader(owner: str, field: schema.Field, read_item: Read) -> Read:
    def read(value: Any, place: Place, unknown: Unknown) -> Any:
        if type(value) is not dict:
            raise _mismatch(value, owner, place, map_type(field))
        return {
            key: _zero_of(field.type) if v is None else read_item(v, (*place, MapKey(key)), unknown)
            for key, v in value.items()
        } or None

    return read


def _zero_of(type_name: str) -> Any:
    return (
        _ZEROS[type_name]
        if type_name in _ZEROS
        else message_named(type_name).read({}, (), Unknown())
    )


def repeated(read: Read) -> Read:
    """Return a reader of trees that often come again, of which it reads each once."""
    trees: RepeatedTrees[tuple[Any, int]] = RepeatedTrees()

    def read_once(value: Any, place: Place, unknown: Unknown) -> Any:
        known, text = trees.find(value)
        if known is not None and unknown.has_room_for(known[1]):
            return known[0]
        items_before, unknown_before = unknown.items_left, len(unknown)
        found = read(value, place, unknown)
        if text and len(unknown) == unknown_before:
            trees.remember(text, (found, items_before - unknown.items_left))
        return found

    return read_once


def _value_reader(owner: str, field: schema.Field) -> Read:
    if "." in field.type:
        return repeated(_message_reader(owner, field))
    if field.type == "json-schema":
        return read_schema
    accepts = _ACCEPTED[field.type]

    def read(value: Any, place: Place, _: Unknown) -> Any:
        if type(value) not in accepts:
            raise _mismatch(value, owner, place, go_type(field))
        return _CONVERTED[field.type](value, owner, place) if field.type in _CONVERTED else value

    return read


def _message_reader(owner: str, field: schema.Field) -> Read:
    def read(value: Any, place: Place, unknown: Unknown) -> Any:
        if type(value) is not dict:
            raise _mismatch(value, owner, place, go_type(field))
        return message_named(field.type).read(value, place, unknown)

    return read


# --- scalars --------------------------------------------------------------------------------------

_NUMBERS = (int, NumberText, float)
_ACCEPTED: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "bool": (bool,),
    "int32": _NUMBERS,
    "int64": _NUMBERS,
    "bytes": (str, list),
    "quantity": (str, bool, *_NUMBERS, list, dict),  # Go parses the text of whatever is there
    "time": (str,),
    "microtime": (str,),
    "int-or-string": (str, *_NUMBERS),
    "json": (str, bool, *_NUMBERS, list, dict, Raw),  # protobuf has the text of it
    "json-schema": (dict,),
    "strings": (list,),
}
_PLAIN: dict[str, type] = {"string": str, "bool": bool}
_ZEROS: dict[str, Any] = {
    "string": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "bytes": "",
    "quantity": "0",
    "time": None,
    "microtime": None,
    "int-or-string": 0,
    "json": None,
    "json-schema": None,
    "strings": [],
}


def _integer(bits: int) -> Callable[[Any, str, Place], int]:
    def convert(value: Any, owner: str, place: Place) -> int:
        if type(value) is int and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            return value
        text = value.text if isinstance(value, NumberText) else str(value)[:40]
        raise _refusal(f"number {text}", owner, place, f"int{bits}")

    return convert


def _quantity(value: Any, _: str, place: Place) -> str:
    text = value.text if isinstance(value, NumberText) else str(value)
    if isinstance(value, (bool, list, dict)):
        text = "{}"
    try:
        return str(Quantity.from_json(text))
    except ApiError as error:
        raise _unreadable(error, place) from None


def _time(wanted: type[Timestamp]) -> Callable[[Any, str, Place], str | None]:
    def convert(value: Any, _: str, place: Place) -> str | None:
        try:
            time = wanted.parse(value)
        except ApiError as error:
            raise _unreadable(error, place) from None
        return None if time.is_zero else str(time)

    return convert


def _bytes(value: Any, _: str, place: Place) -> str:
    try:
        return go_base64(value)
    except ApiError as error:
        raise _unreadable(error, place) from None


def _int_or_string(value: Any, owner: str, place: Place) -> Any:
    return value if isinstance(value, str) else _integer(32)(value, owner, place)


def _plain_json(value: Any, _: str, __: Place) -> Any:
    return msgspec.json.decode(value) if isinstance(value, Raw) else value


_CONVERTED: dict[str, Callable[[Any, str, Place], Any]] = {
    "json": _plain_json,
    "int32": _integer(32),
    "int64": _integer(64),
    "quantity": _quantity,
    "time": _time(Timestamp),
    "microtime": _time(MicroTimestamp),
    "bytes": _bytes,
    "int-or-string": _int_or_string,
}


# --- errors ---------------------------------------------------------------------------------------


class GoMismatchError(DecodeError):
    """A value of a wrong type; `words` is Go's error message."""

    def __init__(self, message: str, place: Place, words: str) -> None:
        super().__init__(f"{render(place) or 'the object'}: {message}", place)
        self.words = words


def go_words(tree: Any, api_version: str, kind: str) -> str | None:
    """Return the error of Go for a tree that is no object of a kind; None if it is one."""
    message = schema.find_kind(api_version, kind)
    if message is None:
        return None
    try:
        message_named(message).read(tree, (), Unknown())
    except GoMismatchError as error:
        return error.words
    except DecodeError as error:  # of a schema within a definition, whose reader speaks Go itself
        return str(error)
    return None


def _mismatch(value: Any, owner: str, place: Place, wanted: str) -> GoMismatchError:
    return _refusal(json_type(value), owner, place, wanted)


def _refusal(what: str, owner: str, place: Place, wanted: str) -> GoMismatchError:
    # Go's path has no indexes, and names the structs that are embedded.
    parts = (part for part in place if isinstance(part, str))
    path = ".".join(f"{p.struct}.{p}" if isinstance(p, EmbeddedName) else p for p in parts)
    words = (
        f"json: cannot unmarshal {what} into Go struct field {short_name(owner)}.{path} of type "
    )
    return GoMismatchError(f"expected {wanted}, got {what}", place, f"{words}{wanted}")


def _unreadable(error: ApiError, place: Place) -> GoMismatchError:
    return GoMismatchError(str(error), place, str(error))
