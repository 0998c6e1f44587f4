"""Which fields an object has."""

from __future__ import annotations

from mooring.apiserver.patching.elements import Element
from mooring.apiserver.patching.fieldset import FieldSet
from mooring.apiserver.patching.shapes import ListForm, MapForm, Relation, Shape
from mooring.apiserver.patching.structured.items import step_to
from mooring.apiserver.patching.values import Tree


def fields_of(shape: Shape, value: Tree) -> FieldSet:
    """Return the set of every leaf and every item in an object."""
    result = FieldSet()
    if isinstance(value, dict) and shape.map is not None:
        _of_map(shape.map, value, result)
    return result


def _add(shape: Shape, value: Tree, step: Element, into: FieldSet) -> None:
    """Add what is at a step and below it."""
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
    """Whether a value that is neither the shape's list nor its map stands for itself.

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
            continue  # twins have no fields of their own
        _add(form.element, item, step, into)
