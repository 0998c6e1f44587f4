"""Strategic merge patch: its directives, and the merge of lists.

$patch: replace | delete | merge       of the map, item or list that it is in
$retainKeys: [a, b]                    remove other keys of this map
$setElementOrder/FIELD: [...]          the order of a merged list
$deleteFromPrimitiveList/FIELD: [...]  items to remove from a list of scalars

Items follow the order of `$setElementOrder`, then the order of the patch; items that only the
object has stay where they were, as far as the others allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from moorage.api.go_type_names import type_name
from moorage.apiserver.patching import json_values
from moorage.apiserver.patching.errors import PatchRefused, bad_request, unprocessable
from moorage.apiserver.patching.json_values import Tree
from moorage.apiserver.patching.shapes import Shape, ShapeField

MARKER = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM_LIST = "$deleteFromPrimitiveList"
SET_ORDER = "$setElementOrder"

REPLACE, DELETE, MERGE = "replace", "delete", "merge"


def field_of(key: str, prefix: str) -> str:
    """Return the field of a directive, or raise PatchRefused."""
    word, slash, name = key.partition("/")
    if not slash or word != prefix:
        raise bad_list_format(prefix)
    return name


def without_directives(value: Tree) -> Tree:
    """Return a new value without items and fields that are directives."""
    if isinstance(value, dict):
        return {key: without_directives(v) for key, v in value.items() if not is_marked(v)}
    if isinstance(value, list):
        return [without_directives(item) for item in value if not is_marked(item)]
    return value


def without_nulls(value: Tree) -> Tree:
    """Return a new value without fields that are null, at any depth."""
    if isinstance(value, dict):
        return {key: without_nulls(v) for key, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def is_marked(value: Tree) -> bool:
    """Return whether a map has a `$patch` directive."""
    return isinstance(value, dict) and MARKER in value


def bad_list_format(prefix: str) -> PatchRefused:
    """Return the error of a malformed directive."""
    word = "primitive" if prefix == DELETE_FROM_LIST else "setElementOrder"
    return bad_request(f"invalid patch format of {word} list")


def bad_retain_keys() -> PatchRefused:
    """Return the error of a malformed `$retainKeys`."""
    return bad_request("invalid patch format of retainKeys")


def no_merge_key(item: Tree, key: str) -> PatchRefused:
    """Return the error of an item without its merge key."""
    return bad_request(f"map: {json_values.plain(item)} does not contain declared merge key: {key}")


def bad_type(wanted: str, value: Tree) -> PatchRefused:
    """Return the error of a value of another type."""
    found = "%!s(<nil>)" if value is None else type_name(value)
    return bad_request(f"expected a {wanted}, but received a {found}")


def unknown_directive(directive: Tree, patch: Tree) -> PatchRefused:
    """Return the error of an unknown `$patch`."""
    return bad_request(
        f"unknown patch type: {json_values.plain(directive)} in map: {json_values.plain(patch)}"
    )


# --- lists ----------------------------------------------------------------------------------------

MergeMaps = Callable[[dict[str, Tree], dict[str, Tree], Shape], dict[str, Tree]]
Identity = tuple[str, object]  # the type of a scalar, and the scalar: 1 is not true

_SORTED_PLAINLY_MAX = 20  # above it, items that no order names stay unsorted


def merged_lists(
    field: ShapeField,
    original: list[Tree],
    patch: list[Tree],
    merge_maps: MergeMaps,
    *,
    is_deletion: bool,
) -> list[Tree]:
    """Return a list with a patch merged in, or with the items of a patch removed."""
    if not original and not patch:
        return original
    kind = _kind_of_items(original, patch)
    if kind is dict:
        united = _united(field, original, patch, merge_maps)
        identity = _identity(field.merge_key)
        return _in_order(united.merged, united.patch, united.original, identity)
    if is_deletion:
        gone = set(map(_scalar, patch))
        return [item for item in original if _scalar(item) not in gone]
    merged = list({_scalar(item): item for item in (*original, *patch)}.values())
    return _in_order(merged, patch, original, _scalar)


def ordered(
    field: ShapeField,
    original: list[Tree] | None,
    patch: list[Tree] | None,
    order: list[Tree],
    merge_maps: MergeMaps,
) -> list[Tree]:
    """Return the list of a `$setElementOrder` directive, merged and in order."""
    key = field.merge_key
    _check_order(patch or [], order, key)
    server_order = original or []
    if patch is None:
        merged = original or []
    elif original is None:
        merged = without_directives(patch)
    elif MERGE not in field.strategy:
        merged = patch
    elif (original or patch) and _kind_of_items(original, patch) is dict:
        united = _united(field, original, patch, merge_maps)
        merged = _in_order(united.merged, united.patch, united.original, _identity(key))
        server_order = united.remembered
    else:
        merged = merged_lists(field, original, patch, merge_maps, is_deletion=False)
    _check_keys(merged, order, key)
    _kind_of_items(original or [], patch or [])
    return _in_order(merged, order, server_order, _identity(key) if key else _scalar)


def _check_keys(merged: list[Tree], order: list[Tree], key: str) -> None:
    """Raise PatchRefused unless all items and all elements of the order have the merge key."""
    if not key:
        return
    for item in merged:
        if not isinstance(item, dict):
            raise bad_type("map[string]interface {}", item)
        if key not in item:
            raise no_merge_key(item, key)
    for place, item in enumerate(order):
        if not isinstance(item, dict):
            raise bad_request(f"value for key {place} is not a map")
        if key not in item:
            raise no_merge_key(item, key)


class _United(NamedTuple):
    """A list of maps merged with its patch, not in order yet."""

    merged: list[Tree]
    patch: list[Tree]  # without directives
    original: list[Tree]  # what is left of it
    # The original as Go sees it afterwards: added items take the places of deleted ones.
    remembered: list[Tree]


def _united(
    field: ShapeField, original: list[Tree], patch: list[Tree], merge_maps: MergeMaps
) -> _United:
    key = field.merge_key
    shape = field.shape.list.element if field.shape.list is not None else field.shape
    if not key:
        kind = "struct" if shape.is_struct else shape.name
        raise bad_request(f"cannot merge lists without merge key for {kind}")
    kept, plain, is_replaced = _with_markers(original, patch, key)
    merged = plain if is_replaced else list(kept)
    patch = [] if is_replaced else plain
    left = plain if is_replaced else kept
    places: dict[Identity, int] = {}
    for place, item in enumerate(merged):
        if key in item:
            places.setdefault(_key_of(item, key), place)
    for item in patch:
        if key not in item:
            raise no_merge_key(item, key)
        found = places.get(identity := _key_of(item, key))
        if found is None:
            places[identity] = len(merged)
            merged.append(item)
        else:
            merged[found] = merge_maps(merged[found], item, shape)
    for item in merged:
        if key not in item:
            raise no_merge_key(item, key)
    return _United(merged, patch, left, (kept if is_replaced else merged)[: len(original)])


def _with_markers(
    original: list[Tree], patch: list[Tree], key: str
) -> tuple[list[Tree], list[Tree], bool]:
    """Return the list and the patch after the `$patch` of items, and whether it replaces all."""
    plain, is_replaced = [], False
    for item in patch:
        directive = item.get(MARKER)
        if directive is None and MARKER not in item:
            plain.append(item)
        elif directive == DELETE:
            if key not in item:
                raise no_merge_key(item, key)
            gone = _key_of(item, key)
            original = [o for o in original if key not in o or _key_of(o, key) != gone]
        elif directive == REPLACE:
            is_replaced = True
        elif directive == MERGE:
            raise bad_request("merging lists cannot yet be specified in the patch")
        else:
            raise unknown_directive(directive, item)
    return original, plain, is_replaced


def _check_order(patch: list[Tree], order: list[Tree], key: str) -> None:
    """Raise PatchRefused unless the order names the items of the patch, in their order."""
    if not patch or not order:
        return
    wanted = [item for item in patch if not _is_deletion(item, key)]
    here = there = 0
    while here < len(wanted) and there < len(order):
        if is_marked(wanted[here]):
            here += 1
            continue
        here += _is_same(wanted[here], order[there], key)
        there += 1
    if here < len(wanted):
        raise bad_request(
            f"The order in patch list:\n{json_values.plain(patch)}\n doesn't match"
            f" {SET_ORDER} list:\n{json_values.plain(order)}\n"
        )


def _is_deletion(item: Tree, key: str) -> bool:
    if not key:
        return False
    if not isinstance(item, dict):
        raise bad_type("map[string]interface {}", item)
    return item.get(MARKER) == DELETE


def _is_same(left: Tree, right: Tree, key: str) -> bool:
    if not key:
        return _scalar(left) == _scalar(right)
    for item in (left, right):
        if not isinstance(item, dict):
            raise bad_type("map[string]interface {}", item)
        if key not in item:
            raise no_merge_key(item, key)
    return _key_of(left, key) == _key_of(right, key)


def _kind_of_items(*items_of: Sequence[Tree]) -> type:
    """Return the type of all items, or raise PatchRefused."""
    names = [type_name(item) for items in items_of for item in items]
    if not names:
        raise bad_request("no elements in any of the given slices")
    if names[0] == "[]interface {}":
        raise unprocessable("lists of lists are not supported")
    if len(set(names)) > 1 or names[0] == "<nil>":
        shown = json_values.plain([list(items) for items in items_of])
        raise bad_request(f"list element types are not identical: {shown}")
    return dict if names[0].startswith("map") else str


# --- order ----------------------------------------------------------------------------------------


def _in_order(
    merged: list[Tree],
    order: list[Tree],
    server_order: list[Tree],
    identity: Callable[[Tree], Identity],
) -> list[Tree]:
    """Return the items: those that an order names in that order, the others between them."""
    ranks = _ranks(order, identity)
    server_ranks = _ranks(server_order, identity)
    named = [item for item in merged if identity(item) in ranks]
    others = [item for item in merged if identity(item) not in ranks]
    named = _sorted(named, ranks, identity)
    others = _sorted(others, server_ranks, identity)
    return _interleaved(others, named, server_ranks, identity)


def _ranks(items: list[Tree], identity: Callable[[Tree], Identity]) -> dict[Identity, int]:
    ranks: dict[Identity, int] = {}
    for place, item in enumerate(items):
        ranks.setdefault(identity(item), place)
    return ranks


def _sorted(
    items: list[Tree], ranks: dict[Identity, int], identity: Callable[[Tree], Identity]
) -> list[Tree]:
    """Return items by rank; one without a rank goes before its predecessors, as in Go."""
    keys = [ranks.get(identity(item)) for item in items]
    if None not in keys:
        return sorted(items, key=lambda item: ranks[identity(item)])
    if len(items) > _SORTED_PLAINLY_MAX:
        return items
    result: list[Tree] = []
    for item in items:
        place = len(result)
        mine = ranks.get(identity(item))
        while place > 0:
            theirs = ranks.get(identity(result[place - 1]))
            if mine is not None and theirs is not None and mine >= theirs:
                break
            place -= 1
        result.insert(place, item)
    return result


def _interleaved(
    left: list[Tree],
    right: list[Tree],
    ranks: dict[Identity, int],
    identity: Callable[[Tree], Identity],
) -> list[Tree]:
    """Return both lists merged; a left item goes before the first right item with a higher rank."""
    result: list[Tree] = []
    waiting = list(reversed(left))
    for item in right:
        mine = ranks.get(identity(item))
        while waiting and mine is not None:
            theirs = ranks.get(identity(waiting[-1]))
            if theirs is None or theirs >= mine:
                break
            result.append(waiting.pop())
        result.append(item)
    return [*result, *reversed(waiting)]


def _identity(key: str) -> Callable[[Tree], Identity]:
    return lambda item: _key_of(item, key)


def _key_of(item: dict[str, Tree], key: str) -> Identity:
    return _scalar(item.get(key))


def _scalar(value: Tree) -> Identity:
    if isinstance(value, dict | list):
        raise bad_request(
            f"{json_values.plain(value)} is not a scalar, items cannot be compared by it"
        )
    return type_name(value), value
