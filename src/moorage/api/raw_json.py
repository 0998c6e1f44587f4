"""JSON inside objects that drivers read: parameters of configurations, data of devices.

Such JSON is kept as the text it was given, and whoever reads protobuf gets that text. As in
Kubernetes, patches change its form:

a JSON or merge     what they leave alone is written to JSON and read again:
patch               without spaces, with what browsers might obey escaped       `keep_written`
a strategic merge   all of it is parsed and encoded again: keys are sorted,
patch, apply, YAML  numbers are as Go writes them                               `remarshal`

Struct types show where objects hold raw JSON (`to_raw_tree`, `raws_of`, `holds_raw`).

# raw: such a piece of JSON; in a tree it is msgspec.Raw where its text is known
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import fields

from moorage.api.codec import compact, to_tree
from moorage.api.documents.scalars import NumberText
from moorage.api.go_integers import fits_int64

Tree = Any
Place = tuple[str | int, ...]

_ESCAPED: Final = {
    b"<": rb"\u003c",
    b">": rb"\u003e",
    b"&": rb"\u0026",
    "\u2028".encode(): rb"\u2028",
    "\u2029".encode(): rb"\u2029",
}
_MEMBERS: Final = msgspec.json.Decoder(list[Raw] | dict[str, Raw])


# --- texts ----------------------------------------------------------------------------------------


def escaped(text: bytes) -> bytes:
    """Return JSON text with what HTML would read escaped, as Go writes it."""
    for character, escape in _ESCAPED.items():
        text = text.replace(character, escape)
    return text


def go_json(value: Tree, *, indent: int | None = None) -> str:
    """Return JSON as Go writes it: without spaces unless it is indented, and fit for HTML."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=False)
    return escaped(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def marshal(value: Tree) -> bytes:
    """Return the JSON text that Go writes for a value that it has parsed."""
    return escaped("".join(_marshalled(value)).encode("utf-8", "replace"))


def _marshalled(value: Tree) -> Iterator[str]:
    match value:
        case Raw():
            yield from _marshalled(json.loads(bytes(value), parse_float=NumberText))
        case dict():
            yield "{"
            for number, key in enumerate(
                sorted(value, key=lambda key: key.encode("utf-8", "replace"))
            ):
                yield f"{',' if number else ''}{_string(key)}:"
                yield from _marshalled(value[key])
            yield "}"
        case list():
            yield "["
            for number, item in enumerate(value):
                yield "," if number else ""
                yield from _marshalled(item)
            yield "]"
        case str():
            yield _string(value)
        case None | bool():
            yield json.dumps(value)
        case _:
            yield _number(value)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _number(value: int | float | NumberText) -> str:
    """Return a number as Go writes it, once it was an int64 or a float64."""
    if isinstance(value, int) and fits_int64(value):
        return str(value)
    number = float(value)
    size = abs(number)
    if number == 0:
        return "-0" if str(number).startswith("-") else "0"
    if 1e-6 <= size < 1e21:
        fixed = format(Decimal(repr(number)), "f")
        return fixed.rstrip("0").rstrip(".") if "." in fixed else fixed
    digits, _, exponent = repr(number).partition("e")
    if exponent.startswith("-0"):
        exponent = f"-{exponent[2:]}"
    return f"{digits.removesuffix('.0')}e{exponent}"


# --- trees ----------------------------------------------------------------------------------------


def keep_texts(tree: Tree, text: bytes) -> None:
    """Replace each raw in a tree by its text in the document that the tree was parsed from."""
    members: dict[Place, Any] = {}

    def written(place: Place, value: Tree) -> bytes:
        form = marshal(value)
        try:
            found = bytes(_text_at(place, text, members))
            return found if marshal(Raw(found)) == form else form
        except (LookupError, TypeError, ValueError):
            return form  # The text is not JSON, or does not match the tree.

    _change(tree, written)


def _text_at(place: Place, text: bytes, members: dict[Place, Any]) -> bytes | Raw:
    """Return the text at a place; `members` has those of holders that were looked at."""
    if not place:
        return text
    holder = place[:-1]
    if holder not in members:
        members[holder] = _MEMBERS.decode(_text_at(holder, text, members))
    found: Raw = members[holder][place[-1]]
    return found


def remarshal(tree: Tree) -> None:
    """Replace each raw in a tree by the text that Go would write."""
    _change(tree, lambda _, value: marshal(value))


def keep_written(tree: Tree, raws: Iterable[Raw]) -> None:
    """Replace each raw in a tree by the equal one of these raws, compacted and escaped."""
    known = {marshal(raw): escaped(compact(bytes(raw))) for raw in raws}

    def written(_: Place, value: Tree) -> bytes:
        form = marshal(value)
        return known.get(form, form)

    _change(tree, written)


def _change(tree: Tree, text_of: Callable[[Place, Tree], bytes]) -> None:
    for holder, key, place in list(_holders(tree, ())):
        value = holder[key]
        if value is not None and not isinstance(value, Raw):
            holder[key] = Raw(text_of((*place, key), value))


def _holders(tree: Tree, place: Place) -> Iterator[tuple[dict[str, Any], str, Place]]:
    """Yield every map that has a raw, with its key: opaque.parameters, status.devices[].data."""
    match tree:
        case dict():
            key = ""
            if place[-1:] == ("opaque",) and "parameters" in tree:
                key = "parameters"
            elif place[:2] == ("status", "devices") and len(place) == 3 and "data" in tree:
                key = "data"
            if key:
                yield tree, key, place
            for name, value in tree.items():
                if name != key:
                    yield from _holders(value, (*place, name))
        case list():
            for number, item in enumerate(tree):
                yield from _holders(item, (*place, number))


# --- where objects hold raw JSON ---------------------------------------------------------------


def to_raw_tree(value: Struct) -> Any:
    """Return an object as a tree; raw JSON of drivers is msgspec.Raw in it, as it was given."""
    tree = to_tree(value)
    graft = _grafter(type(value))
    if graft is not None:
        graft(value, tree)
    return tree


def raws_of(value: Struct) -> list[Raw]:
    """Return the raw JSON of drivers in an object."""
    found: list[Raw] = []
    graft = _grafter(type(value))
    if graft is not None:
        graft(value, to_tree(value), found)
    return found


def holds_raw(struct: type[Struct]) -> bool:
    """Return whether objects of a kind can hold raw JSON of drivers."""
    return _grafter(struct) is not None


# graft: (a value, its tree, where raws are noted) -> None; puts raws into the tree
Graft = Callable[[Any, Any, list[Raw] | None], None]


@lru_cache(maxsize=1024)
def _grafter(struct: type[Struct]) -> Callable[..., None] | None:
    """Return the function that puts the raws of an object into its tree; None if it has none.

    The owners of fields are raw as well, but the server writes those itself.
    """
    if struct.__name__ == "ObjectMeta":
        return None
    plan: list[tuple[str, str, Graft | None]] = []
    hints = get_type_hints(struct, include_extras=True)
    for info in fields(struct):
        hint = hints[info.name]
        if hint is Raw:
            plan.append((info.name, info.encode_name, None))
        elif (inner := _member_grafter(hint)) is not None:
            plan.append((info.name, info.encode_name, inner))
    if not plan:
        return None

    def graft(value: Any, tree: Any, noted: list[Raw] | None = None) -> None:
        for name, key, inner in plan:
            if tree.get(key) is None:
                continue
            member = getattr(value, name)
            if inner is not None:
                inner(member, tree[key], noted)
                continue
            tree[key] = member
            if noted is not None:
                noted.append(member)

    return graft


def _member_grafter(hint: Any) -> Graft | None:
    """Return the grafter for the value of a field; None if it cannot hold raws."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (wanted,) = (a for a in arguments if a is not types.NoneType)
        return _member_grafter(wanted)
    if origin is tuple:
        inner = _member_grafter(arguments[0])
        return None if inner is None else _list_grafter(inner)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _grafter(hint)
    return None


def _list_grafter(inner: Graft) -> Graft:
    def graft(values: Any, trees: Any, noted: list[Raw] | None) -> None:
        for value, tree in zip(values, trees, strict=True):
            inner(value, tree, noted)

    return graft
