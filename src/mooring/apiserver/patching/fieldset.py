"""Sets of fields of an object: who owns what is told with them.

A set is a tree. `members` are the steps that belong to the set themselves, `children` have what
belongs to it below a step; a step may be in both. Sets are values: no operation changes its
operands, and results share what they can.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mooring.apiserver.patching import elements
from mooring.apiserver.patching.elements import Element, ElementError
from mooring.apiserver.patching.shapes import Shape

Path = tuple[Element, ...]

_DEPTH_MAX = 200  # of fieldsV1 that a client sends


class FieldSet:
    """A set of paths."""

    __slots__ = ("children", "members", "reconciled_for")

    def __init__(
        self,
        members: set[Element] | None = None,
        children: dict[Element, FieldSet] | None = None,
    ) -> None:
        self.members: set[Element] = set() if members is None else members
        self.children: dict[Element, FieldSet] = {} if children is None else children
        self.reconciled_for: Shape | None = None  # of which this set is known to need no change

    @staticmethod
    def of(*paths: Path) -> FieldSet:
        """Return the set of these paths."""
        result = FieldSet()
        for path in paths:
            node = result
            for step in path[:-1]:
                node = node.children.setdefault(step, FieldSet())
            node.members.add(path[-1])
        return result

    @property
    def is_empty(self) -> bool:
        """Whether no path is in the set."""
        return not self.members and all(child.is_empty for child in self.children.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and set(self.paths()) == set(other.paths())

    __hash__ = None  # type: ignore[assignment]  # a tree of sets: compared, never a key

    def __contains__(self, path: Path) -> bool:
        node: FieldSet | None = self
        for step in path[:-1]:
            node = node.children.get(step) if node else None
        return node is not None and bool(path) and path[-1] in node.members

    def below(self, step: Element) -> FieldSet:
        """Return what is in the set below a step."""
        return self.children.get(step) or _EMPTY

    def paths(self, before: Path = ()) -> Iterator[Path]:
        """Yield all paths, in the order in which Kubernetes lists them."""
        for step in sorted(self.members, key=elements.order):
            yield (*before, step)
        for step in sorted(self.children, key=elements.order):
            yield from self.children[step].paths((*before, step))

    def __or__(self, other: FieldSet) -> FieldSet:
        """Return what is in either set."""
        if not (self.members or self.children):
            return other
        if not (other.members or other.children):
            return self
        children = dict(self.children)
        for step, child in other.children.items():
            mine = children.get(step)
            children[step] = child if mine is None else mine | child
        return FieldSet(self.members | other.members, children)

    def __and__(self, other: FieldSet) -> FieldSet:
        """Return what is in both sets."""
        children = {}
        for step, child in self.children.items():
            theirs = other.children.get(step)
            if theirs is not None and not (both := child & theirs).is_empty:
                children[step] = both
        return FieldSet(self.members & other.members, children)

    def __sub__(self, other: FieldSet) -> FieldSet:
        """Return what is in this set only; what lies below a path of the other stays."""
        children = {}
        for step, child in self.children.items():
            theirs = other.children.get(step)
            if theirs is None:
                children[step] = child
            elif not (rest := child - theirs).is_empty:
                children[step] = rest
        return FieldSet(self.members - other.members, children)

    def without(self, other: FieldSet) -> FieldSet:
        """Return what is neither in the other set nor below a path of it."""
        if not (other.members or other.children):
            return self
        children = {}
        for step, child in self.children.items():
            if step in other.members:
                continue
            theirs = other.children.get(step)
            rest = child if theirs is None else child.without(theirs)
            if theirs is None or not rest.is_empty:
                children[step] = rest
        return FieldSet(self.members - other.members, children)

    def with_named_fields(self, shape: Shape | None) -> FieldSet:
        """Return the set with each declared field that something below it belongs to."""
        if not self.children:
            return self
        form = shape.map if shape else None
        members, children = set(self.members), {}
        for step, child in self.children.items():
            below: Shape | None = None
            if form is not None and elements.is_field(step):
                declared = form.fields.get(step[2:])
                if declared is not None:
                    members.add(step)
                below = declared.shape if declared else form.element
            elif shape is not None and shape.list is not None and elements.is_item(step):
                below = shape.list.element
            children[step] = child.with_named_fields(below)
        return FieldSet(members, children)


_EMPTY = FieldSet()


def to_json(fields: FieldSet) -> dict[str, Any]:
    """Return a set in the form of fieldsV1."""
    result: dict[str, Any] = {}
    members, children = fields.members, fields.children
    for step in sorted(members | children.keys() if children else members, key=elements.order):
        child = children.get(step)
        below = {} if child is None else to_json(child)
        result[step] = {".": {}, **below} if below and step in members else below
    return result


def from_json(tree: Any, depth: int = 0) -> FieldSet:
    """Return the set that fieldsV1 describes, or raise ElementError."""
    result = FieldSet()
    if not isinstance(tree, dict) or depth > _DEPTH_MAX:
        raise ElementError("fieldsV1 must be a map of maps" if depth <= _DEPTH_MAX else "too deep")
    for text, below in tree.items():
        if text == "." or (step := elements.canonical(text)) is None:
            continue
        if not below or "." in below:
            result.members.add(step)
        if below and not (child := from_json(below, depth + 1)).is_empty:
            result.children[step] = child
        elif below:
            result.members.add(step)  # nothing below it that we understand
    return result
