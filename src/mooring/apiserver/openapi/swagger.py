"""/openapi/v2: in JSON all definitions, in protobuf a document that describes nothing.

kubectl, which asks for protobuf, does so only where v3 does not tell it enough: for kinds that
cannot be patched, such as access reviews, and in `explain --output plaintext-openapiv2`; up to 1.28
it also does before it creates anything. It takes a kind that the document does not have as valid,
and leaves the rest to the server; without a document it gives up. Other tools read the JSON: its
definitions are those of v3, in the older language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mooring.apiserver.accept import read_accept
from mooring.apiserver.documents import JSON, Document, content_hash

ROOT = "/openapi/v2"

_V3, _V2 = "#/components/schemas/", "#/definitions/"

Tree = dict[str, Any]

_TITLE, _VERSION = "Mooring", "1.37"
_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_PROTOBUF_NAMES = (_PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")

# Numbers of fields in gnostic's OpenAPI v2: Document 1 swagger, 2 info, 8 paths; Info 1, 2.
_LENGTH_DELIMITED = 2


def _field(number: int, content: bytes) -> bytes:
    assert number < 16  # one byte for the tag
    assert len(content) < 128  # and one for the length
    return bytes((number << 3 | _LENGTH_DELIMITED, len(content))) + content


def _protobuf() -> bytes:
    info = _field(1, _TITLE.encode()) + _field(2, _VERSION.encode())
    return _field(1, b"2.0") + _field(2, info) + _field(8, b"")


def swagger_document(
    accept: str = "", schemas: Callable[[], Mapping[str, Tree]] = dict
) -> Document | None:
    """Return the document in the first form that is accepted."""
    for clause in read_accept(accept):
        if clause.media_type in _PROTOBUF_NAMES:
            return _tagged(_protobuf(), _PROTOBUF)
        if clause.covers(JSON):
            info = {"title": _TITLE, "version": _VERSION}
            definitions = {name: _older(tree) for name, tree in sorted(schemas().items())}
            tree = {"swagger": "2.0", "info": info, "paths": {}, "definitions": definitions}
            return _tagged(msgspec.json.encode(tree), JSON)
    return None


def _older(schema: Any) -> Any:
    """Return a schema of v3 as v2 has it: other references, which have descriptions beside them."""
    if isinstance(schema, list):
        return [_older(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    match schema:
        case {"allOf": [{"$ref": str(reference)}], **rest}:
            schema = {**rest, "$ref": reference}
        case {"oneOf": list(), **rest}:
            schema = {"type": "string", **rest}
    return {
        name: value.replace(_V3, _V2) if name == "$ref" else _older(value)
        for name, value in schema.items()
        if name != "default"
    }


def _tagged(body: bytes, content_type: str) -> Document:
    return Document(body, content_type, f'"{content_hash(body)}"')
