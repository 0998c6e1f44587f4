"""The step to an item of a list: by its keys, or by its value."""

from __future__ import annotations

from mooring.apiserver.patching import elements
from mooring.apiserver.patching.elements import Element
from mooring.apiserver.patching.gotext import quoted
from mooring.apiserver.patching.shapes import ListForm, Relation
from mooring.apiserver.patching.values import Tree


class ItemError(ValueError):
    """An item that has no step."""


def step_to(form: ListForm, item: Tree) -> Element:
    """Return the step to an item of a set or keyed list, or raise ItemError."""
    if form.relation is Relation.SET:
        return _by_value(item)
    if item is None:
        raise ItemError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ItemError("associative list with keys may not have non-map elements")
    defaults = form.key_defaults
    try:
        values = [item[key] if key in item else defaults[key] for key in form.keys]
    except KeyError:  # A key without a default is left out.
        return _by_some_keys(form, item)
    return elements.by_keys(form.keys, values)


def _by_some_keys(form: ListForm, item: dict[str, Tree]) -> Element:
    known = {**form.key_defaults, **item}
    keys = [key for key in form.keys if key in known]
    if not keys:
        names = " ".join(map(quoted, form.keys))
        raise ItemError(
            f"associative list with keys has an element that omits all key fields [{names}]"
            " (and doesn't have default values for any key fields)"
        )
    return elements.by_keys(keys, [known[key] for key in keys])


def _by_value(item: Tree) -> Element:
    match item:
        case dict():
            raise ItemError("associative list without keys has an element that's a map type")
        case list():
            raise ItemError("not supported: associative list with lists as elements")
        case None:
            raise ItemError("associative list without keys has an element that's an explicit null")
        case _:
            return elements.by_value(item)
