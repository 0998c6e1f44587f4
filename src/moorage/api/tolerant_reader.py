"""Read a parsed JSON value as an object the way Kubernetes' decoder does, by declared types.

null is the zero value, unknown fields are named (Closed) or kept (Open), and a value that does not
fit is a DecodeError that gives its place. `codec` comes here when msgspec, which is faster and
stricter, has given up.
"""

from __future__ import annotations

import base64
import re
import types
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Raw, Struct
from msgspec.structs import FieldInfo, fields

from moorage.api.documents.scalars import NumberText
from moorage.api.errors import ApiError, DecodeError
from moorage.api.field_path import MapKey, Place, render
from moorage.api.quantity import Quantity
from moorage.api.structs import EXTRA, Open, unchecked
from moorage.api.timestamp import MicroTimestamp, Timestamp

S = TypeVar("S")

# reader: (value, its place, notes on the whole reading) -> object
Reader = Callable[[Any, Place, "_Notes"], Any]


def read_tolerantly(
    tree: Any, struct: type[S], text: bytes | None = None
) -> tuple[S, tuple[Place, ...]]:
    """Return the object that a value describes and the places of unknown fields.

    `text` is the JSON that the value was parsed from, if there is one.
    """
    notes = _Notes(text)
    value = _reader(cast("Any", struct))(tree, (), notes)
    return value, tuple(notes.unknown)


def to_json(value: Any) -> str | float | None:
    """Return the JSON form of a scalar that msgspec does not know."""
    if isinstance(value, Timestamp):
        return value.json
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, NumberText):  # in a field that holds any JSON
        return float(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


class _Notes:
    """Unknown fields found so far, and the text that is read, if there is one."""

    def __init__(self, text: bytes | None) -> None:
        self.unknown: list[Place] = []
        self._text = text
        self._members: dict[Place, Any] = {}  # by the place of a list or map in the text

    def text_at(self, place: Place) -> bytes | None:
        """Return the original text of a value: raw JSON is kept and measured as it was written."""
        if self._text is None:
            return None
        try:
            return bytes(self._raw(place))
        except (LookupError, UnicodeDecodeError, msgspec.DecodeError):
            return None  # A key of the path is not in the text: it was sanitised.

    def _raw(self, place: Place) -> Any:
        if not place:
            return self._text
        *above, last = place
        holder = tuple(above)
        if holder not in self._members:
            self._members[holder] = _MEMBERS_DECODER.decode(self._raw(holder))
        return self._members[holder][last.name if isinstance(last, MapKey) else last]


_MEMBERS_DECODER = msgspec.json.Decoder(list[Raw] | dict[str, Raw])


@lru_cache(maxsize=1024)
def _reader(annotation: Any) -> Reader:
    """Return the reader for values of a declared type."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        (bounds,) = annotation.__metadata__
        if bounds.pattern is not None:
            return _read_bytes
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


def _read_bytes(value: Any, place: Place, _: _Notes) -> str:
    if value is None:
        return ""
    try:
        return go_base64(value)
    except ApiError as error:
        raise DecodeError(f"{_shown(place)}: {error}", place) from None


def go_base64(value: Any) -> str:
    """Return bytes that JSON has in base64 or as a list of numbers as Go writes them."""
    if type(value) is list and all(type(n) is int and 0 <= n < 256 for n in value):
        return base64.b64encode(bytes(value)).decode()
    if type(value) is not str:
        raise ApiError(f"expected base64, got {json_name(value)}")
    data = value.encode("utf-8", "surrogatepass")
    if (position := _base64_fault(data)) is not None:
        raise ApiError(f"illegal base64 data at input byte {position}")
    return base64.b64encode(base64.b64decode(data)).decode()


_DIGITS = re.compile(rb"[A-Za-z0-9+/\r\n]*")
_LINE_BREAKS = re.compile(rb"[\r\n]*")


def _base64_fault(data: bytes) -> int | None:
    """Return where Go gives up reading base64; None if it reads all of it."""
    position = _DIGITS.match(data).end()  # type: ignore[union-attr]  # It always matches.
    over = len(data[:position].translate(None, b"\r\n")) % 4
    if position == len(data):
        return position - over if over else None
    if data[position : position + 1] != b"=" or over < 2:
        return position
    position = _LINE_BREAKS.match(data, position + 1).end()  # type: ignore[union-attr]
    if over == 2:
        if position == len(data):
            return position
        if data[position : position + 1] != b"=":
            return position - 1
        position = _LINE_BREAKS.match(data, position + 1).end()  # type: ignore[union-attr]
    return None if position == len(data) else position


def _read_bool(value: Any, place: Place, _: _Notes) -> bool:
    if value is None:
        return False
    if type(value) is not bool:
        raise _mismatch(value, "true or false", place)
    return value


def _read_any(value: Any, _: Place, __: _Notes) -> Any:
    return sanitised(value)


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
    return Raw(msgspec.json.encode(sanitised(value), enc_hook=to_json) if text is None else text)


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
            _without_surrogates(key): read_item(item, (*place, MapKey(key)), notes)
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
                extra[key] = sanitised(item)
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
    return DecodeError(f"{_shown(place)}: expected {wanted}, got {json_name(value)}", place)


def _shown(place: Place) -> str:
    return render(place) or "the object"


def json_name(value: Any) -> str:
    """Return what JSON calls the type of a value, with its article."""
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


def _without_surrogates(text: str) -> str:
    """Return the text with each lone surrogate replaced, as Go's decoder does."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def may_hold_half_characters(data: bytes) -> bool:
    """Return whether JSON text may have lone surrogates, which msgspec accepts."""
    # Most text has no backslash at all, which is the fastest to find.
    return b"\\" in data and (b"\\ud" in data or b"\\uD" in data)


def sanitised(value: Any) -> Any:
    """Return a JSON value whose strings can all be written out again."""
    match value:
        case str():
            return _without_surrogates(value)
        case list():
            return [sanitised(item) for item in value]
        case dict():
            return {_without_surrogates(key): sanitised(item) for key, item in value.items()}
        case _:
            return value
