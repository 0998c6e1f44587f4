"""Objects of plain JSON text, decoded straight into their structs.

Nearly all bodies of requests are plain: small, every field known and of its type, no key twice, no
form that a KEP writes differently. For them this gives what `object_reader` gives, at a fraction of
its cost. Whatever this reader cannot prove from the text it leaves to the careful one, which alone
makes errors, warnings and remarks.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NoReturn

import msgspec
from msgspec import Struct

from mooring.api.codec import decode_hook, encode_stored_json
from mooring.api.documents import has_plain_bounds
from mooring.api.errors import ApiError, DecodeError
from mooring.api.kep_forms import is_surely_shipped
from mooring.api.kinds import Kind
from mooring.api.object_reader import read_parts
from mooring.api.raw_json import holds_raw

PLAIN_BYTES_MAX = 8 * 1024  # so there are too few values and items to exceed a bound

_RAW_FIELDS = (b'"opaque"', b'"data"')  # which hold JSON of drivers, if the kind has any
_NOT_PLAIN = (b"\\u", b"\x7f")  # halves of characters; the name under which structs keep the rest


def read_plain_json(data: bytes, kind: Kind) -> Any | None:
    """Return the object of a kind that JSON text describes; None if it must be read carefully."""
    if len(data) > PLAIN_BYTES_MAX or any(sign in data for sign in _NOT_PLAIN):
        return None
    if not is_surely_shipped(data, kind.group, kind.name) or not has_plain_bounds(data):
        return None
    if holds_raw(kind.struct) and any(name in data for name in _RAW_FIELDS):
        return None
    try:
        value = _decoder(kind.struct).decode(data)
        if value.api_version != kind.api_version or value.kind != kind.name:
            return None
        if not _has_each_key_once(data, value):
            return None
        value, unknown = read_parts(value, kind.api_version, kind.name)
    except (ApiError, UnicodeDecodeError, RecursionError, msgspec.DecodeError):
        return None
    return None if unknown else value


def _has_each_key_once(data: bytes, value: Struct) -> bool:
    """Return whether no map in the text has a key twice; the text of our own clients is certain."""
    if encode_stored_json(value) == data:
        return True
    return _encode(_decode(data)).count(b":") == data.count(b":")


@lru_cache(maxsize=256)
def _decoder(struct: type[Any]) -> Any:
    return msgspec.json.Decoder(struct, dec_hook=decode_hook, float_hook=_refuse)


def _refuse(text: str) -> NoReturn:
    raise DecodeError(f"{text} may be more than a float can say")


_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
