"""Structured merge, reading: changes between objects, the fields of an object, and its validity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moorage.api.go_type_names import type_name
from moorage.apiserver.patching import field_set, json_values
from moorage.apiserver.patching.field_set import Element, FieldSet
from moorage.apiserver.patching.json_values import ABSENT, Tree, same
from moorage.apiserver.patching.shapes import ListForm, MapForm, Relation, Shape
from moorage.apiserver.patching.structured_merge import ItemError, form_of, step_to


class Comparison(NamedTuple):
    """The removed, modified and added fields; the sets are disjoint."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @staticmethod
    def empty() -> Comparison:
        """Return the comparison of an object with itself."""
        return Comparison(FieldSet(), FieldSet(), FieldSet())

    def without(self, fields: FieldSet) -> Comparison:
        """Return the comparison without some fields and their children."""
        return Comparison(*(part.without(fields) for part in self))


def compare(shape: Shape, old: Tree, new: Tree) -> Comparison:
    """Return what changed from an old object to a new one."""
    result = Comparison.empty()
    if shape.map is not None:
        _in_map(shape.map, _mapping(old), _mapping(new), result)
    return result


def _at(shape: Shape, old: Tree, new: Tree, step: Element, into: Comparison) -> None:
    """Record what changed at an element and below."""
    if old is new or (old == new and shape.is_plain):
        return
    if old is ABSENT:
        _all(shape, new, step, into.added)
    elif new is ABSENT:
        _all(shape, old, step, into.removed)
    else:
        first, second = form_of(shape, old), form_of(shape, new)
        _in_form(first, old, new, step, into)
        if second is not first:
            _in_form(second, old, new, step, into)


def _all(shape: Shape, value: Tree, step: Element, into: FieldSet) -> None:
    """Record everything at an element and below."""
    into.members.add(step)
    form = form_of(shape, value)
    if not value or form is None:
        return
    below = FieldSet()
    if type(form) is MapForm:
        if form.is_atomic or not isinstance(value, dict):
            return
        fields, element = form.fields, form.element
        for name, part in value.items():
            declared = fields.get(name)
            known = declared.shape if declared is not None else element
            if known is not None:
                _all(known, part, f"f:{name}", below)
    elif type(form) is ListForm:
        if form.relation is Relation.ATOMIC or not isinstance(value, list):
            return
        for item_step, twins in _by_step(form, value).items():
            if len(twins) == 1:
                _all(form.element, twins[0], item_step, below)
            else:
                below.members.add(item_step)
    if below.members:
        into.children[step] = below


def _in_form(
    form: ListForm | MapForm | None, old: Tree, new: Tree, step: Element, into: Comparison
) -> None:
    """Record what changed in one form of a value that exists before and after."""
    below = Comparison.empty()
    match form:
        case MapForm():
            before, after = _mapping(old), _mapping(new)
            if form.is_atomic or not (before or after):
                return _leaf(old, new, step, into)
            _in_map(form, before, after, below)
        case ListForm():
            earlier, later = _sequence(old), _sequence(new)
            if form.relation is Relation.ATOMIC or not (earlier or later):
                return _leaf(old, new, step, into)
            _in_list(form, earlier, later, below)
        case None:
            return _leaf(old, new, step, into)
    for whole, part in zip(into, below, strict=True):
        if part.members or part.children:
            known = whole.children.get(step)
            whole.children[step] = part if known is None else known | part
    return None


def _leaf(old: Tree, new: Tree, step: Element, into: Comparison) -> None:
    if not same(old, new):
        into.modified.members.add(step)


def _mapping(value: Tree) -> dict[str, Tree]:
    return value if isinstance(value, dict) else {}


def _sequence(value: Tree) -> list[Tree]:
    return value if isinstance(value, list) else []


def _in_map(form: MapForm, old: dict[str, Tree], new: dict[str, Tree], into: Comparison) -> None:
    fields, element = form.fields, form.element
    for name, before in old.items():
        after = new.get(name, ABSENT)
        declared = fields.get(name)
        shape = declared.shape if declared is not None else element
        if shape is not None:
            _at(shape, before, after, f"f:{name}", into)
    for name, after in new.items():
        if name not in old:
            declared = fields.get(name)
            shape = declared.shape if declared is not None else element
            if shape is not None:
                _at(shape, ABSENT, after, f"f:{name}", into)


def _in_list(form: ListForm, old: list[Tree], new: list[Tree], into: Comparison) -> None:
    before, after = _by_step(form, old), _by_step(form, new)
    for step in before | after:
        lost, gained = before.get(step, []), after.get(step, [])
        if len(lost) <= 1 and len(gained) <= 1:
            one = lost[0] if lost else ABSENT
            _at(form.element, one, gained[0] if gained else ABSENT, step, into)
        else:
            _twins(form, lost, gained, step, into)


def _twins(
    form: ListForm, lost: list[Tree], gained: list[Tree], step: Element, into: Comparison
) -> None:
    """Record changes of items with the same key, which count as one value."""
    if len(lost) > 1 and len(gained) > 1:
        if not same(lost, gained):
            into.modified.members.add(step)
    elif len(lost) > 1:
        if gained:
            _at(form.element, ABSENT, gained[0], step, into)
        into.removed.members.add(step)
    else:
        if lost:
            _at(form.element, lost[0], ABSENT, step, into)
        into.added.members.add(step)


def _by_step(form: ListForm, items: list[Tree]) -> dict[Element, list[Tree]]:
    result: dict[Element, list[Tree]] = {}
    for item in items:
        result.setdefault(step_to(form, item), []).append(item)
    return result


# --- fields ---------------------------------------------------------------------------------------


def fields_of(shape: Shape, value: Tree) -> FieldSet:
    """Return the set of all leaves and items of an object."""
    result = FieldSet()
    if isinstance(value, dict) and shape.map is not None:
        _of_map(shape.map, value, result)
    return result


def _add(shape: Shape, value: Tree, step: Element, into: FieldSet) -> None:
    """Add an element and its children."""
    if isinstance(value, dict) and shape.map is not None:
        if shape.map.is_atomic:
            into.members.add(step)
        elif value:
            below = FieldSet()
            _of_map(shape.map, value, below)
            _hang(below, step, into)
    elif isinstance(value, list) and shape.list is not None:
        if shape.list.relation is Relation.ATOMIC:
            into.members.add(step)
        elif value:
            below = FieldSet()
            _of_list(shape.list, value, below)
            _hang(below, step, into)
    elif _is_leaf(shape):
        into.members.add(step)


def _is_leaf(shape: Shape) -> bool:
    """Return whether a value that is neither the shape's list nor its map is a leaf.

    A null has the first form that the shape knows: a map, a scalar, a list.
    """
    if shape.map is not None:
        return shape.map.is_atomic or bool(shape.scalar)
    return bool(shape.scalar) or (shape.list is not None and shape.list.relation is Relation.ATOMIC)


def _hang(below: FieldSet, step: Element, into: FieldSet) -> None:
    if below.members or below.children:
        into.children[step] = below


def _of_map(form: MapForm, value: dict[str, Tree], into: FieldSet) -> None:
    fields, element = form.fields, form.element
    for name, item in value.items():
        declared = fields.get(name)
        shape = declared.shape if declared is not None else element
        if shape is None:
            continue
        step = f"f:{name}"
        if declared is None or item is None or item == {}:
            into.members.add(step)
        _add(shape, item, step, into)


def _of_list(form: ListForm, value: list[Tree], into: FieldSet) -> None:
    steps = [step_to(form, item) for item in value]
    into.members.update(steps)
    for step, item in zip(steps, value, strict=True):
        if len(steps) != len(into.members) and steps.count(step) > 1:
            continue  # items with the same key have no fields of their own
        _add(form.element, item, step, into)


# --- validation -----------------------------------------------------------------------------------

Finding = tuple[str, str]  # the path, and the error


class ShapeError(ValueError):
    """A value that does not have its shape; the text lists every error."""

    def __init__(self, findings: list[Finding]) -> None:
        lines = [f"{place}: {fact}" if place else fact for place, fact in findings]
        super().__init__(lines[0] if len(lines) == 1 else "\n  ".join(["errors:", *lines]))


def check(shape: Shape, value: Tree, *, duplicates: bool = False) -> None:
    """Raise ShapeError unless the value has the shape."""
    if findings := list(_findings(shape, value, duplicates)):
        raise ShapeError(findings)


def _findings(shape: Shape, value: Tree, duplicates: bool) -> Iterator[Finding]:
    if value is None:
        return
    if isinstance(value, dict) and shape.map is not None:
        yield from _in_map_check(shape.map, value, duplicates)
    elif isinstance(value, list) and shape.list is not None:
        yield from _in_list_check(shape.list, value, duplicates)
    elif shape.map is not None and not (shape.scalar and not isinstance(value, dict | list)):
        yield "", f"expected map, got &{{{json_values.plain(value)}}}"
    elif shape.scalar:
        yield from _in_scalar(shape.scalar, value)
    else:
        yield "", f"expected list, got &{{{json_values.plain(value)}}}"


def _in_scalar(kind: str, value: Tree) -> Iterator[Finding]:
    match kind:
        case "string":
            if not isinstance(value, str):
                held = f"&value.valueUnstructured{{Value:{json_values.syntax(value)}}}"
                yield "", f"expected string, got {held}"
        case "numeric":
            if not isinstance(value, int | float) or isinstance(value, bool):
                yield "", f"expected numeric (int or float), got {type_name(value)}"
        case "boolean":
            if not isinstance(value, bool):
                yield "", f"expected boolean, got &{{{json_values.plain(value)}}}"
        case _:
            if isinstance(value, dict | list):
                yield "", f"expected any scalar, got &{{{json_values.plain(value)}}}"


def _in_map_check(form: MapForm, value: dict[str, Tree], duplicates: bool) -> Iterator[Finding]:
    for name, item in value.items():
        declared = form.fields.get(name)
        below = declared.shape if declared is not None else form.element
        if below is None:
            yield f".{name}", "field not declared in schema"
            return
        if below.scalar == "string" and type(item) is str:  # most fields
            continue
        for place, fact in _findings(below, item, duplicates):
            yield f".{name}{place}", fact


def _in_list_check(form: ListForm, value: list[Tree], duplicates: bool) -> Iterator[Finding]:
    seen: set[Element] = set()
    for index, item in enumerate(value):
        step = f"i:{index}"
        if form.relation is not Relation.ATOMIC:
            try:
                step = step_to(form, item)
            except ItemError as error:
                yield "", f"element {index}: {error}"
                return
            if step in seen and not duplicates:
                yield "", f"duplicate entries for key {field_set.shown(step)}"
            seen.add(step)
        for place, fact in _findings(form.element, item, duplicates):
            yield f"{field_set.shown(step)}{place}", fact
