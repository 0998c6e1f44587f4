"""The annotation of client-side apply: how kubectl's objects come to server-side apply."""

from __future__ import annotations

import json

import msgspec

from mooring.apiserver.patching.fieldset import FieldSet
from mooring.apiserver.patching.owning.versions import Typed
from mooring.apiserver.patching.structured import ShapeError, check, compare, fields_of
from mooring.apiserver.patching.values import Tree

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"  # the manager that this is done for

_ANNOTATIONS_SIZE_MAX = 256 * 1024


def allowed_fields(live: Typed, api_version: str) -> FieldSet | None:
    """Return the fields that kubectl applied itself and nobody changed since, if it says so."""
    text = _annotations(live.tree).get(ANNOTATION)
    if not isinstance(text, str) or not text:
        return None
    try:
        last = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(last, dict) or last.get("apiVersion") != api_version:
        return None
    try:
        check(live.shape, live.tree)
        check(live.shape, last)
    except ShapeError:
        return None
    change = compare(live.shape, last, live.tree)
    return fields_of(live.shape, last) - change.modified - change.added - change.removed


def with_last_applied(tree: Tree, applied: Tree) -> Tree:
    """Return the object with the annotation brought up to date, if it has one."""
    annotations = _annotations(tree)
    if not annotations.get(ANNOTATION):
        return tree
    annotations = {**annotations, ANNOTATION: _encoded(applied)}
    size = sum(_size(key) + _size(str(value)) for key, value in annotations.items())
    if size > _ANNOTATIONS_SIZE_MAX:
        del annotations[ANNOTATION]
    return {**tree, "metadata": {**tree["metadata"], "annotations": annotations}}


def _annotations(tree: Tree) -> dict[str, Tree]:
    metadata = tree.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _encoded(applied: Tree) -> str:
    """Return the applied object as kubectl would have kept it."""
    annotations = _annotations(applied)
    if ANNOTATION in annotations:
        kept = {key: value for key, value in annotations.items() if key != ANNOTATION}
        applied = {**applied, "metadata": {**applied["metadata"], "annotations": kept}}
    text = json.dumps(applied, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    for character, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(character, escape)
    return text + "\n"
