"""Fields behind feature gates: the schema names their gates, and every type drops them alike.

A field is dropped while one of its gates is off, unless the old object uses a field of the same
gates already. A field is used if it differs from the default of its struct.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from itertools import chain, repeat
from operator import attrgetter, ne
from typing import Any, Generic, NamedTuple, TypeVar, get_args, get_origin

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields, replace

from moorage.api.gates import Gate, Gates
from moorage.api.schema import api_type, feature_gates

S = TypeVar("S", bound=Struct)


class _Inner(NamedTuple):
    """A field with structs whose own fields have the gates: one, a list, or a map of them."""

    name: str
    get: Callable[[Any], Any]
    parts: Callable[[Any], Iterable[Any]]
    gated: GatedFields[Any]


class GatedFields(Generic[S]):
    """The fields of a struct, and of structs in it, that need the same gates."""

    def __init__(self, struct: type[S], name: str, gates: tuple[str, ...]) -> None:
        self.gates = tuple(map(Gate, gates))
        gated = feature_gates(name)
        own = [field for field in fields(struct) if gated.get(field.encode_name) == gates]
        self._unset = {field.name: _default(field) for field in own}
        unset = tuple(self._unset.values())
        # The getter of one field returns its value, the getter of several a tuple.
        self._unset_values = unset[0] if len(unset) == 1 else unset
        self._values: Callable[[S], Any] = attrgetter(*self._unset) if own else lambda _: ()
        # The last value and its answer: every object is asked about twice, to warn and to drop.
        self._last: tuple[S | None, bool] = (None, False)
        self._inner = [
            _Inner(
                field.name,
                attrgetter(field.name),
                _parts_of(field.type),
                GatedFields(inner, inner_name, gates),
            )
            for field, inner, inner_name in _structs_in(struct, name)
            if field not in own and gates in set(_all_gates(inner, inner_name))
        ]

    def is_used(self, value: S) -> bool:
        """Return whether any of the fields is set."""
        seen, is_used = self._last
        if seen is not value:
            is_used = self._is_used_in((value,))
            self._last = (value, is_used)
        return is_used

    def _is_used_in(self, values: Collection[S]) -> bool:
        # A slice can have thousands of attributes: no Python code runs for each of them.
        if self._unset and any(map(ne, map(self._values, values), repeat(self._unset_values))):
            return True
        return any(
            gated._is_used_in(list(chain.from_iterable(map(parts, map(get, values)))))
            for _, get, parts, gated in self._inner
        )

    def is_dropped(self, new: S, old: S | None, gates: Gates) -> bool:
        """Return whether an object loses fields."""
        return (
            not gates.on.issuperset(self.gates)
            and self.is_used(new)
            and not (old is not None and self.is_used(old))
        )

    def without(self, value: S) -> S:
        """Return the value without the fields."""
        changes = dict(self._unset)
        for name, get, _, gated in self._inner:
            changes[name] = _mapped(get(value), gated.without)
        return replace(value, **changes)


@cache
def gated_fields(
    struct: type[S], name: str, order: tuple[Gate, ...] = ()
) -> tuple[GatedFields[S], ...]:
    """Return the gated fields of a type by their gates, those of some gates in this order first."""
    ranks = {gate.value: rank for rank, gate in enumerate(order)}
    found = set(_all_gates(struct, name))
    by_rank = sorted(found, key=lambda gates: (ranks.get(gates[0], len(ranks)), gates))
    return tuple(GatedFields(struct, name, gates) for gates in by_rank)


def drop_disabled(new: S, old: S | None, gates: Gates, gated: tuple[GatedFields[S], ...]) -> S:
    """Return an object without fields of disabled features that the old one does not use."""
    for each in gated:
        if each.is_dropped(new, old, gates):
            new = each.without(new)
    return new


def disabled_gates(
    new: S, old: S | None, gates: Gates, gated: tuple[GatedFields[S], ...]
) -> Iterator[Gate]:
    """Yield the disabled gates whose fields are dropped."""
    for each in gated:
        if each.is_dropped(new, old, gates):
            yield from (gate for gate in each.gates if not gates.enabled(gate))


def _all_gates(struct: type[Struct], name: str) -> Iterator[tuple[str, ...]]:
    yield from feature_gates(name).values()
    for _, inner, inner_name in _structs_in(struct, name):
        yield from _all_gates(inner, inner_name)


def _structs_in(struct: type[Struct], name: str) -> Iterator[tuple[FieldInfo, type[Struct], str]]:
    """Yield the fields that hold structs, with the structs and the names of their types."""
    types = {field.name: field.type for field in api_type(name).json_fields()}
    for field in fields(struct):
        inner = _struct_of(field.type)
        if inner is not None and "." in types.get(field.encode_name, ""):
            yield field, inner, types[field.encode_name]


def _struct_of(annotation: Any) -> type[Struct] | None:
    """Return the struct in an annotation such as `tuple[Device, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return annotation
    return next((found for each in get_args(annotation) if (found := _struct_of(each))), None)


def _default(field: FieldInfo) -> Any:
    return field.default if field.default is not NODEFAULT else field.default_factory()


def _parts_of(annotation: Any) -> Callable[[Any], Iterable[Any]]:
    """Return what gives the structs in a field: without Python code, where it is never null."""
    known: dict[Any, Callable[[Any], Iterable[Any]]] = {dict: dict.values, tuple: iter}
    return known.get(get_origin(annotation), _parts)


def _parts(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, tuple) else () if value is None else (value,)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: change(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(map(change, value))
    return None if value is None else change(value)
