"""CustomResource: an object of a resource that users define.

Its metadata is a struct like that of every object. Everything else is JSON (`content`), described
by the schema of its definition. Each definition has its own subclass of CustomResource, so an
object and its kind lead to the definition: `type(value).definition`. A changed definition gets a
new subclass; objects of the old one are outdated.

# content: everything but apiVersion, kind and metadata: spec, status and whatever else
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moorage.api.errors import DecodeError
from moorage.api.meta import ObjectMeta
from moorage.api.structs import Closed, always

_HEAD = ("apiVersion", "kind", "metadata")


class Definition(Protocol):
    """The definition of a resource, as its objects need it."""

    def converted(self, value: CustomResource, api_version: str) -> CustomResource:
        """Return an object in another version."""
        ...

    def as_stored(self, value: CustomResource) -> CustomResource:
        """Return an object as the store is read: without unknown fields, with defaults."""
        ...


class CustomResource(Closed, frozen=True, gc=False):
    """An object of a custom resource."""

    api_version: str = always("")
    kind: str = always("")
    metadata: ObjectMeta = always(ObjectMeta())
    content: dict[str, Any] = msgspec.field(default_factory=dict)

    definition: ClassVar[Definition]

    def to_tree(self) -> dict[str, Any]:
        """Return the object as a tree whose content is the object's own."""
        head: dict[str, Any] = msgspec.json.decode(_encoded(_without_content(self)))
        return {**head, **self.content}


def is_custom(struct: type[Struct]) -> bool:
    """Return whether objects of a struct are custom resources."""
    return issubclass(struct, CustomResource)


def custom_struct(name: str, definition: Definition) -> type[CustomResource]:
    """Return the struct of the objects of a definition."""
    made: Any = msgspec.defstruct(
        name,
        [],
        bases=(CustomResource,),
        namespace={"definition": definition},
        frozen=True,
        gc=False,
    )
    struct: type[CustomResource] = made
    return struct


# --- JSON -----------------------------------------------------------------------------------------


class _Head(Struct, rename="camel"):
    """The part of an object that is a struct."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta | None = None


def encode_custom(value: CustomResource) -> bytes:
    """Return the JSON text of an object: apiVersion, kind, metadata, and its content."""
    head = _encoded(_without_content(value))
    if not value.content:
        return head
    return b"%s,%s" % (head[:-1], _encoded(value.content)[1:])


def decode_custom(data: bytes, struct: type[CustomResource], hook: Any) -> CustomResource:
    """Return the object of JSON text that the server wrote, or raise DecodeError."""
    try:
        head = _head_decoder(hook).decode(data)
        content = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"not a custom resource: {error}") from None
    for name in _HEAD:
        content.pop(name, None)
    metadata = head.metadata or ObjectMeta()
    value = struct(api_version=head.api_version, kind=head.kind, metadata=metadata, content=content)
    return struct.definition.as_stored(value)


def _without_content(value: CustomResource) -> CustomResource:
    return replace(value, content={}) if value.content else value


def _as_json(value: Any) -> Any:
    from moorage.api.tolerant_reader import to_json

    return to_json(value)


_encoded = msgspec.json.Encoder(enc_hook=_as_json).encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


@lru_cache(maxsize=4)
def _head_decoder(hook: Any) -> Any:
    return msgspec.json.Decoder(_Head, dec_hook=hook)
