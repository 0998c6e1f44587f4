"""The shapes of objects: what lists and maps mean when two objects are merged.

A shape says which forms a value may have: a scalar, a list, a map; most have one. Two readers
use it: server-side apply (which items of a list are the same, what is owned as a whole) and
strategic merge patch (`strategy` and `merge_key`, which Kubernetes writes down separately, and
which sometimes differ).
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple


class Relation(Enum):
    """What the items of a list are to each other."""

    ATOMIC = "atomic"  # the list is one value
    SET = "set"  # scalars, each at most once
    KEYED = "keyed"  # maps, told apart by key fields


class Field(NamedTuple):
    """A declared field of a struct."""

    shape: Shape
    strategy: tuple[str, ...] = ()  # of strategic merge patch: merge, replace, retainKeys
    merge_key: str = ""


class ListForm(NamedTuple):
    """A list."""

    element: Shape
    relation: Relation
    keys: tuple[str, ...] = ()
    key_defaults: dict[str, Any] = {}  # noqa: RUF012  # never written to


class MapForm(NamedTuple):
    """A struct (its fields are declared), a map (its values have one shape), or both."""

    fields: dict[str, Field]
    element: Shape | None
    is_atomic: bool


class Shape:
    """The forms that a value may have. Not changed once it is built."""

    __slots__ = ("_is_plain", "list", "map", "name", "scalar")

    def __init__(
        self,
        name: str,
        *,
        scalar: str = "",
        list_form: ListForm | None = None,
        map_form: MapForm | None = None,
        is_plain: bool | None = None,
    ) -> None:
        self.name = name  # Go's name of the struct, or its word for the kind of type
        self.scalar = scalar  # string, numeric, boolean, untyped, or none
        self.list = list_form
        self.map = map_form
        self._is_plain = is_plain  # None: not worked out yet

    @property
    def is_plain(self) -> bool:
        """Whether all below has one type each, so that values are the same if they are equal.

        In JSON of any shape they need not be: Python takes true for 1.
        """
        if self._is_plain is None:
            self._is_plain = True  # a struct that contains itself adds nothing
            self._is_plain = all(below.is_plain for below in self._below())
        return self._is_plain

    def _below(self) -> list[Shape]:
        below = [self.list.element] if self.list is not None else []
        if self.map is not None:
            below.extend(field.shape for field in self.map.fields.values())
            below.extend([self.map.element] if self.map.element is not None else [])
        return below

    @property
    def is_struct(self) -> bool:
        """Whether fields are declared, or could be."""
        return self.map is not None and self.name != "map"


STRING = Shape("string", scalar="string")
NUMBER = Shape("int", scalar="numeric")
BOOLEAN = Shape("bool", scalar="boolean")
ANY = Shape("struct", scalar="untyped")  # quantities, times, numbers or percentages

# Any JSON, as one value.
JSON = Shape("RawExtension", scalar="untyped", is_plain=False)
JSON.list = ListForm(JSON, Relation.ATOMIC)
JSON.map = MapForm({}, JSON, is_atomic=True)

# Any JSON whose maps are merged; lists are one value.
DEDUCED = Shape("RawExtension", scalar="untyped", is_plain=False)
DEDUCED.list = ListForm(JSON, Relation.ATOMIC)
DEDUCED.map = MapForm({}, DEDUCED, is_atomic=False)
