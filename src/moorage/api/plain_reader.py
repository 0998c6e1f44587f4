"""Objects of plain JSON text, decoded straight into their structs.

Nearly all bodies of requests are plain: small, every field known and of its type, no key twice, no
form that a KEP writes differently. So are the items of dumps. For them this gives what
`object_reader` gives, at a fraction of its cost. Whatever this reader cannot prove from the text it
leaves to the careful one, which alone makes errors, warnings and remarks.

That no key comes twice is certain if the object, written again, is the same text: in the order of
our own clients, or sorted as kubectl prints it. Else keys are counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn

import msgspec

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_hook, encode_in_order, encode_stored_json
from moorage.api.documents import Tree, has_each_key_once, has_plain_bounds
from moorage.api.documents.json_scan import has_surely_few_values
from moorage.api.errors import ApiError, DecodeError
from moorage.api.gates import Gates
from moorage.api.go_types import ITEMS_MAX
from moorage.api.kep_forms import is_shipped_object, is_surely_shipped
from moorage.api.kinds import Kind
from moorage.api.object_reader import ReadObject, read_parts, read_tree
from moorage.api.raw_json import holds_raw

PLAIN_BYTES_MAX = 8 * 1024  # so there are too few values and items to exceed a bound

_RAW_FIELDS = (b'"opaque"', b'"data"')  # which hold JSON of drivers, if the kind has any
_ESCAPES = ((rb"\u003c", b"<"), (rb"\u003e", b">"), (rb"\u0026", b"&"))  # what Go escapes
_TYPE = re.compile(rb'\{"apiVersion":"([^"\\]*+)","kind":"([^"\\]*+)"').match


def read_plain_json(data: bytes, kind: Kind, *, is_from_struct: bool = False) -> Any | None:
    """Return the object of a kind that JSON text describes; None if it must be read carefully.

    No key comes twice in text that this process has encoded from a struct.
    """
    if len(data) > PLAIN_BYTES_MAX or _is_odd(data):
        return None
    if not is_surely_shipped(data, kind.group, kind.name) or not has_plain_bounds(data):
        return None
    return _read(data, kind, None if is_from_struct else encode_stored_json)


class PlainItems:
    """Reads the items of dumps, as an `ItemReader` does."""

    def __init__(self, gates: Gates, *, extensions: bool) -> None:
        self._gates, self._extensions = gates, extensions

    def read_json(self, text: bytes) -> ReadObject | None:
        """Return the object that JSON text without spaces describes; None in doubt.

        The caller has made sure that no number is too long, and looks at the depth.
        """
        head = _TYPE(text)
        kind = head and self._kind(head[1].decode(), head[2].decode())
        if not kind:
            return None
        if b"\\" in text and b"\\\\" not in text:
            for escape, character in _ESCAPES:
                text = text.replace(escape, character)
        if not has_surely_few_values(text, ITEMS_MAX) or _is_odd(text):
            return None
        value = _read(text, kind, encode_in_order)
        if value is None:
            return None
        if not is_surely_shipped(text, kind.group, kind.name) and not is_shipped_object(value):
            return None
        return ReadObject(kind, value)

    def read_tree(self, tree: Tree) -> ReadObject | None:
        """Return the object that a tree of few values and printable ASCII describes, if it does."""
        try:
            return read_tree(tree, gates=self._gates, extensions=self._extensions, is_plain=True)
        except ApiError:
            return None

    def _kind(self, api_version: str, name: str) -> Kind | None:
        try:
            return CATALOGUE.find(api_version, name, extensions=self._extensions)
        except DecodeError:
            return None


def _is_odd(data: bytes) -> bool:
    """Return whether text may have half a character, or the name of what structs do not declare."""
    return (b"\\" in data and b"\\u" in data) or b"\x7f" in data


def _read(data: bytes, kind: Kind, encode: Callable[[Any], bytes] | None) -> Any | None:
    """Return the object of text that has few values, if there is nothing to remark on.

    `encode` writes an object as the text is likely written; None: it has each key once.
    """
    if holds_raw(kind.struct) and any(name in data for name in _RAW_FIELDS):
        return None
    try:
        value = _decoder(kind.struct).decode(data)
        if value.api_version != kind.api_version or value.kind != kind.name:
            return None
        is_proven = encode is None or encode(value) == data
        if not is_proven and not has_each_key_once(data, _decode(data)):
            return None
        value, unknown = read_parts(value, kind.api_version, kind.name, is_exact=True)
    except (ApiError, UnicodeDecodeError, RecursionError, msgspec.DecodeError):
        return None
    return None if unknown else value


@lru_cache(maxsize=256)
def _decoder(struct: type[Any]) -> Any:
    return msgspec.json.Decoder(struct, dec_hook=decode_hook, float_hook=_refuse)


def _refuse(text: str) -> NoReturn:
    raise DecodeError(f"{text} may be more than a float can say")


_decode = msgspec.json.Decoder().decode
