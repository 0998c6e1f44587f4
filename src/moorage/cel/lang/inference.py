"""Type inference: which types are assignable, and the bindings of type parameters.

The checker asks whether a value of one type may be used where another is expected. A comparison
binds type parameters to the types they are compared with. Bindings are kept in Substitutions; a
comparison that fails undoes its own.

    # wanted, given: the expected type and the present one; the relation is nearly symmetric, since
    #                dyn fits both ways
    # fresh parameter: one that an overload or an empty literal got for itself: `_var0`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import is_
from typing import NamedTuple

from moorage.cel.lang.types import DYN, PRIMITIVES, Type, TypeKind, accepts_null, param, same

_CONTAINERS = {TypeKind.OPAQUE, TypeKind.LIST, TypeKind.MAP}
_COMPARED_BY_NAME = {*PRIMITIVES, TypeKind.DURATION, TypeKind.TIMESTAMP, TypeKind.STRUCT}


# A type that holds another twice may double with every level. No real type comes near these.
_STEPS_MAX = 1_000_000
_SIZE_MAX = 1_000
_DEPTH_MAX = 300


class TooComplex(Exception):  # noqa: N818 - describes the expression
    """An expression whose types are too large, or take too long to compare."""


class _TypeFacts(NamedTuple):
    """Properties of a type that save walking through it."""

    type: Type  # keeps it alive, so that nothing else gets its identity
    size: int
    depth: int
    is_ground: bool  # holds no type parameter


class Substitutions:
    """The bindings of type parameters, with a journal to undo those of a failed attempt."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        # The name and its binding before; newest last: undo pops from the end.
        self._journal: list[tuple[str, Type | None]] = []
        self._facts: dict[int, _TypeFacts] = {}
        self._fresh = 0
        self._steps = 0

    def fresh_parameter(self) -> Type:
        """Return a type parameter that nobody else has."""
        self._fresh += 1
        return param(f"_var{self._fresh - 1}")

    def assign(self, wanted: Type, given: Type) -> bool:
        """Return whether a type fits, and if so keep the bindings."""
        return self.assign_all((wanted,), (given,))

    def assign_all(self, wanted: Sequence[Type], given: Sequence[Type]) -> bool:
        """Return whether all types fit one by one, and if so keep the bindings."""
        if self._fit_all(wanted, given):
            self._journal.clear()
            return True
        while self._journal:
            self._restore(*self._journal.pop())
        return False

    def resolve(self, type_: Type, *, free: Type | None = None) -> Type:
        """Return a type with its parameters replaced; `free` replaces those without a binding."""
        if type_.kind is TypeKind.TYPE_PARAM:
            self._step()
            bound = self._bound.get(type_.name)
            if bound is not None:
                return self.resolve(bound, free=free)
            return type_ if free is None else free
        if not type_.params or self._facts_of(type_).is_ground:
            return type_
        self._step()
        params = tuple(map(partial(self.resolve, free=free), type_.params))
        is_same = all(map(is_, params, type_.params))
        return type_ if is_same else Type(type_.kind, type_.name, params)

    def weigh(self, type_: Type) -> None:
        """Raise TooComplex if a type is too large to work with."""
        facts = self._facts_of(type_)
        if facts.size > _SIZE_MAX or facts.depth > _DEPTH_MAX:
            raise TooComplex

    def _facts_of(self, type_: Type) -> _TypeFacts:
        facts = self._facts.get(id(type_))
        if facts is None:
            parts = list(map(self._facts_of, type_.params))
            facts = _TypeFacts(
                type_,
                1 + sum(part.size for part in parts),
                1 + max((part.depth for part in parts), default=0),
                type_.kind is not TypeKind.TYPE_PARAM and all(part.is_ground for part in parts),
            )
            self._facts[id(type_)] = facts
        return facts

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _STEPS_MAX:
            raise TooComplex

    def _restore(self, name: str, before: Type | None) -> None:
        if before is None:
            del self._bound[name]
        else:
            self._bound[name] = before

    def _bind(self, name: str, type_: Type) -> None:
        self._journal.append((name, self._bound.get(name)))
        self._bound[name] = type_

    def _fit_all(self, wanted: Sequence[Type], given: Sequence[Type]) -> bool:
        return len(wanted) == len(given) and all(map(self._fit, wanted, given))

    def _fit(self, wanted: Type, given: Type) -> bool:
        self._step()
        if wanted is given and self._facts_of(wanted).is_ground:
            return True
        if given.kind is TypeKind.TYPE_PARAM:
            fits, was_bound = self._stands_for(given, wanted)
            if fits or was_bound:
                return fits
        if wanted.kind is TypeKind.TYPE_PARAM:
            return self._stands_for(wanted, given)[0]
        if wanted.is_dyn or given.is_dyn:
            return True
        if wanted.kind is TypeKind.NULL:
            return accepts_null(given)
        if given.kind is TypeKind.NULL:
            return accepts_null(wanted)
        if wanted.kind in _COMPARED_BY_NAME:
            return same(wanted, given)
        if wanted.kind is TypeKind.TYPE:
            return given.kind is TypeKind.TYPE
        if wanted.kind in _CONTAINERS:
            alike = (wanted.kind, wanted.name) == (given.kind, given.name)
            return alike and self._fit_all(wanted.params, given.params)
        return False

    def _stands_for(self, parameter: Type, type_: Type) -> tuple[bool, bool]:
        """Return whether a parameter can be bound to a type, and whether it was bound before."""
        if parameter == type_:
            return True, True
        bound = self._bound.get(parameter.name)
        if bound is None:
            if self._occurs(parameter, type_):
                return False, False
            self._bind(parameter.name, type_)
            return True, False
        if same(type_, bound):
            return True, True
        if not self._fit(type_, bound):
            return False, True
        general = most_general(type_, bound)
        if not self._occurs(parameter, general):
            self._bind(parameter.name, general)
        return True, True

    def _occurs(self, parameter: Type, within: Type) -> bool:
        """Return whether binding the parameter to a type would be recursive."""
        self._step()
        if parameter == within:
            return True
        if within.kind is TypeKind.TYPE_PARAM:
            bound = self._bound.get(within.name)
            return bound is not None and self._occurs(parameter, bound)
        if not within.params or self._facts_of(within).is_ground:
            return False
        return any(map(partial(self._occurs, parameter), within.params))


def instantiate(types: Iterable[Type], substitutions: Substitutions) -> tuple[Type, ...]:
    """Return types with each of their parameters replaced by a fresh one."""
    fresh: dict[str, Type] = {}
    originals = tuple(types)
    for name in _parameter_names(originals):
        fresh[name] = substitutions.fresh_parameter()
    return originals if not fresh else tuple(_replace(type_, fresh) for type_ in originals)


def most_general(first: Type, second: Type) -> Type:
    """Return the more general of two types; the first if they are alike."""
    return first if _is_no_less_general(first, second) else second


def _is_no_less_general(first: Type, second: Type) -> bool:
    if first.kind in (TypeKind.DYN, TypeKind.ANY, TypeKind.TYPE_PARAM):
        return True
    if (
        second.kind in (TypeKind.DYN, TypeKind.ANY, TypeKind.TYPE_PARAM)
        or first.kind is not second.kind
    ):
        return False
    if first.kind is TypeKind.TYPE:
        return True
    if first.kind not in _CONTAINERS:
        return same(first, second)
    if first.name != second.name or len(first.params) != len(second.params):
        return False
    return all(map(_is_no_less_general, first.params, second.params))


def _parameter_names(types: Iterable[Type]) -> list[str]:
    names: list[str] = []
    for type_ in types:
        if type_.kind is TypeKind.TYPE_PARAM:
            names.append(type_.name)
        elif type_.params:
            names.extend(_parameter_names(type_.params))
    return list(dict.fromkeys(names))


def _replace(type_: Type, by_name: Mapping[str, Type]) -> Type:
    if type_.kind is TypeKind.TYPE_PARAM:
        return by_name.get(type_.name, DYN)
    if not type_.params:
        return type_
    return Type(type_.kind, type_.name, tuple(_replace(part, by_name) for part in type_.params))
