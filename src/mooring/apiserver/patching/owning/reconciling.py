"""Field sets that were written when a list or map was not yet one value."""

from __future__ import annotations

from mooring.apiserver.patching import elements, shapes
from mooring.apiserver.patching.elements import Element
from mooring.apiserver.patching.fieldset import FieldSet, Path
from mooring.apiserver.patching.shapes import Relation, Shape


def reconciled(fields: FieldSet, shape: Shape) -> FieldSet:
    """Return the set in which what is one value is owned as one."""
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
    """Gather the places of lists and maps that are one value and have fields below them."""
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
        if elements.is_field(step):
            declared = shape.map.fields.get(elements.field_name(step))
        return declared.shape if declared is not None else shape.map.element
    return shape.list.element if shape.list is not None else None


def _is_whole(shape: Shape) -> bool:
    if shape.map is not None:
        return shape.map.is_atomic
    return shape.list is not None and shape.list.relation is Relation.ATOMIC
