"""Whether a value has its shape."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.apiserver.patching import elements, gotext
from mooring.apiserver.patching.elements import Element
from mooring.apiserver.patching.shapes import ListForm, MapForm, Relation, Shape
from mooring.apiserver.patching.structured.items import ItemError, step_to
from mooring.apiserver.patching.values import Tree

Finding = tuple[str, str]  # the place, and what is wrong there


class ShapeError(ValueError):
    """A value that does not have its shape; the text names every place."""

    def __init__(self, findings: list[Finding]) -> None:
        lines = [f"{place}: {fact}" if place else fact for place, fact in findings]
        super().__init__(lines[0] if len(lines) == 1 else "\n  ".join(["errors:", *lines]))


def check(shape: Shape, value: Tree, *, duplicates: bool = False) -> None:
    """Raise ShapeError unless the value has the shape; items may come twice if told so."""
    if findings := list(_findings(shape, value, duplicates)):
        raise ShapeError(findings)


def _findings(shape: Shape, value: Tree, duplicates: bool) -> Iterator[Finding]:
    if value is None:
        return
    if isinstance(value, dict) and shape.map is not None:
        yield from _in_map(shape.map, value, duplicates)
    elif isinstance(value, list) and shape.list is not None:
        yield from _in_list(shape.list, value, duplicates)
    elif shape.map is not None and not (shape.scalar and not isinstance(value, dict | list)):
        yield "", f"expected map, got &{{{gotext.plain(value)}}}"
    elif shape.scalar:
        yield from _in_scalar(shape.scalar, value)
    else:
        yield "", f"expected list, got &{{{gotext.plain(value)}}}"


def _in_scalar(kind: str, value: Tree) -> Iterator[Finding]:
    match kind:
        case "string":
            if not isinstance(value, str):
                held = f"&value.valueUnstructured{{Value:{gotext.syntax(value)}}}"
                yield "", f"expected string, got {held}"
        case "numeric":
            if not isinstance(value, int | float) or isinstance(value, bool):
                yield "", f"expected numeric (int or float), got {gotext.type_name(value)}"
        case "boolean":
            if not isinstance(value, bool):
                yield "", f"expected boolean, got &{{{gotext.plain(value)}}}"
        case _:
            if isinstance(value, dict | list):
                yield "", f"expected any scalar, got &{{{gotext.plain(value)}}}"


def _in_map(form: MapForm, value: dict[str, Tree], duplicates: bool) -> Iterator[Finding]:
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


def _in_list(form: ListForm, value: list[Tree], duplicates: bool) -> Iterator[Finding]:
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
                yield "", f"duplicate entries for key {elements.shown(step)}"
            seen.add(step)
        for place, fact in _findings(form.element, item, duplicates):
            yield f"{elements.shown(step)}{place}", fact
