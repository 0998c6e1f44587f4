"""Patches in the forms of the KEPs, brought to the shipped forms as objects are.

A client that applies such a manifest again sends what it finds missing in the stored object, which
has the shipped form: the patch means what is there already, once it is rewritten, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from mooring.api.codec import decode_tree, parse_json
from mooring.api.documents import NumberText
from mooring.api.errors import ApiError
from mooring.api.gates import Gates
from mooring.api.kinds import Kind
from mooring.api.seedforms import Rewritten, rewrite
from mooring.apiserver.patching import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from mooring.apiserver.unknownfields import without_places


class Shipped(NamedTuple):
    """A patch, or an object that is applied, in shipped form, and what there is to say of it."""

    content: Any
    warnings: tuple[str, ...] = ()


def shipped_patch(body: bytes, media: str, kind: Kind, gates: Gates) -> Shipped:
    """Return the body of a patch; patches that name places and not objects stay as they are."""
    if media not in (MERGE_PATCH, STRATEGIC_MERGE_PATCH):
        return Shipped(body)
    try:
        patch = parse_json(body)
    except ApiError:
        return Shipped(body)  # Who applies it says what is wrong with it.
    if not isinstance(patch, dict):
        return Shipped(body)
    found = shipped_tree(patch, kind, gates, is_part=True)
    if found.content is patch:
        return Shipped(body)
    return Shipped(msgspec.json.encode(found.content, enc_hook=_as_written), found.warnings)


def _as_written(value: Any) -> Any:
    """Return a number that is no integer as the client wrote it."""
    if isinstance(value, NumberText):
        return msgspec.Raw(value.text.encode())
    raise NotImplementedError(type(value).__name__)


def shipped_tree(tree: Any, kind: Kind, gates: Gates, *, is_part: bool = False) -> Shipped:
    """Return a whole or partial object; the same one where there is nothing to rewrite."""
    if not isinstance(tree, dict):
        return Shipped(tree)
    typed = {**tree, "apiVersion": kind.api_version, "kind": kind.name}
    rewritten = rewrite(typed, gates=gates, is_part=is_part)
    shipped = _without_rejected(rewritten, kind)
    if shipped is typed or rewritten.errors:
        return Shipped(tree)
    said = {name: tree[name] for name in ("apiVersion", "kind") if name in tree}
    rest = {name: value for name, value in shipped.items() if name not in ("apiVersion", "kind")}
    return Shipped({**said, **rest}, tuple(str(notice) for notice in rewritten.warnings))


def _without_rejected(rewritten: Rewritten, kind: Kind) -> Any:
    """Return a rewritten object without the fields of which is told that no release has them."""
    told = {notice.segments for notice in rewritten.warnings}
    struct: type[Any] = kind.struct
    try:
        unknown = decode_tree(rewritten.tree, struct).unknown
    except ApiError:
        return rewritten.tree  # Who applies it says what is wrong with it.
    return without_places(rewritten.tree, (place for place in unknown if place in told))
