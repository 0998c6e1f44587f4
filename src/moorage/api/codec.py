"""JSON to objects and back, reading as Kubernetes' decoder reads.

There are two paths from JSON to an object, and both give the same object:

1. msgspec decodes straight into the struct. It is fast and strict: a null where Go would leave
   the zero value, an unknown field or a wrong type make it give up.
2. `tolerant_reader` then walks the parsed tree by the struct's own declarations.
"""

from __future__ import annotations

import builtins
import json
import re
import types
import typing
from collections.abc import Callable
from functools import lru_cache, partial
from typing import (
    Any,
    Final,
    Generic,
    NamedTuple,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from moorage.api import field_path
from moorage.api.custom_resource import CustomResource, decode_custom, encode_custom
from moorage.api.documents.scalars import NumberText
from moorage.api.errors import ApiError, DecodeError
from moorage.api.field_path import MapKey, render
from moorage.api.quantity import Quantity
from moorage.api.structs import EXTRA, Open
from moorage.api.timestamp import Timestamp
from moorage.api.tolerant_reader import (
    json_name,
    may_hold_half_characters,
    read_tolerantly,
    sanitised,
    to_json,
)

S = TypeVar("S")

_TEXT_OR_SPACE: Final = re.compile(rb'("(?:[^"\\]|\\.)*")|[ \t\r\n]+', re.DOTALL)


class Decoded(NamedTuple, Generic[S]):
    """An object, and the places of fields that its kind does not have."""

    value: S
    unknown: tuple[field_path.Place, ...] = ()


def decode_json(data: bytes, struct: type[S]) -> Decoded[S]:
    """Return the object that JSON text describes, or raise DecodeError."""
    if issubclass(cast("Any", struct), CustomResource):
        return Decoded(cast("S", decode_custom(data, cast("Any", struct), decode_hook)))
    if (fits := fitting_json(data, struct)) is not None:
        return Decoded(fits)
    # The tolerant reader accepts more, and its errors say more.
    return Decoded(*read_tolerantly(parse_json(data), struct, data))


def decode_tree(tree: Any, struct: type[S]) -> Decoded[S]:
    """Return the object that a parsed JSON value describes, or raise DecodeError."""
    if (fits := fitting(tree, struct)) is not None:
        return Decoded(fits)
    return Decoded(*read_tolerantly(tree, struct))


def fitting(tree: Any, struct: type[S]) -> S | None:
    """Return the object if every field and type of the tree fits the struct exactly."""
    try:
        return msgspec.convert(tree, struct, dec_hook=decode_hook)
    except (ApiError, RecursionError, msgspec.DecodeError):
        pass  # It may hold JSON that is kept as text, which only a text can be read for.
    try:
        return cast("S", _json_decoder(cast("Any", struct)).decode(_plain_text(tree)))
    except (ApiError, TypeError, ValueError, RecursionError, msgspec.DecodeError):
        return None


def fitting_json(data: bytes, struct: type[S]) -> S | None:
    """Return the object if every field and type of JSON text fits the struct exactly."""
    if may_hold_half_characters(data):  # which msgspec lets pass
        return None
    try:
        return cast("S", _json_decoder(cast("Any", struct)).decode(data))
    except (ApiError, UnicodeDecodeError, RecursionError, msgspec.DecodeError):
        return None


def parse_json(data: bytes) -> Any:
    """Return the value of JSON text; numbers that are not integers keep their text."""
    try:
        if not json.detect_encoding(data).startswith("utf-8"):  # Python would read others, too.
            raise DecodeError("not valid JSON: not UTF-8")
        tree = json.loads(data, parse_float=NumberText, parse_constant=_refuse_constant)
        return sanitised(tree) if may_hold_half_characters(data) else tree
    except RecursionError:
        raise DecodeError("nested too deeply") from None
    except ValueError as error:
        raise DecodeError(f"not valid JSON: {error}") from None


def encode_json(value: Struct) -> bytes:
    """Return the JSON text of an object on one line.

    Raw JSON is in it as it was given, but for line breaks. So a client that reads an object and
    writes it back leaves raw JSON alone.
    """
    return in_one_line(encode_stored_json(value))


def encode_stored_json(value: Struct) -> bytes:
    """Return the JSON text of an object, in which raw JSON is as it was given."""
    if isinstance(value, CustomResource):
        return encode_custom(value)
    data = _encode(value)
    return (
        _encode(_hoist_extra(_decode(data), type(value))) if _may_have_extra(value, data) else data
    )


def encode_sorted_json(value: Struct) -> bytes:
    """Return the JSON text of an object with the keys of its maps in order, as Go prints them."""
    data = _encode_sorted(value)
    return (
        _encode(_hoist_extra(_decode(data), type(value))) if _may_have_extra(value, data) else data
    )


def encode_in_order(value: Struct) -> bytes:
    """Return the JSON text of an object with all keys in order, those of structs as well."""
    return _encode_in_order(value)


def to_tree(value: Struct) -> Any:
    """Return an object as plain dicts, lists and scalars."""
    if isinstance(value, CustomResource):
        return _decode(encode_custom(value))
    data = _encode(value)
    tree = _decode(data)
    return _hoist_extra(tree, type(value)) if _may_have_extra(value, data) else tree


def has_extra(value: Struct) -> bool:
    """Return whether some struct in an object may hold fields that it does not declare."""
    return isinstance(value, Open) and _EXTRA_KEY in _encode(value)


def _may_have_extra(value: Struct, data: bytes) -> bool:
    """Return whether some struct in the text may hold fields that it does not declare."""
    return isinstance(value, Open) and _EXTRA_KEY in data


def compact(text: bytes) -> bytes:
    """Return JSON text without the spaces between its tokens."""
    return _TEXT_OR_SPACE.sub(lambda found: found[1] or b"", text)


def in_one_line(text: bytes) -> bytes:
    """Return JSON text without line breaks, which end an event of a watch."""
    return compact(text) if b"\n" in text or b"\r" in text else text


def dotted(place: field_path.Place) -> str:
    """Return a place as Kubernetes prints it for unknown and duplicate fields."""
    return render(tuple(s.name if isinstance(s, MapKey) else s for s in place))


# --- msgspec ------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _json_decoder(struct: Any) -> Any:
    return msgspec.json.Decoder(struct, dec_hook=decode_hook)


def decode_hook(wanted: type, value: Any) -> Any:
    """Return a scalar that msgspec does not know."""
    if wanted is Quantity:
        if type(value) is str:
            return Quantity.from_json(value)
        if type(value) is int:
            return Quantity.parse(str(value))
    elif type(value) is str and issubclass(wanted, Timestamp):
        return wanted.parse(value)
    raise DecodeError(f"cannot read {json_name(value)} as {wanted.__name__}")


_plain_text = msgspec.json.Encoder().encode  # refuses numbers that are more than a float says
_encode = msgspec.json.Encoder(enc_hook=to_json).encode
_encode_sorted = msgspec.json.Encoder(enc_hook=to_json, order="deterministic").encode
_encode_in_order = msgspec.json.Encoder(enc_hook=to_json, order="sorted").encode
_decode = msgspec.json.Decoder().decode
_EXTRA_KEY = msgspec.json.encode(EXTRA)


Hoist = Callable[[Any], Any]


def _hoist_extra(tree: Any, hint: Any) -> Any:
    """Return the tree of a type with each struct's extra fields beside its declared ones."""
    hoist = _hoister(hint)
    return tree if hoist is None else hoist(tree)


@lru_cache(maxsize=4096)
def _hoister(hint: Any) -> Hoist | None:
    """Return how the tree of a type is hoisted; None for a type without structs."""
    arguments = get_args(hint)
    match get_origin(hint):
        case builtins.tuple:
            return _hoister_of_members(_each_item, arguments[0])
        case builtins.dict:
            return _hoister_of_members(_each_value, arguments[1])
        case typing.Union | types.UnionType:
            (some,) = (each for each in arguments if each is not types.NoneType)
            return _hoister_of_members(_unless_null, some)
    is_struct = isinstance(hint, type) and issubclass(hint, Struct)
    return partial(_hoist_struct, hint) if is_struct else None


def _hoister_of_members(within: Callable[[Hoist, Any], Any], member: Any) -> Hoist | None:
    hoist = _hoister(member)
    return None if hoist is None else partial(within, hoist)


def _each_item(hoist: Hoist, items: list[Any]) -> list[Any]:
    return [hoist(item) for item in items]


def _each_value(hoist: Hoist, values: dict[str, Any]) -> dict[str, Any]:
    return {key: hoist(value) for key, value in values.items()}


def _unless_null(hoist: Hoist, value: Any) -> Any:
    return None if value is None else hoist(value)


def _hoist_struct(struct: type[Struct], tree: dict[str, Any]) -> dict[str, Any]:
    hints = _hints(struct)
    extra = tree.pop(EXTRA, None)
    hoisted = {key: _hoist_extra(value, hints[key]) for key, value in tree.items()}
    return {**extra, **hoisted} if extra else hoisted


@lru_cache(maxsize=1024)
def _hints(struct: type[Struct]) -> dict[str, Any]:
    """Return the types of a struct's fields by their JSON names."""
    hints = get_type_hints(struct)
    return {info.encode_name: hints[info.name] for info in fields(struct)}


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")
