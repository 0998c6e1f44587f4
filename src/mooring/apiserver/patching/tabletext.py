"""Tables of fields as text, read into shapes.

    NAME [atomic|free]              a struct; atomic: one value; free: any fields
      string: image name            fields of one type; number, bool, any likewise
      [string]: args command        a list that is one value
      labels {string}               a map
      spec PodSpec                  a struct
      finalizers [string set]       a list of scalars, each at most once
      env [EnvVar by name]          a list of structs, told apart by these fields
      ports [P by port protocol=TCP id?]   a key field left out means "", =VALUE, or is missing (?)
      env [EnvVar by name] | merge name    strategic merge patch: its strategies and merge key

`any` is a scalar of several types (a quantity, a time, a number or percentage); `json` is any
JSON as one value.
"""

from __future__ import annotations

from mooring.apiserver.patching import shapes
from mooring.apiserver.patching.shapes import Field, ListForm, MapForm, Relation, Shape

_BUILT_IN = {
    "string": shapes.STRING,
    "number": shapes.NUMBER,
    "bool": shapes.BOOLEAN,
    "any": shapes.ANY,
    "json": shapes.JSON,
}
_STRATEGIES = ("merge", "replace", "retainKeys")

Block = tuple[str, list[str]]  # what the header says besides the name, and the lines of fields


class Table:
    """Structs by name, made from text when they are first asked for."""

    def __init__(self, *texts: str) -> None:
        """Read texts; a struct of a later one takes the place of one with its name."""
        self._blocks: dict[str, Block] = {}
        self._shapes: dict[str, Shape] = {}
        for text in texts:
            self._blocks.update(_blocks(text))

    def __contains__(self, name: str) -> bool:
        return name in self._blocks

    def shape(self, name: str) -> Shape:
        """Return the shape of a struct."""
        if (known := self._shapes.get(name)) is None:
            known = self._shapes[name] = Shape(name)  # first, as a struct may contain itself
            known.map = self._form(*self._blocks[name])
        return known

    def _form(self, manner: str, lines: list[str]) -> MapForm:
        fields: dict[str, Field] = {}
        for line in lines:
            fields.update(self._fields(line))
        element = shapes.DEDUCED if manner == "free" else None
        return MapForm(fields, element, is_atomic=manner == "atomic")

    def _fields(self, line: str) -> dict[str, Field]:
        kind, colon, names = line.partition(":")
        if colon:
            shape = self._type(kind.strip())
            return {name: Field(shape) for name in names.split()}
        declared, _, patching = line.partition("|")
        name, _, kind = declared.strip().partition(" ")
        words = patching.split()
        strategy = tuple(word for word in words if word in _STRATEGIES)
        merge_key = words[-1] if words and words[-1] not in _STRATEGIES else ""
        return {name: Field(self._type(kind.strip()), strategy, merge_key)}

    def _type(self, text: str) -> Shape:
        if text.startswith("["):
            return Shape("slice", list_form=self._list(text[1:-1]))
        if text.startswith("{"):
            kind, _, manner = text[1:].partition("}")
            form = MapForm({}, self._type(kind), is_atomic=manner.strip() == "atomic")
            return Shape("map", map_form=form)
        return _BUILT_IN.get(text) or self.shape(text)

    def _list(self, text: str) -> ListForm:
        kind, by, keys = text.partition(" by ")
        if by:
            return _keyed(self._type(kind), keys.split())
        kind, is_set, _ = text.partition(" set")
        relation = Relation.SET if is_set else Relation.ATOMIC
        return ListForm(self._type(kind), relation)


def _keyed(element: Shape, words: list[str]) -> ListForm:
    keys, defaults = [], {}
    for word in words:
        key, has_default, default = word.partition("=")
        keys.append(key.removesuffix("?"))
        if has_default:
            defaults[key] = int(default) if default.isdigit() else default
        elif not key.endswith("?"):
            defaults[key] = ""
    return ListForm(element, Relation.KEYED, tuple(keys), defaults)


def _blocks(text: str) -> dict[str, Block]:
    blocks: dict[str, Block] = {}
    lines: list[str] = []  # of the struct that was named last
    for line in text.splitlines():
        if line.startswith(" "):
            lines.append(line)
        elif line:
            name, _, manner = line.partition(" ")
            lines = []
            blocks[name] = (manner, lines)
    return blocks
