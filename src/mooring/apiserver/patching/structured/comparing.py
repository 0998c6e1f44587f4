"""What changed from one object to another."""

from __future__ import annotations

from typing import NamedTuple

from mooring.apiserver.patching.elements import Element
from mooring.apiserver.patching.fieldset import FieldSet
from mooring.apiserver.patching.shapes import ListForm, MapForm, Relation, Shape
from mooring.apiserver.patching.structured.items import step_to
from mooring.apiserver.patching.values import ABSENT, Tree, same


class Comparison(NamedTuple):
    """The fields that one object lost, changed and gained. No field is in two of the sets."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @staticmethod
    def empty() -> Comparison:
        """Return the comparison of an object with itself."""
        return Comparison(FieldSet(), FieldSet(), FieldSet())

    def without(self, fields: FieldSet) -> Comparison:
        """Return the comparison with some fields, and what is below them, left out."""
        return Comparison(*(part.without(fields) for part in self))


def compare(shape: Shape, old: Tree, new: Tree) -> Comparison:
    """Return what changed from an old object to a new one."""
    result = Comparison.empty()
    if shape.map is not None:
        _in_map(shape.map, _mapping(old), _mapping(new), result)
    return result


def _at(shape: Shape, old: Tree, new: Tree, step: Element, into: Comparison) -> None:
    """Note what changed at a step and below it."""
    if old is new or (old == new and shape.is_plain):
        return
    if old is ABSENT:
        _all(shape, new, step, into.added)
    elif new is ABSENT:
        _all(shape, old, step, into.removed)
    else:
        first, second = _form(shape, old), _form(shape, new)
        _in_form(first, old, new, step, into)
        if second is not first:
            _in_form(second, old, new, step, into)


def _all(shape: Shape, value: Tree, step: Element, into: FieldSet) -> None:
    """Note that everything at a step and below it came, or went."""
    into.members.add(step)
    form = _form(shape, value)
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


def _form(shape: Shape, value: Tree) -> ListForm | MapForm | None:
    if isinstance(value, list) and shape.list is not None:
        return shape.list
    if isinstance(value, str | int | float) and shape.scalar:
        return None
    if shape.map is not None:
        return shape.map
    return None if shape.scalar else shape.list


def _in_form(
    form: ListForm | MapForm | None, old: Tree, new: Tree, step: Element, into: Comparison
) -> None:
    """Note what changed in one form of a value that was there before and still is."""
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
    """Note what changed where several items have one key: they count as one value."""
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
