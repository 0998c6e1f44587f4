"""The values that fields hold: how each is read from the wire, and written to it.

Most are plain: text, booleans, integers, bytes (base64 in JSON). Six are messages on the wire and
something simpler in JSON:

quantity       {1: text}                               text
time           {1: seconds, 2: nanos}                  text, whole seconds; nothing is no time
microtime      the same                                text, microseconds
int-or-string  {1: which, 2: integer, 3: text}         integer or text
json           {1: bytes}                              the JSON that the bytes are
strings        {1: texts}                              list of texts
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from moorage.api.codec import parse_json
from moorage.api.documents.scalars import NumberText
from moorage.api.errors import ApiError
from moorage.api.protobuf.wire import (
    LENGTH,
    VARINT,
    WireError,
    WireFields,
    check_unknown,
    delimited,
    encode_varint,
    pass_over,
    signed,
    span,
    tag_of,
    varint,
)
from moorage.api.timestamp import MicroTimestamp, Timestamp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_STRING_TYPE = 1  # of an int-or-string; an integer is 0


class Value(NamedTuple):
    """One type of value that is no message with fields of its own.

    read        (data, start, stop) -> value; a varint is its first number. None is no value.
    write       value -> bytes, lengths of length-delimited values not included
    zero        what JSON shows where Go has the zero value
    zero_bytes  what Go writes for it
    """

    wire_type: int
    read: Callable[[bytes, int, int], Any]
    write: Callable[[Any], bytes]
    zero: Any
    zero_bytes: bytes


def mismatch(value: Any, wanted: str) -> WireError:
    """Return the error of a tree that holds something else than it should."""
    return WireError(f"expected {wanted}, got {type(value).__name__}")


# --- plain values -------------------------------------------------------------------------


def _read_string(data: bytes, start: int, stop: int) -> str:
    return data[start:stop].decode()


def _write_string(value: Any) -> bytes:
    if not isinstance(value, str):
        raise mismatch(value, "a string")
    return value.encode()


def _read_bool(_: bytes, value: int, __: int) -> bool:
    return value != 0


def _write_bool(value: Any) -> bytes:
    if not isinstance(value, bool):
        raise mismatch(value, "true or false")
    return b"\x01" if value else b"\x00"


def _read_int32(_: bytes, value: int, __: int) -> int:
    return value if value < 2**31 else signed(value, 32)


def _read_int64(_: bytes, value: int, __: int) -> int:
    return value if value < 2**63 else signed(value, 64)


def _integer_writer(bits: int) -> Callable[[Any], bytes]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)

    def write(value: Any) -> bytes:
        if type(value) is not int:
            raise mismatch(value, "an integer")
        if not low <= value < high:
            raise WireError(f"{str(value)[:40]} does not fit in {bits} bits")
        return encode_varint(value)

    return write


def _read_bytes(data: bytes, start: int, stop: int) -> str:
    return b2a_base64(data[start:stop], newline=False).decode("ascii")


def _write_bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise mismatch(value, "base64 text")
    try:
        return a2b_base64(value, strict_mode=True)
    except (Base64Error, ValueError):
        raise WireError("not valid base64") from None


# --- values that are messages on the wire -------------------------------------------------

_TEXT_TAG = tag_of(1, LENGTH)
_TEXT_SHAPE = WireFields(text=_TEXT_TAG)
_TIME_SHAPE = WireFields(seconds=tag_of(1, VARINT), nanos=tag_of(2, VARINT))
_CHOICE_SHAPE = WireFields(
    which=tag_of(1, VARINT), number=tag_of(2, VARINT), text=tag_of(3, LENGTH)
)

_NONE = (0, 0)


def _text_span(data: bytes, start: int, stop: int) -> tuple[int, int]:
    """Return where the text of a message with one text is."""
    size = stop - start - 2
    if 0 <= size < 0x80 and data[start] == _TEXT_TAG and data[start + 1] == size:
        return start + 2, stop
    return _TEXT_SHAPE.read(data, start, stop).get("text", _NONE)


def _read_quantity(data: bytes, start: int, stop: int) -> str:
    if start == stop:
        return "0"
    low, high = _text_span(data, start, stop)
    if low == high:
        raise WireError("a quantity without text")
    return data[low:high].decode()


def _write_quantity(value: Any) -> bytes:
    text = str(value) if type(value) is int else value
    if isinstance(text, NumberText):
        text = text.text
    return b"\x0a" + delimited(_write_string(text))


def _time(wanted: type[Timestamp], unit: int) -> Value:
    """Return a type of times; the text has a resolution of `unit` nanoseconds."""
    return Value(LENGTH, _time_reader(wanted, unit), _time_writer(wanted, unit), None, b"")


def _time_reader(wanted: type[Timestamp], unit: int) -> Callable[[bytes, int, int], str | None]:

    def read(data: bytes, start: int, stop: int) -> str | None:
        if start == stop:
            return None
        found = _TIME_SHAPE.read(data, start, stop)
        seconds = signed(found.get("seconds", _NONE)[0], 64)
        nanos = signed(found.get("nanos", _NONE)[0], 32) // unit * unit
        try:
            instant = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
        except OverflowError:
            raise WireError(f"{seconds} seconds after 1970 is beyond the calendar") from None
        time = wanted(instant)
        return None if time.is_zero else str(time)

    return read


def _time_writer(wanted: type[Timestamp], unit: int) -> Callable[[Any], bytes]:
    def write(value: Any) -> bytes:
        try:
            time = wanted.parse(_as_text(value))
        except ApiError as error:
            raise WireError(str(error)) from None
        if time.is_zero:
            return b""
        seconds, rest = divmod(time.instant - _EPOCH, _SECOND)
        nanos = rest.microseconds * 1000 // unit * unit
        return b"\x08" + encode_varint(seconds) + b"\x10" + encode_varint(nanos)

    return write


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise mismatch(value, "a time such as 2006-01-02T15:04:05Z")
    return value


def _read_choice(data: bytes, start: int, stop: int) -> int | str:
    found = _CHOICE_SHAPE.read(data, start, stop)
    which = found.get("which", _NONE)[0]
    if which == _STRING_TYPE:
        low, high = found.get("text", _NONE)
        return data[low:high].decode()
    if which:
        raise WireError(f"neither an integer nor a string: type {which}")
    return signed(found.get("number", _NONE)[0], 32)


def _write_choice(value: Any) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01\x10\x00\x1a" + delimited(value.encode())
    return b"\x08\x00\x10" + _write_int32(value) + b"\x1a\x00"


def _read_json(data: bytes, start: int, stop: int) -> Raw | None:
    """Return the very text, for it is kept and measured as it was written."""
    low, high = _text_span(data, start, stop)
    if low == high:
        return None
    text = data[low:high]
    try:
        parse_json(text)
        text.decode()
    except ApiError as error:
        raise WireError(str(error)) from None
    return Raw(text)


def _write_json(value: Any) -> bytes:
    try:
        text = msgspec.json.encode(value, enc_hook=_number_text)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise WireError(f"not a JSON value: {error}") from None
    return b"\x0a" + delimited(text)


def _number_text(value: Any) -> Raw:
    """Return the text of a number that JSON had, as it was written."""
    if isinstance(value, NumberText):
        return Raw(value.text.encode())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _read_strings(data: bytes, start: int, stop: int) -> list[str]:
    texts: list[str] = []
    while start < stop:
        # One at a time: a shape keeps only the last.
        low, high, start = _next_text(data, start, stop)
        if low >= 0:
            texts.append(data[low:high].decode())
    return texts


def _next_text(data: bytes, at: int, stop: int) -> tuple[int, int, int]:
    tag, after = varint(data, at, stop)
    if tag == tag_of(1, LENGTH):
        low, high = span(data, after, stop)
        return low, high, high
    check_unknown(tag, frozenset({1}))
    return -1, -1, pass_over(tag, data, after, stop)


def _write_strings(value: Any) -> bytes:
    if not isinstance(value, list):
        raise mismatch(value, "a list")
    return b"".join(b"\x0a" + delimited(_write_string(text)) for text in value)


def _read_schema(_: bytes, __: int, ___: int) -> None:
    raise WireError("schemas of custom resources are read as JSON only")


def _write_schema(_: Any) -> bytes:
    raise WireError("schemas of custom resources are written as JSON only")


_write_int32 = _integer_writer(32)

VALUES: dict[str, Value] = {
    "string": Value(LENGTH, _read_string, _write_string, "", b""),
    "bool": Value(VARINT, _read_bool, _write_bool, False, b"\x00"),
    "int32": Value(VARINT, _read_int32, _write_int32, 0, b"\x00"),
    "int64": Value(VARINT, _read_int64, _integer_writer(64), 0, b"\x00"),
    "bytes": Value(LENGTH, _read_bytes, _write_bytes, "", b""),
    "quantity": Value(LENGTH, _read_quantity, _write_quantity, "0", b"\x0a\x010"),
    "time": Value(
        LENGTH, _time_reader(Timestamp, 10**9), _time_writer(Timestamp, 10**9), None, b""
    ),
    "microtime": Value(
        LENGTH, _time_reader(MicroTimestamp, 1000), _time_writer(MicroTimestamp, 1000), None, b""
    ),
    "int-or-string": Value(LENGTH, _read_choice, _write_choice, 0, b"\x08\x00\x10\x00\x1a\x00"),
    "json": Value(LENGTH, _read_json, _write_json, None, b""),
    "json-schema": Value(LENGTH, _read_schema, _write_schema, None, b""),
    "strings": Value(LENGTH, _read_strings, _write_strings, [], b""),
}
