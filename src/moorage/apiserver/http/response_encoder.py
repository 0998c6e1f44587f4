"""ResponseEncoder: objects, lists and watch events as bytes, in the negotiated representation."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import yaml

from moorage.api import protobuf
from moorage.api.catalogue import from_hub, to_hub
from moorage.api.codec import encode_json, to_tree
from moorage.api.custom_resource import CustomResource, is_custom
from moorage.api.errors import ProtobufError
from moorage.api.kinds import Kind
from moorage.api.meta import ListMeta, ObjectMeta, object_text
from moorage.api.raw_json import to_raw_tree
from moorage.api.timestamp import Timestamp
from moorage.apiserver.http.messages import JSON, NO_CACHE, Headers, Request, Response
from moorage.apiserver.http.negotiation import (
    PROTOBUF,
    YAML,
    ObjectForm,
    Representation,
    error_representation,
)
from moorage.apiserver.http.status import StatusError, bad_request
from moorage.apiserver.storage.registry import text_with_revision
from moorage.apiserver.tables import Include, PartialObjectMetadata, table_of, table_of_one
from moorage.apiserver.verbs.watch import BOOKMARK, ERROR, INITIAL_EVENTS_END, WatchEvent
from moorage.kit.bulkhead import FAULTS
from moorage.kit.lru import LRU
from moorage.store.contract import Entry

EVENTS_MAX = 2048
EVENTS_BYTES_MAX = 16 * 2**20
WARNING_LENGTH_MAX = 256
WARNINGS_LENGTH_MAX = 4096

TextOf = Callable[[Any], bytes | None]  # the JSON of an object, if it is cached

# Events by revision, type, API version and media type.
EncodedEvents = LRU[tuple[int, str, str, str], bytes]


def new_encoded_events() -> EncodedEvents:
    """Return the cache of encoded events that watches share."""
    return EncodedEvents(EVENTS_MAX, EVENTS_BYTES_MAX)


class ResponseEncoder:
    """Encodes objects of one kind in one representation."""

    def __init__(
        self,
        kind: Kind,
        form: Representation,
        now: Timestamp,
        include: Include = Include.METADATA,
        encoded: EncodedEvents | None = None,
        text_of: TextOf = lambda _: None,
    ) -> None:
        self._kind = kind
        self._form = form
        self._now = now
        self._include = include
        self._encoded = encoded if form.shape is ObjectForm.OBJECT else None
        self._text_of = text_of if form.shape is ObjectForm.OBJECT and form.media == JSON else None
        self._had_headers = False

    # --- one object ---------------------------------------------------------------------------

    def one(self, value: Any) -> bytes:
        """Return the encoding of an object in its hub version."""
        text = self.known(value)
        return self.made(value) if text is None else text

    def known(self, value: Any) -> bytes | None:
        """Return the encoding of an object if it is its stored text, which is cached."""
        text = self._text(value)
        return None if text is None else text + b"\n"

    def made(self, value: Any) -> bytes:
        """Return the encoding of an object without looking at a cache."""
        return as_bytes(self._shown(value), self._form.media)

    def _text(self, value: Any) -> bytes | None:
        """Return the stored text of an object, if the representation is the stored one."""
        if self._text_of is None or value.api_version != self._kind.api_version:
            return None
        return self._text_of(value)

    def _shown(self, value: Any, *, headers: bool = True) -> Any:
        form = self._form
        if form.shape is ObjectForm.TABLE:
            return table_of_one(
                self._kind,
                value,
                self._now,
                version=form.version,
                include=self._include,
                headers=headers,
            )
        if form.is_partial:
            return PartialObjectMetadata(api_version=form.version, metadata=value.metadata)
        return from_hub(value, self._kind.api_version)

    # --- lists --------------------------------------------------------------------------------

    def stored(self, entries: Sequence[Entry], metadata: ListMeta) -> bytes | None:
        """Return a list straight from stored entries; None if they must be decoded.

        Objects are stored as JSON of their hub version, so such lists need no decoding.
        """
        form, kind = self._form, self._kind
        if form.media != JSON or form.shape is not ObjectForm.OBJECT or is_custom(kind.struct):
            return None  # Custom resources are read with the current schema.
        head = len(f'{{"apiVersion":"{kind.api_version}","kind":"{kind.name}",')
        items = []
        for entry in entries:
            text = text_with_revision(entry, kind.api_version, kind.name)
            if text is None:
                return None
            items.append(b"{" + text[head:])  # The list names the kind, so its items need not.
        return self._list(b",".join(items), metadata)

    def many(self, values: Sequence[Any], metadata: ListMeta) -> bytes:
        """Return the encoding of a list."""
        form = self._form
        if form.shape is ObjectForm.TABLE:
            table = table_of(
                self._kind,
                values,
                self._now,
                metadata=metadata,
                version=form.version,
                include=self._include,
            )
            return as_bytes(table, form.media)
        if form.media == PROTOBUF:
            return self._protobuf_list(values, metadata)
        items = []
        for value in values:
            with FAULTS.guard("encoding", partial(object_text, value)):
                items.append(self._item(self._shown(value)))
        body = self._list(b",".join(items), metadata)
        return _yaml(body) if form.media == YAML else body

    def _protobuf_list(self, values: Sequence[Any], metadata: ListMeta) -> bytes:
        """Return a list in protobuf, without objects that do not fit their messages."""
        head = {**self._list_head(), "metadata": to_tree(metadata)}
        items = [_untyped(to_raw_tree(self._shown(value))) for value in values]
        try:
            return protobuf.encode({**head, "items": items})
        except ProtobufError:
            fitting = []
            for value, item in zip(values, items, strict=True):
                with FAULTS.guard("encoding", partial(object_text, value)):
                    protobuf.encode({**head, "items": [item]})
                    fitting.append(item)
            return protobuf.encode({**head, "items": fitting})

    def _list(self, items: bytes, metadata: ListMeta) -> bytes:
        start = msgspec.json.encode(self._list_head())[:-1]
        head = encode_json(metadata)
        if is_custom(self._kind.struct) and not metadata.continue_ and not self._form.is_partial:
            head = b'{"continue":"",%s' % head[1:]  # as Kubernetes writes a list without a type
        return b'%s,"metadata":%s,"items":[%s]}\n' % (start, head, items)

    def _list_head(self) -> dict[str, str]:
        if self._form.is_partial:
            return {"kind": "PartialObjectMetadataList", "apiVersion": self._form.version}
        return {"kind": self._kind.list_kind, "apiVersion": self._kind.api_version}

    def _item(self, value: Any) -> bytes:
        """Return an item of a list, without the kind that the list names."""
        body = encode_json(value)
        if self._form.is_partial or isinstance(value, CustomResource):
            return body  # Items of custom resources name their kind, as in Kubernetes.
        head = f'{{"apiVersion":"{value.api_version}","kind":"{value.kind}",'.encode()
        if body.startswith(head):
            return b"{" + body[len(head) :]
        return msgspec.json.encode(_untyped(msgspec.json.decode(body)))

    # --- watches ------------------------------------------------------------------------------

    def event(self, event: WatchEvent) -> bytes:
        """Return the encoding of an event; one that many watches send is encoded once.

        It is empty for an object that cannot be encoded: the watch goes on without it.
        """
        encoded = self.known_event(event)
        if encoded is None:
            encoded = self.made_event(event)
            self.note_event(event, encoded)
        return encoded

    def known_event(self, event: WatchEvent) -> bytes | None:
        """Return the encoding of an event if another watch sent it, or its object is cached."""
        if self._encoded is None or not event.is_change:
            return None
        encoded = self._encoded.get(self._which(event))
        if encoded is None and (text := self._text(event.value)) is not None:
            encoded = b'{"type":"%s","object":%s}\n' % (event.type.encode(), text)
            self.note_event(event, encoded)
        return encoded

    def note_event(self, event: WatchEvent, encoded: bytes) -> None:
        """Cache the encoding of an event that other watches may send."""
        if self._encoded is not None and event.is_change:
            self._encoded.put(self._which(event), encoded, len(encoded))

    def _which(self, event: WatchEvent) -> tuple[int, str, str, str]:
        return (event.revision, event.type, self._kind.api_version, self._form.media)

    def made_event(self, event: WatchEvent) -> bytes:
        """Return the encoding of an event without looking at a cache; empty if there is none."""
        try:
            return self._event(event)
        except Exception as error:
            FAULTS.note("encoding", lambda: object_text(event.value), error, "is left out")
            return b""

    def _event(self, event: WatchEvent) -> bytes:
        shown: Any = event.status
        if event.type == BOOKMARK:
            bookmark = self._bookmark(event)
            if self._form.shape is ObjectForm.TABLE:
                bookmark = to_hub(bookmark, self._kind)  # as tables are made of stored objects
            shown = self._shown(bookmark, headers=self._is_first())
        elif event.type != ERROR:
            shown = self._shown(event.value, headers=self._is_first())
        if self._form.media == PROTOBUF:
            return protobuf.encode_event(event.type, protobuf.encode_object(shown))
        body = encode_json(shown)
        if event.type == BOOKMARK and self._form.shape is ObjectForm.OBJECT:
            body = body.replace(b":[]", b":null")  # Go's nil slices
        return b'{"type":"%s","object":%s}\n' % (event.type.encode(), body)

    def _is_first(self) -> bool:
        is_first, self._had_headers = not self._had_headers, True
        return is_first

    def _bookmark(self, event: WatchEvent) -> Any:
        annotations = {INITIAL_EVENTS_END: "true"} if event.is_initial_end else {}
        struct: Any = self._kind.struct
        return struct(
            api_version=self._kind.api_version,
            kind=self._kind.name,
            metadata=ObjectMeta(resource_version=str(event.revision), annotations=annotations),
        )


def as_bytes(value: Any, media: str) -> bytes:
    """Return the encoding of a struct."""
    if media == PROTOBUF:
        return protobuf.encode_object(value)
    body = encode_json(value)
    return _yaml(body) if media == YAML else body + b"\n"


def tree_bytes(tree: dict[str, Any], media: str) -> bytes:
    """Return the encoding of a tree."""
    if media == PROTOBUF:
        return protobuf.encode(tree)
    body = msgspec.json.encode(tree)
    return _yaml(body) if media == YAML else body + b"\n"


def read_include(text: str) -> Include:
    """Return how much of its object a table row holds, or raise 400."""
    try:
        return Include(text) if text else Include.METADATA
    except ValueError:
        raise bad_request(f'unrecognized includeObject value: "{text[:32]}"') from None


def _untyped(tree: dict[str, Any]) -> dict[str, Any]:
    tree.pop("apiVersion", None)
    tree.pop("kind", None)
    return tree


def _yaml(body: bytes) -> bytes:
    tree = msgspec.json.decode(body)
    text: str = yaml.dump(tree, sort_keys=True, allow_unicode=True, Dumper=yaml.CSafeDumper)
    return text.encode()


def error_response(error: StatusError, request: Request) -> Response:
    """Return the response for an error, in a representation that the client accepts."""
    status = error.status
    is_406 = status.reason == "NotAcceptable"
    form = Representation() if is_406 else error_representation(request.accept)
    headers: Headers = NO_CACHE
    if status.details is not None and status.details.retry_after_seconds:
        headers += (("Retry-After", str(status.details.retry_after_seconds)),)
    headers += warning_headers(error.warnings)
    return Response(as_bytes(status, form.media), status.code, form.media, headers)


def warning_headers(warnings: tuple[str, ...]) -> Headers:
    """Return Warning headers, each warning once; many long ones are cut short, as in Kubernetes."""
    texts = ["".join(map(_plain, text)) for text in dict.fromkeys(warnings) if text]
    if sum(map(len, texts)) > WARNINGS_LENGTH_MAX:
        texts = [text[:WARNING_LENGTH_MAX] for text in texts]
    kept: list[tuple[str, str]] = []
    length = 0
    for text in texts:
        if length >= WARNINGS_LENGTH_MAX:
            break
        length += len(text)
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        # Headers are bytes, and these are UTF-8.
        kept.append(("Warning", f'299 - "{quoted}"'.encode(errors="replace").decode("latin-1")))
    return tuple(kept)


def _plain(character: str) -> str:
    """Return a character, or "?" for one that controls terminals."""
    return "?" if unicodedata.category(character) == "Cc" else character
