"""A strategic merge patch and the map it is for."""

from __future__ import annotations

from mooring.apiserver.patching import json_values, strategic_lists
from mooring.apiserver.patching.errors import bad_request
from mooring.apiserver.patching.json_values import Tree
from mooring.apiserver.patching.shapes import Field, Shape


def strategic_merge(shape: Shape, current: dict[str, Tree], patch: Tree) -> dict[str, Tree]:
    """Return an object with the patch merged in, or raise Refusal."""
    if not isinstance(patch, dict):
        word = "array" if isinstance(patch, list) else json_values.type_name(patch)
        raise bad_request(
            f"json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"
        )
    return merged_maps(current, patch, shape)


def merged_maps(original: dict[str, Tree], patch: dict[str, Tree], shape: Shape) -> dict[str, Tree]:
    """Return the merged map.

    1. `$patch` takes the place of everything.
    2. `$retainKeys` clears what it does not name.
    3. `$setElementOrder` merges its list and puts it in order.
    4. What is left is merged field by field.
    """
    if strategic_lists.MARKER in patch:
        return _directed(patch)
    result, rest = dict(original), dict(patch)
    _retain_keys(result, rest)
    for key in [key for key in rest if key.startswith(strategic_lists.SET_ORDER)]:
        _put_in_order(result, rest, key, shape)
    for key, value in rest.items():
        is_deletion = key.startswith(strategic_lists.DELETE_FROM_LIST)
        name = (
            strategic_lists.field_of(key, strategic_lists.DELETE_FROM_LIST) if is_deletion else key
        )
        _merge_field(result, name, value, shape, is_deletion=is_deletion)
    return result


def find_field(shape: Shape, name: str) -> Field:
    """Return a declared field, whatever its case, or raise Refusal."""
    if not shape.is_struct or shape.map is None:
        raise bad_request(
            f"merging an object in json but data type is not struct, instead is: {shape.name}"
        )
    if (exact := shape.map.fields.get(name)) is not None:
        return exact
    for declared, field in shape.map.fields.items():
        if declared.casefold() == name.casefold():
            return field
    raise bad_request(
        f"unable to find api field in struct {shape.name} for the json field {json_values.quoted(name)}"
    )


def _directed(patch: dict[str, Tree]) -> dict[str, Tree]:
    match patch[strategic_lists.MARKER]:
        case strategic_lists.REPLACE:
            return {key: value for key, value in patch.items() if key != strategic_lists.MARKER}
        case strategic_lists.DELETE:
            return {}
        case directive:
            raise strategic_lists.unknown_directive(directive, patch)


def _retain_keys(result: dict[str, Tree], rest: dict[str, Tree]) -> None:
    """Clear what `$retainKeys` does not name, and take it out of the patch."""
    if strategic_lists.RETAIN_KEYS not in rest:
        return
    retained = rest.pop(strategic_lists.RETAIN_KEYS)
    if not isinstance(retained, list):
        raise strategic_lists.bad_retain_keys()
    kept = {key for key in retained if isinstance(key, str)}
    for key, value in rest.items():
        if value is None or key.startswith(
            (strategic_lists.DELETE_FROM_LIST, strategic_lists.SET_ORDER)
        ):
            continue
        if key not in kept:
            raise strategic_lists.bad_retain_keys()
    for key in [key for key in result if key not in kept]:
        del result[key]


def _put_in_order(result: dict[str, Tree], rest: dict[str, Tree], key: str, shape: Shape) -> None:
    """Merge the list that `$setElementOrder` is about; both leave the patch."""
    order = rest.pop(key)
    if not isinstance(order, list):
        raise strategic_lists.bad_type("[]interface {}", order)
    name = strategic_lists.field_of(key, strategic_lists.SET_ORDER)
    for holder in (result, rest):
        if name in holder and not isinstance(holder[name], list):
            raise strategic_lists.bad_type("[]interface {}", holder[name])
    if name not in result and name not in rest:
        find_field(shape, name)
        return
    field = find_field(shape, name)
    original, patch = result.get(name), rest.pop(name, None)
    result[name] = strategic_lists.ordered(field, original, patch, order)


def _merge_field(
    result: dict[str, Tree], name: str, value: Tree, shape: Shape, *, is_deletion: bool
) -> None:
    if value is None:
        result.pop(name, None)
        return
    present = result.get(name)
    if name not in result or json_values.type_name(present) != json_values.type_name(value):
        if not is_deletion:
            _take(result, name, strategic_lists.without_nulls(value))
        return
    if isinstance(present, dict):
        field = find_field(shape, name)
        is_replaced = strategic_lists.REPLACE in field.strategy
        result[name] = value if is_replaced else merged_maps(present, value, field.shape)
    elif isinstance(present, list):
        field = find_field(shape, name)
        if strategic_lists.MERGE in field.strategy or is_deletion:
            value = strategic_lists.merged_lists(field, present, value, is_deletion=is_deletion)
        result[name] = value
    else:
        result[name] = value


def _take(result: dict[str, Tree], name: str, value: Tree) -> None:
    """Let the result have a value of the patch as it is, without directives."""
    if strategic_lists.is_marked(value):
        result.pop(name, None)
    else:
        result[name] = strategic_lists.without_directives(value)
