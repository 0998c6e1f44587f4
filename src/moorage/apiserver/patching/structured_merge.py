"""Structured merge, writing: an applied object merged into a live one, and fields removed."""

from __future__ import annotations

import msgspec

from moorage.apiserver.patching import field_set
from moorage.apiserver.patching.field_set import Element, FieldSet
from moorage.apiserver.patching.json_values import ABSENT, Tree
from moorage.apiserver.patching.shapes import ListForm, MapForm, Relation, Shape
from moorage.kit.go_quote import go_quote


class ItemError(ValueError):
    """An item that has no path element."""


def step_to(form: ListForm, item: Tree) -> Element:
    """Return the path element of an item of a set or keyed list, or raise ItemError."""
    if form.relation is Relation.SET:
        return _by_value(item)
    if item is None:
        raise ItemError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ItemError("associative list with keys may not have non-map elements")
    defaults = form.key_defaults
    try:
        values = [item[key] if key in item else defaults[key] for key in form.keys]
    except KeyError:  # A key without a default is missing.
        return _by_some_keys(form, item)
    return field_set.by_keys(form.keys, values)


def _by_some_keys(form: ListForm, item: dict[str, Tree]) -> Element:
    known = {**form.key_defaults, **item}
    keys = [key for key in form.keys if key in known]
    if not keys:
        names = " ".join(map(go_quote, form.keys))
        raise ItemError(
            f"associative list with keys has an element that omits all key fields [{names}]"
            " (and doesn't have default values for any key fields)"
        )
    return field_set.by_keys(keys, [known[key] for key in keys])


def _by_value(item: Tree) -> Element:
    match item:
        case dict():
            raise ItemError("associative list without keys has an element that's a map type")
        case list():
            raise ItemError("not supported: associative list with lists as elements")
        case None:
            raise ItemError("associative list without keys has an element that's an explicit null")
        case _:
            return field_set.by_value(item)


# --- merge ----------------------------------------------------------------------------------------


def merge(shape: Shape, live: Tree, applied: Tree) -> Tree:
    """Return the live value with the applied one merged in; nothing is removed.

    A keyed list or set has the order of the applied one, with other items where they were.
    """
    if live is ABSENT:
        return applied
    if applied is ABSENT or (applied == live and shape.is_plain):
        return live
    match form_of(shape, applied):
        case MapForm() as form if not form.is_atomic:
            return _merged_maps(form, live, applied)
        case ListForm() as form if form.relation is not Relation.ATOMIC:
            return _merged_lists(form, live, applied)
        case _:
            return applied


def form_of(shape: Shape, value: Tree) -> ListForm | MapForm | None:
    """Return the form of a shape that a value has; None for scalars."""
    if isinstance(value, list) and shape.list is not None:
        return shape.list
    if isinstance(value, str | int | float) and shape.scalar:
        return None
    if shape.map is not None:
        return shape.map
    return None if shape.scalar else shape.list


def _merged_maps(form: MapForm, live: Tree, applied: Tree) -> Tree:
    if not isinstance(live, dict) or not live:
        return applied
    if not applied:  # null or without fields
        return live
    merged, is_changed = dict(live), False
    for name, value in applied.items():
        declared = form.fields.get(name)
        shape = declared.shape if declared is not None else form.element
        assert shape is not None  # the applied object is valid
        present = live.get(name, ABSENT)
        result = merge(shape, present, value)
        merged[name] = result
        is_changed = is_changed or result is not present
    return merged if is_changed else live


def _merged_lists(form: ListForm, live: Tree, applied: Tree) -> Tree:
    if not isinstance(live, list) or not live:
        return applied
    if not applied:
        return live
    merged = _Weaver(form, live, applied).woven()
    is_same = len(merged) == len(live) and all(a is b for a, b in zip(merged, live, strict=True))
    return live if is_same else merged


class _Weaver:
    """Merges two lists: the applied one determines the order, the live one fills in.

    Both lists are walked at once. An item of both is taken when the applied list comes to it;
    an item of the live list only is taken at its position.
    """

    def __init__(self, form: ListForm, live: list[Tree], applied: list[Tree]) -> None:
        self._element = form.element
        self._live = live
        self._live_steps = [step_to(form, item) for item in live]
        self._live_items: dict[Element, Tree] = {}
        for step, item in zip(self._live_steps, live, strict=True):
            # Items with the same key are not merged: the target is ambiguous.
            self._live_items[step] = None if step in self._live_items else item
        self._applied = {step_to(form, item): item for item in applied}
        # Items of both lists that the applied one has yet to reach, the next one last.
        self._shared = [step for step in self._applied if step in self._live_items][::-1]
        self._taken: set[Element] = set()

    def woven(self) -> list[Tree]:
        """Return the merged list."""
        merged: list[Tree] = []
        wanted = list(self._applied)
        here = there = 0
        while here < len(self._live_steps) or there < len(wanted):
            if here < len(self._live_steps):
                step = self._live_steps[here]
                if step not in self._applied:
                    merged.append(self._live[here])
                    here += 1
                    continue
                if there < len(wanted) and self._is_out_of_turn(step, wanted[there]):
                    here += 1
                    continue
                if step in self._taken:
                    here += 1
            if there < len(wanted):
                here += self._live_steps[here : here + 1] == [wanted[there]]
                merged.append(self._take(wanted[there]))
                there += 1
        return merged

    def _is_out_of_turn(self, step: Element, wanted: Element) -> bool:
        """Return whether an item of both lists comes later, or has come."""
        return step != wanted and bool(self._shared) and self._shared[-1] != step

    def _take(self, step: Element) -> Tree:
        self._taken.add(step)
        if self._shared and self._shared[-1] == step:
            self._shared.pop()
        return merge(self._element, self._live_items.get(step, ABSENT), self._applied[step])


# --- removal --------------------------------------------------------------------------------------

_encode = msgspec.json.Encoder(enc_hook=float).encode


def remove(shape: Shape, value: Tree, fields: FieldSet) -> Tree:
    """Return the value without some fields; an emptied list or map becomes null."""
    if isinstance(value, dict) and shape.map is not None:
        return _map(shape.map, value, fields)
    if isinstance(value, list) and shape.list is not None:
        return _list(shape.list, value, fields)
    return value if shape.scalar else None


def _map(form: MapForm, value: dict[str, Tree], fields: FieldSet) -> Tree:
    if form.is_atomic:
        return None
    kept = {}
    for name, item in value.items():
        step = f"f:{name}"
        if step in fields.members:
            continue
        below = fields.children.get(step)
        declared = form.fields.get(name)
        shape = declared.shape if declared is not None else form.element
        if below is not None and not below.is_empty and shape is not None:
            item = remove(shape, item, below)
        kept[name] = item
    return kept or None


def _list(form: ListForm, value: list[Tree], fields: FieldSet) -> Tree:
    if form.relation is Relation.ATOMIC:
        return None
    kept = []
    for item in value:
        step = step_to(form, item)
        if step in fields.members:
            continue
        below = fields.children.get(step)
        kept.append(item if below is None else remove(form.element, item, below))
    return kept or None


def without_emptied(shape: Shape, value: Tree) -> Tree:
    """Return the value without null lists and maps, as in Go."""
    return _without_emptied(shape, value) if _may_hold_null(value) else value


def _may_hold_null(value: Tree) -> bool:
    """Return whether there may be a null; few objects have one, and the text is fast to search."""
    try:
        return b"null" in _encode(value)
    except (TypeError, ValueError, OverflowError):  # a number that msgspec cannot encode
        return True


def _without_emptied(shape: Shape, value: Tree) -> Tree:
    if isinstance(value, dict) and shape.map is not None and not shape.map.is_atomic:
        return _map_without_emptied(shape.map, value)
    if isinstance(value, list) and shape.list is not None:
        if shape.list.relation is not Relation.KEYED:
            return value
        items = [_without_emptied(shape.list.element, item) for item in value]
        is_same = all(a is b for a, b in zip(items, value, strict=True))
        return value if is_same else items
    return value


def _map_without_emptied(form: MapForm, value: dict[str, Tree]) -> Tree:
    kept: dict[str, Tree] = {}
    is_same = True
    for name, item in value.items():
        declared = form.fields.get(name)
        shape = declared.shape if declared is not None else form.element
        if item is None and shape is not None and not shape.scalar:
            is_same = False
            if declared is None:  # a map keeps the key, with an empty value
                kept[name] = {}
            continue
        cleaned = item if shape is None else _without_emptied(shape, item)
        is_same = is_same and cleaned is item
        kept[name] = cleaned
    return value if is_same else kept
