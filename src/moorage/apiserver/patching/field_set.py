"""Path elements and field sets, as managedFields writes them.

    f:NAME          a field of a struct, or a key of a map
    k:{"a":1,…}     the item of a list whose key fields have these values
    v:VALUE         the item of a set with this value
    i:NUMBER        the item at this index

An element is kept as this text, so that sets of elements are sets of strings. For that the text has
one form only: keys by name, no blanks, Go's escapes, whole numbers without a point.

A FieldSet is a tree: `members` are elements of the set itself, `children` are the subsets below an
element; an element may be in both. Sets are values: operations share structure and change no
operand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from moorage.apiserver.patching.shapes import Shape
from moorage.kit.go_quote import go_quote
from moorage.kit.remembered import remembered

Element = str

REMEMBERED_MAX, LENGTH_MAX = 16384, 256  # of elements and their parts
_FIELD, _KEY, _VALUE, _INDEX = "f:", "k:", "v:", "i:"

_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_HTML_TABLE = str.maketrans(_HTML)


class ElementError(ValueError):
    """A path element that cannot be parsed."""


def field(name: str) -> Element:
    """Return the element of a field or a map key."""
    return _FIELD + name


def by_keys(names: Sequence[str], values: Sequence[Any]) -> Element:
    """Return the element of the item with these key fields."""
    if not all(map(_is_short, values)):
        return _by_keys(names, values)
    # With the types, since 1 and true are one key of a dict.
    return _by_scalar_keys(tuple(names), tuple(values), tuple(map(type, values)))


@lru_cache(maxsize=REMEMBERED_MAX)
def _by_scalar_keys(
    names: tuple[str, ...],
    values: tuple[Any, ...],
    types: tuple[type, ...],  # noqa: ARG001
) -> Element:
    return _by_keys(names, values)


def _is_short(value: Any) -> bool:
    """Return whether a value is a scalar that may be remembered."""
    return len(value) <= LENGTH_MAX if type(value) is str else not isinstance(value, dict | list)


def _by_keys(names: Sequence[str], values: Sequence[Any]) -> Element:
    pairs = sorted(zip(names, values, strict=True), key=itemgetter(0))
    return _KEY + "{" + ",".join(f"{_json(name)}:{_json(value)}" for name, value in pairs) + "}"


def by_value(value: Any) -> Element:
    """Return the element of an item of a set."""
    return _VALUE + _json(value)


def is_field(element: Element) -> bool:
    """Return whether an element is a field or a map key."""
    return element.startswith(_FIELD)


def is_item(element: Element) -> bool:
    """Return whether an element is an item with key fields."""
    return element.startswith(_KEY)


def field_name(element: Element) -> str:
    """Return the name of a field element."""
    return element[2:]


@remembered(REMEMBERED_MAX, LENGTH_MAX)
def canonical(text: str) -> Element | None:
    """Return an element in its canonical form; None if its type is unknown."""
    if len(text) < 2:
        raise ElementError("key must be 2 characters long:")
    sort, rest = text[:2], text[2:]
    if sort[1] != ":":
        raise ElementError(f"missing colon: {text}")
    match sort:
        case "f:":
            return text
        case "v:":
            return by_value(_parsed(rest))
        case "k:":
            keys = _parsed(rest)
            if not isinstance(keys, dict):
                raise ElementError(f"not a map of keys: {text}")
            return _by_keys(list(keys), list(keys.values()))
        case "i:":
            return f"{_INDEX}{_index(rest)}"
        case _:
            return None


@remembered(REMEMBERED_MAX, LENGTH_MAX)
def order(element: Element) -> tuple[Any, ...]:
    """Return the sort key of an element: fields, keyed items, values, indices."""
    match element[:2]:
        case "f:":
            return (0, element[2:])
        case "k:":
            keys = json.loads(element[2:])
            return (1, tuple((name, *_value_order(value)) for name, value in keys.items()))
        case "v:":
            return (2, *_value_order(json.loads(element[2:])))
        case _:
            return (3, int(element[2:]))


def shown(element: Element) -> str:
    """Return an element as messages print it: `.name`, `[key="value"]`, `[="value"]`."""
    match element[:2]:
        case "f:":
            return "." + element[2:]
        case "k:":
            keys = json.loads(element[2:])
            return "[" + ",".join(f"{name}={_scalar(value)}" for name, value in keys.items()) + "]"
        case "v:":
            return f"[={_scalar(json.loads(element[2:]))}]"
        case _:
            return f"[{element[2:]}]"


def _scalar(value: Any) -> str:
    return go_quote(value) if isinstance(value, str) else _json(value)


def _value_order(value: Any) -> tuple[int, Any]:
    match value:
        case bool():
            return (2, value)
        case int() | float():
            return (0, value)
        case str():
            return (1, value)
        case _:  # not in sets and keys that we write
            return (3, _json(value))


def _scalar_json(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        value = int(value)
    return json.dumps(value, ensure_ascii=False).translate(_HTML_TABLE)


_short_scalar_json = lru_cache(maxsize=REMEMBERED_MAX, typed=True)(_scalar_json)


def _json(value: Any) -> str:
    if isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        return text.translate(_HTML_TABLE)
    return _short_scalar_json(value) if _is_short(value) else _scalar_json(value)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ElementError(f"not JSON: {text[:80]}") from None


def _index(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ElementError(f"not a number: {text[:80]}") from None


# --- field sets -----------------------------------------------------------------------------------

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
        self.reconciled_for: Shape | None = None  # for which this set needs no change

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
        """Whether the set is empty."""
        if self.members:
            return False
        for child in self.children.values():  # noqa: SIM110  # most often, the first one decides
            if not child.is_empty:
                return False
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and set(self.paths()) == set(other.paths())

    __hash__ = None  # type: ignore[assignment]  # a tree of sets: compared, never a key

    def __contains__(self, path: Path) -> bool:
        node: FieldSet | None = self
        for step in path[:-1]:
            node = node.children.get(step) if node else None
        return node is not None and bool(path) and path[-1] in node.members

    def has(self, step: Element) -> bool:
        """Return whether an element is in the set, or something below it."""
        return step in self.members or step in self.children

    def below(self, step: Element) -> FieldSet:
        """Return the subset below an element."""
        return self.children.get(step) or _EMPTY

    def paths(self, before: Path = ()) -> Iterator[Path]:
        """Yield all paths, in the order in which Kubernetes lists them."""
        for step in sorted(self.members, key=order):
            yield (*before, step)
        for step in sorted(self.children, key=order):
            yield from self.children[step].paths((*before, step))

    def __or__(self, other: FieldSet) -> FieldSet:
        """Return the union."""
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
        """Return the intersection."""
        children = {}
        for step, child in self.children.items():
            theirs = other.children.get(step)
            if theirs is not None and not (both := child & theirs).is_empty:
                children[step] = both
        return FieldSet(self.members & other.members, children)

    def __sub__(self, other: FieldSet) -> FieldSet:
        """Return the difference; paths below a path of the other stay."""
        if not (other.members or other.children):
            return self
        children = {}
        for step, child in self.children.items():
            theirs = other.children.get(step)
            if theirs is None:
                children[step] = child
            elif not (rest := child - theirs).is_empty:
                children[step] = rest
        return FieldSet(self.members - other.members, children)

    def without(self, other: FieldSet) -> FieldSet:
        """Return the paths that are neither in the other set nor below one of its paths."""
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
        """Return the set with every declared field that has paths below it."""
        if not self.children:
            return self
        form = shape.map if shape else None
        members, children = set(self.members), {}
        for step, child in self.children.items():
            below: Shape | None = None
            if form is not None and is_field(step):
                declared = form.fields.get(step[2:])
                if declared is not None:
                    members.add(step)
                below = declared.shape if declared else form.element
            elif shape is not None and shape.list is not None and is_item(step):
                below = shape.list.element
            children[step] = child.with_named_fields(below)
        return FieldSet(members, children)


_EMPTY = FieldSet()


def to_json(fields: FieldSet) -> dict[str, Any]:
    """Return a set as fieldsV1."""
    result: dict[str, Any] = {}
    members, children = fields.members, fields.children
    for step in sorted(members | children.keys() if children else members, key=order):
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
        if text == "." or (step := canonical(text)) is None:
            continue
        if not below or "." in below:
            result.members.add(step)
        if below and not (child := from_json(below, depth + 1)).is_empty:
            result.children[step] = child
        elif below:
            result.members.add(step)  # nothing known below it
    return result
