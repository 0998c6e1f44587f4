"""Objects, lists and events of watches as bytes, in the form that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import yaml

from mooring.api import protobuf
from mooring.api.catalogue import from_hub
from mooring.api.codec import encode_json, to_tree
from mooring.api.kinds import Kind
from mooring.api.meta import ListMeta, ObjectMeta
from mooring.api.raw_fields import to_raw_tree
from mooring.api.timestamp import Timestamp
from mooring.apiserver.negotiation import JSON, PROTOBUF, YAML, Form, Shape
from mooring.apiserver.recent import Recent
from mooring.apiserver.registry import text_with_revision
from mooring.apiserver.status import bad_request
from mooring.apiserver.tables import Include, PartialObjectMetadata, table_of, table_of_one
from mooring.apiserver.watching import BOOKMARK, ERROR, INITIAL_EVENTS_END, Notice
from mooring.store.contract import Entry

PAINTED_MAX = 2048
PAINTED_BYTES_MAX = 16 * 2**20

TextOf = Callable[[Any], bytes | None]  # the JSON of an object, if it is known already

# An event by its revision, type, version and media type.
Painted = Recent[tuple[int, str, str, str], bytes]


def new_painted() -> Painted:
    """Return where watches share what was painted."""
    return Painted(PAINTED_MAX, PAINTED_BYTES_MAX)


class Painter:
    """Writes objects of one kind in one form."""

    def __init__(
        self,
        kind: Kind,
        form: Form,
        now: Timestamp,
        include: Include = Include.METADATA,
        painted: Painted | None = None,
        text_of: TextOf = lambda _: None,
    ) -> None:
        self._kind = kind
        self._form = form
        self._now = now
        self._include = include
        self._painted = painted if form.shape is Shape.OBJECT else None
        self._text_of = text_of if form.shape is Shape.OBJECT and form.media == JSON else None
        self._had_headers = False

    @property
    def content_type(self) -> str:
        """What the answer says it is."""
        return self._form.media

    # --- one object ---------------------------------------------------------------------------

    def one(self, value: Any) -> bytes:
        """Return an object, which is in its hub version."""
        text = self._text(value)
        return as_bytes(self._shown(value), self._form.media) if text is None else text + b"\n"

    def _text(self, value: Any) -> bytes | None:
        """Return an object as it is stored, if it is shown as that."""
        if self._text_of is None or value.api_version != self._kind.api_version:
            return None
        return self._text_of(value)

    def _shown(self, value: Any, *, headers: bool = True) -> Any:
        form = self._form
        if form.shape is Shape.TABLE:
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
        """Return a list of objects straight from the store, if they are shown as they are stored.

        Objects are stored as JSON of their hub version, so that nothing need be read.
        """
        form, kind = self._form, self._kind
        if form.media != JSON or form.shape is not Shape.OBJECT:
            return None
        head = len(f'{{"apiVersion":"{kind.api_version}","kind":"{kind.name}",')
        items = []
        for entry in entries:
            text = text_with_revision(entry, kind.api_version, kind.name)
            if text is None:
                return None
            items.append(b"{" + text[head:])  # The list says the kind, so that objects need not.
        return self._list(b",".join(items), metadata)

    def many(self, values: Sequence[Any], metadata: ListMeta) -> bytes:
        """Return a list of objects."""
        form = self._form
        if form.shape is Shape.TABLE:
            table = table_of(
                self._kind,
                values,
                self._now,
                metadata=metadata,
                version=form.version,
                include=self._include,
            )
            return as_bytes(table, form.media)
        shown = [self._shown(value) for value in values]
        if form.media == PROTOBUF:
            items = [_untyped(to_raw_tree(value)) for value in shown]
            head = self._list_head()
            return protobuf.encode({**head, "metadata": to_tree(metadata), "items": items})
        body = self._list(b",".join(self._item(value) for value in shown), metadata)
        return _yaml(body) if form.media == YAML else body

    def _list(self, items: bytes, metadata: ListMeta) -> bytes:
        start = msgspec.json.encode(self._list_head())[:-1]
        return b'%s,"metadata":%s,"items":[%s]}\n' % (start, encode_json(metadata), items)

    def _list_head(self) -> dict[str, str]:
        if self._form.is_partial:
            return {"kind": "PartialObjectMetadataList", "apiVersion": self._form.version}
        return {"kind": f"{self._kind.name}List", "apiVersion": self._kind.api_version}

    def _item(self, value: Any) -> bytes:
        """Return an object of a list: the list says the kind, so it need not."""
        body = encode_json(value)
        if self._form.is_partial:
            return body
        head = f'{{"apiVersion":"{value.api_version}","kind":"{value.kind}",'.encode()
        if body.startswith(head):
            return b"{" + body[len(head) :]
        return msgspec.json.encode(_untyped(msgspec.json.decode(body)))

    # --- watches ------------------------------------------------------------------------------

    def event(self, notice: Notice) -> bytes:
        """Return one event of a watch; what many watches are told of is painted once."""
        if self._painted is None or not notice.is_change:
            return self._event(notice)
        which = (notice.revision, notice.type, self._kind.api_version, self._form.media)
        painted = self._painted.get(which)
        if painted is None:
            painted = self._event(notice)
            self._painted.put(which, painted, len(painted))
        return painted

    def _event(self, notice: Notice) -> bytes:
        if notice.is_change and (text := self._text(notice.value)) is not None:
            return b'{"type":"%s","object":%s}\n' % (notice.type.encode(), text)
        shown: Any = notice.status
        if notice.type == BOOKMARK:
            shown = self._shown(self._bookmark(notice), headers=self._is_first())
        elif notice.type != ERROR:
            shown = self._shown(notice.value, headers=self._is_first())
        if self._form.media == PROTOBUF:
            return protobuf.encode_event(notice.type, protobuf.encode_object(shown))
        body = encode_json(shown)
        if notice.type == BOOKMARK and self._form.shape is Shape.OBJECT:
            body = body.replace(b":[]", b":null")  # Go's lists that were never made
        return b'{"type":"%s","object":%s}\n' % (notice.type.encode(), body)

    def _is_first(self) -> bool:
        is_first, self._had_headers = not self._had_headers, True
        return is_first

    def _bookmark(self, notice: Notice) -> Any:
        annotations = {INITIAL_EVENTS_END: "true"} if notice.is_initial_end else {}
        struct: Any = self._kind.struct
        return struct(
            api_version=self._kind.api_version,
            kind=self._kind.name,
            metadata=ObjectMeta(resource_version=str(notice.revision), annotations=annotations),
        )


def as_bytes(value: Any, media: str) -> bytes:
    """Return a struct in a media type."""
    if media == PROTOBUF:
        return protobuf.encode_object(value)
    body = encode_json(value)
    return _yaml(body) if media == YAML else body + b"\n"


def tree_bytes(tree: dict[str, Any], media: str) -> bytes:
    """Return a tree in a media type."""
    if media == PROTOBUF:
        return protobuf.encode(tree)
    body = msgspec.json.encode(tree)
    return _yaml(body) if media == YAML else body + b"\n"


def read_include(text: str) -> Include:
    """Return how much of its object a row is to hold, or raise."""
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
