"""JSON to objects and back, reading as Kubernetes' decoder reads.

Two ways lead from JSON to an object, and both give the same object:

1. msgspec decodes straight into the struct. It is fast and strict: a null where Go would leave
   the zero value, an unknown field or a wrong type make it give up.
2. The tolerant reader then walks the parsed tree by the struct's own declarations: null is the
   zero value, unknown fields are named (Closed) or kept (Open), and a value that does not fit is
   a DecodeError that gives its place.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from functools import lru_cache
from typing import (
    Annotated,
    Any,
    Generic,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import NODEFAULT, Raw, Struct
from msgspec.structs import FieldInfo, fields

from mooring.api.checked_structs import unchecked
from mooring.api.documents.numbers import NumberText
from mooring.api.errors import ApiError, DecodeError
from mooring.api.field_path import Key, Segment, render
from mooring.api.quantity import Quantity
from mooring.api.raw_json import in_one_line
from mooring.api.structs import EXTRA, Open
from mooring.api.timestamp import MicroTimestamp, Timestamp

S = TypeVar("S")

Place = tuple[Segment, ...]


# reader: (value, its place, notes on the whole reading) -> object
Reader = Callable[[Any, Place, "_Notes"], Any]


class Decoded(NamedTuple, Generic[S]):
    """An object, and the places of fields that its kind does not have."""

    value: S
    unknown: tuple[Place, ...] = ()


def decode_json(data: bytes, struct: type[S]) -> Decoded[S]:
    """Return the object that JSON text describes, or raise DecodeError."""
    if (fits := fitting_json(data, struct)) is not None:
        return Decoded(fits)
    # The tolerant reader accepts more, and says better what is wrong.
    return _read_tolerantly(parse_json(data), struct, data)


def decode_tree(tree: Any, struct: type[S]) -> Decoded[S]:
    """Return the object that a parsed JSON value describes, or raise DecodeError."""
    if (fits := fitting(tree, struct)) is not None:
        return Decoded(fits)
    return _read_tolerantly(tree, struct)


def fitting(tree: Any, struct: type[S]) -> S | None:
    """Return the object if every field and type of the tree fits the struct exactly."""
    try:
        return msgspec.convert(tree, struct, dec_hook=_from_json)
    except (ApiError, RecursionError, msgspec.DecodeError):
        pass  # It may hold JSON that is kept as text, which only a text can be read for.
    try:
        return cast("S", _json_decoder(cast("Any", struct)).decode(_plain_text(tree)))
    except (ApiError, TypeError, ValueError, RecursionError, msgspec.DecodeError):
        return None


def fitting_json(data: bytes, struct: type[S]) -> S | None:
    """Return the object if every field and type of JSON text fits the struct exactly."""
    if _may_hold_half_characters(data):  # which msgspec lets pass
        return None
    try:
        return cast("S", _json_decoder(cast("Any", struct)).decode(data))
    except (ApiError, UnicodeDecodeError, RecursionError, msgspec.DecodeError):
        return None


def parse_json(data: bytes) -> Any:
    """Return the value of JSON text; numbers that are not integers keep their text."""
    try:
        tree = json.loads(data, parse_float=NumberText, parse_constant=_refuse_constant)
        return _sanitised(tree) if _may_hold_half_characters(data) else tree
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
    data = _encode(value)
    return _encode(_hoist_extra(_decode(data))) if _may_have_extra(value, data) else data


def encode_sorted_json(value: Struct) -> bytes:
    """Return the JSON text of an object with the keys of its maps in order, as Go prints them."""
    data = _encode_sorted(value)
    return _encode(_hoist_extra(_decode(data))) if _may_have_extra(value, data) else data


def to_tree(value: Struct) -> Any:
    """Return an object as plain dicts, lists and scalars."""
    data = _encode(value)
    tree = _decode(data)
    return _hoist_extra(tree) if _may_have_extra(value, data) else tree


def has_extra(value: Struct) -> bool:
    """Return whether some struct in an object may hold fields that it does not declare."""
    return isinstance(value, Open) and _EXTRA_KEY in _encode(value)


def _may_have_extra(value: Struct, data: bytes) -> bool:
    """Return whether some struct in the text may hold fields that it does not declare."""
    return isinstance(value, Open) and _EXTRA_KEY in data


def dotted(place: Place) -> str:
    """Return a place as Kubernetes prints it for unknown and duplicate fields."""
    return render(tuple(s.name if isinstance(s, Key) else s for s in place))


# --- msgspec ------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _json_decoder(struct: Any) -> Any:
    return msgspec.json.Decoder(struct, dec_hook=_from_json)


def _from_json(wanted: type, value: Any) -> Any:
    """Make the scalars that msgspec does not know."""
    if wanted is Quantity:
        if type(value) is str:
            return Quantity.from_json(value)
        if type(value) is int:
            return Quantity.parse(str(value))
    elif type(value) is str and issubclass(wanted, Timestamp):
        return wanted.parse(value)
    raise DecodeError(f"cannot read {_json_name(value)} as {wanted.__name__}")


def _to_json(value: Any) -> str | float | None:
    if isinstance(value, Timestamp):
        return None if value.is_zero else str(value)
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, NumberText):  # in a field that holds any JSON
        return float(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


_plain_text = msgspec.json.Encoder().encode  # refuses numbers that are more than a float says
_encode = msgspec.json.Encoder(enc_hook=_to_json).encode
_encode_sorted = msgspec.json.Encoder(enc_hook=_to_json, order="deterministic").encode
_decode = msgspec.json.Decoder().decode
_EXTRA_KEY = msgspec.json.encode(EXTRA)


def _hoist_extra(tree: Any) -> Any:
    """Return the tree with each struct's extra fields beside its declared ones."""
    if isinstance(tree, dict):
        extra = tree.pop(EXTRA, None)
        hoisted = {key: _hoist_extra(value) for key, value in tree.items()}
        return {**extra, **hoisted} if extra else hoisted
    if isinstance(tree, list):
        return [_hoist_extra(value) for value in tree]
    return tree


# --- the tolerant reader ------------------------------------------------------------------


class _Notes:
    """What a reading finds besides the object, and the text that it reads, if there is one."""

    def __init__(self, text: bytes | None) -> None:
        self.unknown: list[Place] = []
        self._text = text
        self._members: dict[Place, Any] = {}  # by the place of a list or map in the text

    def text_at(self, place: Place) -> bytes | None:
        """Return the very text of a value: what is raw is kept and measured as it was written."""
        if self._text is None:
            return None
        try:
            return bytes(self._raw(place))
        except (LookupError, UnicodeDecodeError, msgspec.DecodeError):
            return None  # A key on the way is not in the text: it was sanitised.

    def _raw(self, place: Place) -> Any:
        if not place:
            return self._text
        *above, last = place
        holder = tuple(above)
        if holder not in self._members:
            self._members[holder] = _MEMBERS_DECODER.decode(self._raw(holder))
        return self._members[holder][last.name if isinstance(last, Key) else last]


_MEMBERS_DECODER = msgspec.json.Decoder(list[Raw] | dict[str, Raw])


def _read_tolerantly(tree: Any, struct: type[S], text: bytes | None = None) -> Decoded[S]:
    notes = _Notes(text)
    value = _reader(cast("Any", struct))(tree, (), notes)
    return Decoded(value, tuple(notes.unknown))


@lru_cache(maxsize=1024)
def _reader(annotation: Any) -> Reader:
    """Return the reader for values of a declared type."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        (bounds,) = annotation.__metadata__
        return _integer_reader(bounds.ge, bounds.le)
    if origin in (Union, types.UnionType):
        (wanted,) = (a for a in arguments if a is not types.NoneType)
        return _optional_reader(_reader(wanted))
    if origin is tuple:
        return _list_reader(_reader(arguments[0]))
    if origin is dict:
        return _map_reader(_reader(arguments[1]))
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return _struct_reader(annotation)
    raise TypeError(f"no reader for {annotation!r}")


def _read_string(value: Any, place: Place, _: _Notes) -> str:
    if value is None:
        return ""
    if type(value) is not str:
        raise _mismatch(value, "a string", place)
    return _without_surrogates(value)


def _read_bool(value: Any, place: Place, _: _Notes) -> bool:
    if value is None:
        return False
    if type(value) is not bool:
        raise _mismatch(value, "true or false", place)
    return value


def _read_any(value: Any, _: Place, __: _Notes) -> Any:
    return _sanitised(value)


def _read_quantity(value: Any, place: Place, _: _Notes) -> Quantity:
    match value:
        case None:
            return Quantity.ZERO
        case NumberText():
            text = value.text
        case str():
            text = value
        case int() if value is not True and value is not False:
            text = str(value)
        case _:
            raise _mismatch(value, "a quantity", place)
    try:
        return Quantity.from_json(text)
    except ApiError as error:
        raise DecodeError(f"{_shown(place)}: {error}", place) from None


def _time_reader(wanted: type[Timestamp]) -> Reader:
    def read(value: Any, place: Place, _: _Notes) -> Timestamp:
        if type(value) is not str:
            raise _mismatch(value, "a time such as 2006-01-02T15:04:05Z", place)
        try:
            return wanted.parse(value)
        except ApiError as error:
            raise DecodeError(f"{_shown(place)}: {error}", place) from None

    return read


def _read_raw(value: Any, place: Place, notes: _Notes) -> Raw:
    text = notes.text_at(place)
    return Raw(msgspec.json.encode(_sanitised(value), enc_hook=_to_json) if text is None else text)


_SCALARS: dict[Any, Reader] = {
    str: _read_string,
    bool: _read_bool,
    Any: _read_any,
    Quantity: _read_quantity,
    Raw: _read_raw,
    Timestamp: _time_reader(Timestamp),
    MicroTimestamp: _time_reader(MicroTimestamp),
}


def _integer_reader(low: int, high: int) -> Reader:
    def read(value: Any, place: Place, _: _Notes) -> int:
        if value is None:
            return 0
        if type(value) is not int:
            raise _mismatch(value, "an integer", place)
        if not low <= value <= high:
            raise DecodeError(
                f"{_shown(place)}: {str(value)[:40]} is beyond {low} to {high}", place
            )
        return value

    return read


def _optional_reader(read_value: Reader) -> Reader:
    def read(value: Any, place: Place, notes: _Notes) -> Any:
        return None if value is None else read_value(value, place, notes)

    return read


def _list_reader(read_item: Reader) -> Reader:
    def read(value: Any, place: Place, notes: _Notes) -> tuple[Any, ...]:
        if value is None:
            return ()
        if type(value) is not list:
            raise _mismatch(value, "a list", place)
        return tuple(read_item(item, (*place, i), notes) for i, item in enumerate(value))

    return read


def _map_reader(read_item: Reader) -> Reader:
    def read(value: Any, place: Place, notes: _Notes) -> dict[str, Any]:
        if value is None:
            return {}
        if type(value) is not dict:
            raise _mismatch(value, "a map", place)
        return {
            _without_surrogates(key): read_item(item, (*place, Key(key)), notes)
            for key, item in value.items()
        }

    return read


def _struct_reader(struct: type[Struct]) -> Reader:
    readers = _field_readers(struct)
    keeps_extra = issubclass(struct, Open)
    make = unchecked(struct)

    def read(value: Any, place: Place, notes: _Notes) -> Struct:
        if value is None:
            return struct()
        if type(value) is not dict:
            raise _mismatch(value, f"a {struct.__name__} (a map)", place)
        found: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for key, item in value.items():
            if (declared := readers.get(key)) is not None:
                found[declared[0]] = declared[1](item, (*place, key), notes)
            elif keeps_extra:
                extra[key] = _sanitised(item)
            else:
                notes.unknown.append((*place, key))
        if extra:
            found["extra"] = extra
        made: Struct = make(**found)
        return made

    return read


def _field_readers(struct: type[Struct]) -> dict[str, tuple[str, Reader]]:
    hints = get_type_hints(struct, include_extras=True)
    return {
        info.encode_name: (info.name, _field_reader(info, hints[info.name]))
        for info in fields(struct)
        if info.encode_name != EXTRA
    }


def _field_reader(info: FieldInfo, annotation: Any) -> Reader:
    """Return the field's reader; null gives what absence gives, as in Go."""
    read_value = _reader(annotation)
    default, factory = info.default, info.default_factory

    def read(value: Any, place: Place, notes: _Notes) -> Any:
        if value is not None:
            return read_value(value, place, notes)
        return cast("Callable[[], Any]", factory)() if default is NODEFAULT else default

    return read


def _mismatch(value: Any, wanted: str, place: Place) -> DecodeError:
    return DecodeError(f"{_shown(place)}: expected {wanted}, got {_json_name(value)}", place)


def _shown(place: Place) -> str:
    return render(place) or "the object"


def _json_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "a map"


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")


def _without_surrogates(text: str) -> str:
    """Return the text with each lone surrogate replaced, as Go's decoder does."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _may_hold_half_characters(data: bytes) -> bool:
    return b"\\ud" in data or b"\\uD" in data


def _sanitised(value: Any) -> Any:
    """Return a JSON value whose strings can all be written out again."""
    match value:
        case str():
            return _without_surrogates(value)
        case list():
            return [_sanitised(item) for item in value]
        case dict():
            return {_without_surrogates(key): _sanitised(item) for key, item in value.items()}
        case _:
            return value
