"""Server-side apply that only adds: most applies of programs, such as a claim's name in a status.

Only the members that change are trees; all others are the live object's. Whatever is not certain
here is left to `verbs.patch`, with the same result.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from moorage.api.catalogue import from_hub
from moorage.api.codec import has_extra, to_tree
from moorage.api.documents import NumberText
from moorage.api.kinds import Kind
from moorage.api.plain_reader import PLAIN_BYTES_MAX, read_plain_json
from moorage.api.raw_json import holds_raw
from moorage.api.timestamp import Timestamp
from moorage.apiserver.patching.shapes import find_shape
from moorage.apiserver.patching.usual_applies import UsualApplies
from moorage.apiserver.verbs.resource_request import DecodedBody, ResourceRequest


def usual_apply(
    request: ResourceRequest, live: Any, tree: Any, *, size: int, now: Timestamp
) -> DecodedBody | None:
    """Return a live object with an applied one merged in; None if it must go the long way.

    `size` is that of both as JSON.
    """
    kind = request.kind
    if size > PLAIN_BYTES_MAX or find_shape(kind.api_version, kind.name) is None:
        return None
    if live.api_version != kind.api_version or holds_raw(kind.struct):
        return None
    here, metadata = from_hub(live, kind.api_version), live.metadata
    if getattr(here, "extra", None):
        return None
    names = member_names(kind.struct)

    def member(name: str) -> Any:
        part = getattr(here, names[name], None) if name in names else None
        return to_tree(part) if isinstance(part, Struct) and not has_extra(part) else None

    applied = usual_applies_of(kind, request.target.subresource).applied(
        metadata.managed_fields,
        {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
        member,
        tree,
        request.manager,
        now,
    )
    if applied is None:
        return None
    changed = {"apiVersion": kind.api_version, "kind": kind.name, **applied.members}
    value = read_plain_json(msgspec.json.encode(changed, enc_hook=as_written), kind)
    if value is None or not request.field_validation:
        return None
    kept = {names[name]: getattr(value, names[name]) for name in applied.members}
    owned = replace(metadata, managed_fields=applied.entries)
    return DecodedBody(replace(here, metadata=owned, **kept))


@lru_cache(maxsize=256)
def usual_applies_of(kind: Kind, subresource: str) -> UsualApplies:
    """Return what knows usual applies of a kind."""
    return UsualApplies(kind, subresource)


@lru_cache(maxsize=256)
def member_names(struct: type[Struct]) -> dict[str, str]:
    """Return the attributes of a struct by their names in JSON."""
    return {info.encode_name: info.name for info in fields(struct)}


def as_written(value: Any) -> Any:
    """Encode a number that is not an integer as the client wrote it."""
    if isinstance(value, NumberText):
        return msgspec.Raw(value.text.encode())
    raise NotImplementedError(type(value).__name__)
