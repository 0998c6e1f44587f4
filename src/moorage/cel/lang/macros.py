"""Macros: calls that the parser replaces by other expressions.

    has(e.f)                          whether e.f is set
    e.all(x, p)                       p holds for every element         absorbs errors like &&
    e.exists(x, p)                    p holds for some element          absorbs errors like ||
    e.exists_one(x, p)                p holds for exactly one element
    e.map(x, t), e.map(x, p, t)       [t, ...] of the elements (for which p holds)
    e.filter(x, p)                    the elements for which p holds
    e.all(k, v, p), ...               the quantifiers over keys (of a list: indices) and values
    e.transformList(k, v, t), ...     a list of t for every entry; with a filter p before t
    e.transformMap(k, v, t), ...      a map of every key to t
    e.transformMapEntry(k, v, m), ... a map of the entries of every map m
    cel.bind(name, value, e)          e, in which the name stands for the value

All but has() become comprehensions that collect into the accumulator, a variable whose name no
expression can write. cel.bind() is one over nothing: its name is the accumulator, and so is
evaluated when it is first used, if ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from moorage.cel.lang import ast
from moorage.cel.lang.ast import Expr, Ident, Select
from moorage.cel.lang.environment import Function, Library, Overload
from moorage.cel.lang.errors import EvalError, Issue, MacroError
from moorage.cel.lang.types import map_of, param
from moorage.cel.lang.values import key_value, map_key, shown

ACCUMULATOR: Final = "@result"
UNUSED: Final = "#unused"
MAP_INSERT: Final = "cel.@mapInsert"
# The second is the accumulator's former name, still refused as a variable.
_RESERVED: Final = (ACCUMULATOR, "__result__")
_MAP: Final = map_of(param("K"), param("V"))


class MacroExprFactory:
    """Builds the nodes of an expansion; each gets a new id and the position of the call."""

    def __init__(self, next_id: Callable[[], int], offset: int) -> None:
        self._next_id = next_id
        self._offset = offset

    def _new(self) -> tuple[int, int]:
        return self._next_id(), self._offset

    def literal(self, value: Any) -> Expr:
        """Return a constant."""
        return ast.Literal(*self._new(), value)

    def ident(self, name: str) -> Expr:
        """Return an identifier."""
        return ast.Ident(*self._new(), name)

    def accu_ident(self) -> Expr:
        """Return the accumulator."""
        return self.ident(ACCUMULATOR)

    def presence(self, operand: Expr, field: str) -> Expr:
        """Return `has(operand.field)`."""
        return ast.Select(*self._new(), operand, field, test_only=True)

    def call(self, function: str, *args: Expr) -> Expr:
        """Return `function(args)`."""
        return ast.Call(*self._new(), function, args)

    def member_call(self, function: str, target: Expr, *args: Expr) -> Expr:
        """Return `target.function(args)`."""
        return ast.Call(*self._new(), function, args, target)

    def new_list(self, *elements: Expr) -> Expr:
        """Return `[elements]`."""
        return ast.CreateList(*self._new(), elements)

    def new_map(self) -> Expr:
        """Return `{}`."""
        return ast.CreateMap(*self._new(), ())

    def comprehension(
        self, iter_range: Expr, iter_vars: tuple[str, ...], accu_var: str, *parts: Expr
    ) -> Expr:
        """Return a comprehension; its parts are accu_init, loop_condition, loop_step, result."""
        first, second = iter_vars[0], iter_vars[1] if len(iter_vars) == 2 else None
        return ast.Comprehension(*self._new(), iter_range, first, second, accu_var, *parts)

    def error(self, at: Expr, message: str) -> MacroError:
        """Return the error to raise at a node."""
        return MacroError(Issue(at.offset, message))


# Takes the factory, the target (None for a global macro) and the arguments; returns the expansion,
# or None if the call is not this macro after all.
MacroExpander = Callable[[MacroExprFactory, Expr | None, tuple[Expr, ...]], Expr | None]


@dataclass(frozen=True, slots=True)
class Macro:
    """A call that the parser replaces."""

    name: str
    arity: int
    is_member: bool
    expand: MacroExpander


def _variables(
    factory: MacroExprFactory,
    args: tuple[Expr, ...],
    message: str = "argument must be a simple name",
) -> tuple[str, ...]:
    """Return the names of iteration variables; anything but free names is an error."""
    names = []
    for arg in args:
        if not isinstance(arg, Ident):
            raise factory.error(arg, message)
        names.append(arg.name)
    if len(set(names)) < len(names):
        raise factory.error(args[1], f"duplicate variable name: {names[0]}")
    for arg, name in zip(args, names, strict=True):
        if name in _RESERVED:
            raise factory.error(arg, "iteration variable overwrites accumulator variable")
    return tuple(names)


def _has(factory: MacroExprFactory, _target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    (argument,) = args
    if not isinstance(argument, Select):
        raise factory.error(argument, "invalid argument to has() macro")
    return factory.presence(argument.operand, argument.field)


# --- quantifiers ----------------------------------------------------------------------------------

# From the predicate: the initial value, the condition, the step and the result of a loop.
_Parts = Callable[[MacroExprFactory, Expr], tuple[Expr, Expr, Expr, Expr]]


def _all(factory: MacroExprFactory, predicate: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    return (
        factory.literal(True),
        factory.call("@not_strictly_false", factory.accu_ident()),
        factory.call("_&&_", factory.accu_ident(), predicate),
        factory.accu_ident(),
    )


def _exists(factory: MacroExprFactory, predicate: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    return (
        factory.literal(False),
        factory.call("@not_strictly_false", factory.call("!_", factory.accu_ident())),
        factory.call("_||_", factory.accu_ident(), predicate),
        factory.accu_ident(),
    )


def _exists_one(factory: MacroExprFactory, predicate: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    one_more = factory.call("_+_", factory.accu_ident(), factory.literal(1))
    return (
        factory.literal(0),
        factory.literal(True),
        factory.call("_?_:_", predicate, one_more, factory.accu_ident()),
        factory.call("_==_", factory.accu_ident(), factory.literal(1)),
    )


def _quantifier(parts: _Parts) -> MacroExpander:
    """Return the expander of `e.name(x, predicate)` and `e.name(k, v, predicate)`."""

    def expand(factory: MacroExprFactory, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
        assert target is not None
        names = _variables(factory, args[:-1])
        return factory.comprehension(target, names, ACCUMULATOR, *parts(factory, args[-1]))

    return expand


# --- lists and maps -------------------------------------------------------------------------------


def _collect(
    factory: MacroExprFactory,
    target: Expr | None,
    names: tuple[str, ...],
    start: Expr,
    step: Expr,
    predicate: Expr | None,
) -> Expr:
    """Return the loop that takes a step for every entry, or for every one that a filter admits."""
    assert target is not None
    if predicate is not None:
        step = factory.call("_?_:_", predicate, step, factory.accu_ident())
    condition, result = factory.literal(True), factory.accu_ident()
    return factory.comprehension(target, names, ACCUMULATOR, start, condition, step, result)


def _append(factory: MacroExprFactory, element: Expr) -> Expr:
    return factory.call("_+_", factory.accu_ident(), factory.new_list(element))


def _map(factory: MacroExprFactory, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    names = _variables(factory, args[:1], "argument is not an identifier")
    predicate = args[1] if len(args) == 3 else None
    step = _append(factory, args[-1])
    return _collect(factory, target, names, factory.new_list(), step, predicate)


def _filter(factory: MacroExprFactory, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    return _map(factory, target, (*args, args[0]))


def _transform(
    start: Callable[[MacroExprFactory], Expr],
    step: Callable[[MacroExprFactory, str, Expr], Expr],
) -> MacroExpander:
    """Return the expander of `e.name(k, v, transform)` and `e.name(k, v, filter, transform)`."""

    def expand(factory: MacroExprFactory, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
        names = _variables(factory, args[:2])
        predicate = args[2] if len(args) == 4 else None
        taken = step(factory, names[0], args[-1])
        return _collect(factory, target, names, start(factory), taken, predicate)

    return expand


def _insert_entry(factory: MacroExprFactory, key: str, value: Expr) -> Expr:
    return factory.call(MAP_INSERT, factory.accu_ident(), factory.ident(key), value)


_TRANSFORMS: Final = {
    "transformList": _transform(
        lambda factory: factory.new_list(), lambda factory, _, value: _append(factory, value)
    ),
    "transformMap": _transform(lambda factory: factory.new_map(), _insert_entry),
    "transformMapEntry": _transform(
        lambda factory: factory.new_map(),
        lambda factory, _, value: factory.call(MAP_INSERT, factory.accu_ident(), value),
    ),
}


class _GrowingMap(dict[Any, Any]):
    """The map of a loop that is running.

    A copy at every insertion would cost the square of its size, so the first insertion makes a copy
    that later ones change: only the loop holds it before the loop ends.
    """

    def grow(self, key: Any, value: Any) -> None:
        if key in self:
            raise EvalError(f"insert failed: key {shown(key_value(key))} already exists")
        self[key] = value


def _insert(values: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    return _insert_all(values, {map_key(key): value})


def _insert_all(values: dict[Any, Any], added: dict[Any, Any]) -> dict[Any, Any]:
    growing = values if type(values) is _GrowingMap else _GrowingMap(values)
    for key, value in added.items():
        growing.grow(key, value)
    return growing


# --- cel.bind -------------------------------------------------------------------------------------


def bind(factory: MacroExprFactory, name: str, value: Expr, result: Expr) -> Expr:
    """Return an expression in which a name is bound to a value."""
    empty, never, unchanged = factory.new_list(), factory.literal(False), factory.ident(name)
    return factory.comprehension(empty, (UNUSED,), name, value, never, unchanged, result)


def _bind(factory: MacroExprFactory, target: Expr | None, args: tuple[Expr, ...]) -> Expr | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    name, value, result = args
    if not isinstance(name, Ident):
        raise factory.error(name, "cel.bind() variable names must be simple identifiers")
    return bind(factory, name.name, value, result)


# --- libraries ------------------------------------------------------------------------------------

MAP: Final = Macro("map", 2, True, _map)
STANDARD_MACROS: Final[tuple[Macro, ...]] = (
    Macro("has", 1, False, _has),
    Macro("all", 2, True, _quantifier(_all)),
    Macro("exists", 2, True, _quantifier(_exists)),
    Macro("exists_one", 2, True, _quantifier(_exists_one)),
    MAP,
    Macro("map", 3, True, _map),
    Macro("filter", 2, True, _filter),
)


def bindings_library() -> Library:
    """Return the library `cel.lib.ext.cel.bindings`, version 0."""
    return Library("cel.lib.ext.cel.bindings", macros=(Macro("bind", 3, True, _bind),))


def two_variable_library() -> Library:
    """Return the library `cel.lib.ext.comprev2`, of comprehensions with two variables."""
    insertion = Function(
        MAP_INSERT,
        (
            Overload("@mapInsert_map_key_value", (_MAP, *_MAP.params), _MAP, _insert),
            Overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all),
        ),
    )
    quantifiers = {"all": _all, "exists": _exists, "existsOne": _exists_one}
    return Library(
        "cel.lib.ext.comprev2",
        functions=(insertion,),
        macros=(
            *(Macro(name, 3, True, _quantifier(parts)) for name, parts in quantifiers.items()),
            Macro("exists_one", 3, True, _quantifier(_exists_one)),
            *(Macro(name, arity, True, t) for name, t in _TRANSFORMS.items() for arity in (3, 4)),
        ),
    )
