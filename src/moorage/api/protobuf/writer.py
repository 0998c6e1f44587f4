"""From a tree to the bytes of a message, byte for byte as Kubernetes writes it.

Fields come by number, members of maps by key. A field that cannot be absent is written even where
the tree does not have it, as zero. A value that the type has no field for is omitted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from moorage.api.field_path import MapKey
from moorage.api.protobuf.values import VALUES, mismatch
from moorage.api.protobuf.wire import LENGTH, WireError, delimited, encode_varint, tag_of
from moorage.api.schema import Field, api_type

DEPTH_MAX = 100

# write: (value, depth left) -> bytes with tag and length
Write = Callable[[Any, int], bytes]
# payload: (value, depth left) -> bytes without tag, with length if the type has one
Payload = Callable[[Any, int], bytes]


@lru_cache(maxsize=1024)
def writer_of(name: str) -> MessageWriter:
    """Return the writer of a message by its full name."""
    return MessageWriter(name)


class MessageWriter:
    """Writes one message."""

    def __init__(self, name: str) -> None:
        fields = sorted(api_type(name).fields, key=lambda field: field.number)
        self._writes = tuple(
            (field.name, _write(field), _absent(field)) for field in fields if field.number
        )

    def write(self, tree: Any, depth: int = DEPTH_MAX) -> bytes:
        """Return the bytes of a message."""
        if not isinstance(tree, dict):
            raise mismatch(tree, "a map")
        if depth < 0:
            raise WireError("nested too deeply")
        parts: list[bytes] = []
        for name, write, absent in self._writes:
            value = tree.get(name) if name else tree
            if value is None:
                parts.append(absent())
                continue
            try:
                parts.append(write(value, depth - 1))
            except WireError as error:
                if name:
                    error.place.append(name)
                raise
            except UnicodeEncodeError:
                raise _half_character(name) from None
        return b"".join(parts)


def _half_character(name: str) -> WireError:
    error = WireError("the text has half a character")
    error.place.append(name)
    return error


def _write(field: Field) -> Write:
    payload, _ = _payload(field.type)
    tag = encode_varint(tag_of(field.number, _wire_type(field)))
    if field.is_map:
        return _map_write(field, tag)
    if field.is_list:
        return _list_write(field, tag)
    return lambda value, depth: tag + payload(value, depth)


def _absent(field: Field) -> Callable[[], bytes]:
    """Return the bytes of a field that the tree lacks; made when first needed."""
    if field.is_pointer or field.is_list or field.is_map:
        return bytes
    tag = encode_varint(tag_of(field.number, _wire_type(field)))
    _, zero = _payload(field.type)
    return lru_cache(maxsize=1)(lambda: tag + zero())


def _wire_type(field: Field) -> int:
    value = VALUES.get(field.type)
    return LENGTH if value is None or field.is_map else value.wire_type


@lru_cache(maxsize=1024)
def _payload(type_name: str) -> tuple[Payload, Callable[[], bytes]]:
    """Return how values of a type are written, and how its zero is."""
    value = VALUES.get(type_name)
    if value is None:
        return (
            lambda tree, depth: delimited(writer_of(type_name).write(tree, depth)),
            lambda: delimited(writer_of(type_name).write({})),
        )
    write, zero = value.write, value.zero_bytes
    if value.wire_type != LENGTH:
        return lambda item, _: write(item), lambda: zero
    return lambda item, _: delimited(write(item)), lambda: delimited(zero)


def _list_write(field: Field, tag: bytes) -> Write:
    payload, zero = _payload(field.type)

    def write(value: Any, depth: int) -> bytes:
        if not isinstance(value, list):
            raise mismatch(value, "a list")
        parts: list[bytes] = []
        try:
            for item in value:
                encoded = zero() if item is None else payload(item, depth)
                parts.append(tag + encoded)
        except WireError as error:
            error.place.append(len(parts))
            raise
        return b"".join(parts)

    return write


def _map_write(field: Field, tag: bytes) -> Write:
    payload, zero = _payload(field.type)
    value_type = VALUES.get(field.type)
    value_tag = bytes([tag_of(2, LENGTH if value_type is None else value_type.wire_type)])

    def write(value: Any, depth: int) -> bytes:
        if not isinstance(value, dict):
            raise mismatch(value, "a map")
        parts: list[bytes] = []
        key = ""
        try:
            for key, encoded_key in _sorted_keys(value):
                item = value[key]
                encoded = value_tag + (zero() if item is None else payload(item, depth))
                parts.append(tag + delimited(b"\x0a" + delimited(encoded_key) + encoded))
        except WireError as error:
            error.place.append(MapKey(key))
            raise
        return b"".join(parts)

    return write


def _sorted_keys(members: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Return the keys of a map by their bytes, which is how Go sorts them."""
    return sorted(((key, key.encode()) for key in members), key=lambda pair: pair[1])
