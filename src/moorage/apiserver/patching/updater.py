"""Updater: what apply and update do to field owners (structured merge, without metadata rules).

Steps of an apply:

1. Merge the applied object into the live one; nothing is removed yet.
2. The manager owns exactly the applied fields.
3. Prune: remove fields that it applied last time and not now, unless another manager owns them.
4. A change of what others own is a conflict, or with force they lose it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from moorage.api.catalogue import CATALOGUE, from_hub, to_hub
from moorage.api.codec import decode_tree, to_tree
from moorage.api.kinds import Kind
from moorage.apiserver.patching import field_set, shapes
from moorage.apiserver.patching.errors import FIELD_MANAGER_CONFLICT, PatchCause, PatchError
from moorage.apiserver.patching.field_set import Element, FieldSet, Path
from moorage.apiserver.patching.json_values import Tree
from moorage.apiserver.patching.managed_fields import FieldOwner, ManagedFields, VersionedSet
from moorage.apiserver.patching.shapes import Relation, Shape, find_shape, shape_in_version
from moorage.apiserver.patching.structured_compare import (
    Comparison,
    ShapeError,
    check,
    compare,
    fields_of,
)
from moorage.apiserver.patching.structured_merge import merge, remove
from moorage.validation.custom_resources.definition import definition_of


class TypedObject(NamedTuple):
    """An object and its shape."""

    shape: Shape
    tree: Tree

    def with_tree(self, tree: Tree) -> TypedObject:
        """Return another object of the same shape."""
        return TypedObject(self.shape, tree)


def in_version(value: TypedObject, api_version: str) -> TypedObject | None:
    """Return the object in another version, or None if its kind has no such version."""
    tree = value.tree
    if not isinstance(tree, dict) or tree.get("apiVersion") == api_version:
        return value
    if value.shape.kind is not None:
        return _custom_in_version(value, value.shape.kind, api_version)
    name = str(tree.get("kind"))
    shape = find_shape(api_version, name)
    if shape is None or (api_version, name) not in CATALOGUE:
        return None
    here = CATALOGUE.find(str(tree.get("apiVersion")), name)
    # Convert even if both versions are alike: the result has the fields that a server always
    # writes, which matters for what counts as present.
    converted = from_hub(to_hub(decode_tree(tree, here.struct).value, here), api_version)
    return TypedObject(shape, to_tree(converted))


def _custom_in_version(value: TypedObject, kind: Kind, api_version: str) -> TypedObject | None:
    shape = shape_in_version(kind, api_version)
    if shape is None:
        return None
    content = definition_of(kind).pruned_content(value.tree, api_version)
    return TypedObject(shape, {**content, "apiVersion": api_version})


# --- conflicts ------------------------------------------------------------------------------------


class ManagerConflict(Exception):  # noqa: N818  # it is one
    """Fields that others own and an apply would change, by owner."""

    def __init__(self, fields: Mapping[FieldOwner, FieldSet]) -> None:
        super().__init__("conflict")
        self.fields = dict(sorted(fields.items(), key=lambda item: item[0].identifier))

    def without(self, allowed: FieldSet) -> ManagerConflict | None:
        """Return the conflict without allowed fields; None if nothing is left."""
        left = {}
        for owner, fields in self.fields.items():
            paths = [path for path in fields.paths() if path not in allowed]
            if paths:
                left[owner] = FieldSet.of(*paths)
        return ManagerConflict(left) if left else None

    def to_error(self) -> PatchError:
        """Return the error that the client gets."""
        found = [(owner, path) for owner, set_ in self.fields.items() for path in set_.paths()]
        causes = tuple(
            PatchCause(FIELD_MANAGER_CONFLICT, f"conflict with {owner}", _shown(path))
            for owner, path in found
        )
        return PatchError(409, "Conflict", _message(found), causes)


def _message(found: list[tuple[FieldOwner, Path]]) -> str:
    if len(found) == 1:
        ((owner, path),) = found
        return f"Apply failed with 1 conflict: conflict with {owner}: {_shown(path)}"
    lines = []
    for owner in dict.fromkeys(owner for owner, _ in found):
        lines.append(f"conflicts with {owner}:")
        lines.extend(f"- {_shown(path)}" for other, path in found if other == owner)
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)


def _shown(path: Path) -> str:
    return "".join(map(field_set.shown, path))


# --- atomic lists and maps ------------------------------------------------------------------------


def with_atomic_parents(fields: FieldSet, shape: Shape) -> FieldSet:
    """Return the set in which atomic lists and maps are owned as a whole."""
    if fields.reconciled_for is shape:  # Sets are shared by many objects.
        return fields
    wholes: list[Path] = []
    _find(fields, shape, (), wholes)
    if not wholes:
        fields.reconciled_for = shape
        return fields
    found = FieldSet.of(*wholes)
    return fields.without(found) | found


def _find(fields: FieldSet, shape: Shape, path: Path, wholes: list[Path]) -> None:
    """Collect the paths of atomic lists and maps that have fields below them."""
    for step, below in fields.children.items():
        there = _shape_at(shape, step)
        if there is None:
            continue
        place = (*path, step)
        if _is_whole(there):
            wholes.append(place)
        else:
            _find(below, there, place, wholes)


def _shape_at(shape: Shape, step: Element) -> Shape | None:
    if shape.map is not None:
        if shape.map.element is shapes.DEDUCED and not shape.map.fields:
            return None
        declared = None
        if field_set.is_field(step):
            declared = shape.map.fields.get(field_set.field_name(step))
        return declared.shape if declared is not None else shape.map.element
    return shape.list.element if shape.list is not None else None


def _is_whole(shape: Shape) -> bool:
    if shape.map is not None:
        return shape.map.is_atomic
    return shape.list is not None and shape.list.relation is Relation.ATOMIC


# --- apply and update -----------------------------------------------------------------------------


class OwnerUpdate(NamedTuple):
    """An owner's update: the version, and the fields that it cannot change."""

    owner: FieldOwner
    api_version: str
    reset: FieldSet
    force: bool = False


def update(
    live: TypedObject, new: TypedObject, managed: ManagedFields, request: OwnerUpdate
) -> None:
    """Record that an owner changed an object from live to new."""
    _reconcile(live, managed)
    change = _settle(live, new, managed, request._replace(force=True))
    mine = managed.sets.get(request.owner)
    fields = FieldSet() if mine is None else mine.fields - change.removed
    fields = (fields | change.modified | change.added).without(request.reset)
    if fields.is_empty:
        managed.sets.pop(request.owner, None)
    else:
        managed.sets[request.owner] = VersionedSet(fields, request.api_version)


def apply(
    live: TypedObject, applied: TypedObject, managed: ManagedFields, request: OwnerUpdate
) -> TypedObject:
    """Return the live object with the applied one merged in, or raise ManagerConflict."""
    _reconcile(live, managed)
    merged = live.with_tree(merge(live.shape, live.tree, applied.tree))
    last = managed.sets.get(request.owner)
    fields = fields_of(applied.shape, applied.tree).without(request.reset)
    managed.sets[request.owner] = VersionedSet(fields, request.api_version)
    if last is not None and _lost_something(last, fields, request):
        merged = _pruned(merged, managed, last, request)
    _settle(live, merged, managed, request)
    return merged


def _lost_something(last: VersionedSet, fields: FieldSet, request: OwnerUpdate) -> bool:
    """Return whether a manager may own fields that it does not apply now.

    What is applied names the items and keys above all that it names. So if nothing of the last
    share is missing, nothing can be taken away, and the long way round can be spared.
    """
    if last.api_version != request.api_version:
        return not last.fields.is_empty
    return not (last.fields - fields).is_empty


def _reconcile(live: TypedObject, managed: ManagedFields) -> None:
    """Adapt field sets to atomic lists and maps; drop those of versions that are gone."""
    for owner, owned in list(managed.sets.items()):
        there = in_version(live, owned.api_version)
        if there is None:
            del managed.sets[owner]
            continue
        managed.sets[owner] = owned._replace(fields=with_atomic_parents(owned.fields, there.shape))


def _settle(
    live: TypedObject, new: TypedObject, managed: ManagedFields, request: OwnerUpdate
) -> Comparison:
    """Take changed fields from other owners, or raise ManagerConflict; return the changes."""
    change = compare(live.shape, live.tree, new.tree).without(request.reset)
    changes = {request.api_version: change}
    conflicts: dict[FieldOwner, FieldSet] = {}
    for owner, owned in managed.sets.items():
        if owner == request.owner:
            continue
        there = changes.get(owned.api_version)
        if there is None:
            there = _change_in(owned.api_version, live, new).without(request.reset)
            changes[owned.api_version] = there
        taken = owned.fields & (there.modified | there.added)
        if not taken.is_empty:
            conflicts[owner] = taken
    if conflicts and not request.force:
        raise ManagerConflict(conflicts)
    for owner in list(managed.sets):
        gone = changes[managed.sets[owner].api_version].removed if owner != request.owner else None
        _take(managed, owner, conflicts.get(owner), gone)
    return change


def _take(managed: ManagedFields, owner: FieldOwner, *taken: FieldSet | None) -> None:
    """Take fields from an owner; drop an owner that has none left."""
    owned = managed.sets[owner]
    fields = owned.fields
    for part in taken:
        fields = fields if part is None else fields - part
    if fields.is_empty:
        del managed.sets[owner]
    elif fields is not owned.fields:
        managed.sets[owner] = owned._replace(fields=fields)


def _change_in(api_version: str, live: TypedObject, new: TypedObject) -> Comparison:
    old, later = in_version(live, api_version), in_version(new, api_version)
    assert old is not None  # `_reconcile` dropped versions that are gone
    assert later is not None
    return compare(old.shape, old.tree, later.tree)


# --- taking away ---------------------------------------------------------------------------


def _pruned(
    merged: TypedObject, managed: ManagedFields, last: VersionedSet, request: OwnerUpdate
) -> TypedObject:
    """Return the object without fields that were applied last time and nobody owns now."""
    there = in_version(merged, last.api_version)
    if there is None:
        return merged
    last_fields = last.fields.with_named_fields(there.shape)
    pruned = there.with_tree(remove(there.shape, there.tree, last_fields))
    pruned = _with_owned(there, pruned, managed, last.api_version)
    pruned = _with_dangling(there, pruned, last)
    back = in_version(pruned, request.api_version)
    assert back is not None
    return back


def _with_owned(
    merged: TypedObject, pruned: TypedObject, managed: ManagedFields, first: str
) -> TypedObject:
    """Return the pruned object with the lost fields that somebody owns."""
    owned: dict[str, FieldSet] = {}
    for each in managed.sets.values():
        known = owned.get(each.api_version)
        owned[each.api_version] = each.fields if known is None else known | each.fields
    # Start with the version in which it was pruned: conversions restore the others.
    for version in sorted(owned, key=lambda version: (version != first, version)):
        here, lost = in_version(merged, version), in_version(pruned, version)
        if here is None or lost is None:
            continue
        shape = here.shape
        kept = fields_of(shape, lost.tree).with_named_fields(shape)
        kept = kept | owned[version].with_named_fields(shape)
        gone = fields_of(shape, here.tree).with_named_fields(shape) - kept
        merged, pruned = here, here.with_tree(remove(shape, here.tree, gone))
    return pruned


def _with_dangling(merged: TypedObject, pruned: TypedObject, last: VersionedSet) -> TypedObject:
    """Return the object without the manager's own lost fields; fields without owner stay."""
    there = in_version(pruned, last.api_version)
    if there is None:
        return merged
    shape = merged.shape
    kept = fields_of(shape, there.tree).with_named_fields(shape)
    gone = fields_of(shape, merged.tree).with_named_fields(shape) - kept
    mine = gone & last.fields.with_named_fields(shape)
    return merged.with_tree(remove(shape, merged.tree, mine))


# --- kubectl's last-applied annotation ------------------------------------------------------------

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"  # the manager that the annotation matters to

_ANNOTATIONS_SIZE_MAX = 256 * 1024


def allowed_fields(live: TypedObject, api_version: str) -> FieldSet | None:
    """Return the fields that kubectl applied and nobody changed since; None without annotation."""
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
    """Return the object with its annotation updated, if it has one."""
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
    """Return the applied object as kubectl writes it."""
    annotations = _annotations(applied)
    if ANNOTATION in annotations:
        kept = {key: value for key, value in annotations.items() if key != ANNOTATION}
        applied = {**applied, "metadata": {**applied["metadata"], "annotations": kept}}
    text = json.dumps(applied, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    for character, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(character, escape)
    return text + "\n"
