"""An applied object merged into a live one."""

from __future__ import annotations

from mooring.apiserver.patching.elements import Element
from mooring.apiserver.patching.shapes import ListForm, MapForm, Relation, Shape
from mooring.apiserver.patching.structured.items import step_to
from mooring.apiserver.patching.values import ABSENT, Tree


def merge(shape: Shape, live: Tree, applied: Tree) -> Tree:
    """Return the live value with what is applied; nothing is taken away.

    A list whose items are told apart is in the order of the applied one, with other items
    where they were.
    """
    if live is ABSENT:
        return applied
    if applied is ABSENT or (applied == live and shape.is_plain):
        return live
    match _form(shape, applied):
        case MapForm() as form if not form.is_atomic:
            return _merged_maps(form, live, applied)
        case ListForm() as form if form.relation is not Relation.ATOMIC:
            return _merged_lists(form, live, applied)
        case _:
            return applied


def _form(shape: Shape, value: Tree) -> ListForm | MapForm | None:
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
        assert shape is not None  # the applied object was checked
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
    """Puts two lists together: the order of the applied one rules, the live one fills in.

    Both lists are walked at once. An item of both is taken when the applied list comes to it;
    an item of the live one alone is taken where it stands.
    """

    def __init__(self, form: ListForm, live: list[Tree], applied: list[Tree]) -> None:
        self._element = form.element
        self._live = live
        self._live_steps = [step_to(form, item) for item in live]
        self._live_items: dict[Element, Tree] = {}
        for step, item in zip(self._live_steps, live, strict=True):
            # Of twins none is merged: it is unknown which is meant.
            self._live_items[step] = None if step in self._live_items else item
        self._applied = {step_to(form, item): item for item in applied}
        # Items of both lists that the applied one has still to come to, the next one last.
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
        """Whether an item of both lists comes later, or has come."""
        return step != wanted and bool(self._shared) and self._shared[-1] != step

    def _take(self, step: Element) -> Tree:
        self._taken.add(step)
        if self._shared and self._shared[-1] == step:
            self._shared.pop()
        return merge(self._element, self._live_items.get(step, ABSENT), self._applied[step])
