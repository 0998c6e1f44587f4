"""Loops with two variables: `{'a': 1}.all(key, value, value > 0)`, `[5].all(index, value, …)`.

`transformMap` and `transformMapEntry` grow a map by one key at a time. To copy it every time
would cost the square of its size, so the first insertion makes a copy that later ones change:
nobody but the loop ever holds it before the loop ends.
"""

from __future__ import annotations

from typing import Any, Final

from mooring.cel.lang.ast import Expr, Ident
from mooring.cel.lang.declarations import Function, Library, Macro, MacroHelper, Overload
from mooring.cel.lang.library.gotext import shown
from mooring.cel.lang.macros import ACCUMULATOR
from mooring.cel.lang.types import map_of, param
from mooring.cel.lang.values import EvalError, key_value, map_key

MAP_INSERT: Final = "cel.@mapInsert"

_KEY: Final = param("K")
_VALUE: Final = param("V")
_MAP: Final = map_of(_KEY, _VALUE)
# What the accumulator was called before; still refused as a variable.
_OLD_ACCUMULATOR: Final = "__result__"


def library() -> Library:
    """Return the library `cel.lib.ext.comprev2`."""
    return Library("cel.lib.ext.comprev2", functions=(_insertion(),), macros=_macros())


def _insertion() -> Function:
    return Function(
        MAP_INSERT,
        (
            Overload("@mapInsert_map_key_value", (_MAP, _KEY, _VALUE), _MAP, _insert),
            Overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all),
        ),
    )


def _macros() -> tuple[Macro, ...]:
    return (
        Macro("all", 3, True, _expand_all),
        Macro("exists", 3, True, _expand_exists),
        Macro("existsOne", 3, True, _expand_exists_one),
        Macro("exists_one", 3, True, _expand_exists_one),
        *(
            Macro(name, arity, True, expand)
            for name, expand in (
                ("transformList", _expand_transform_list),
                ("transformMap", _expand_transform_map),
                ("transformMapEntry", _expand_transform_map_entry),
            )
            for arity in (3, 4)
        ),
    )


# --- maps that grow ---------------------------------------------------------------------------


class _GrowingMap(dict[Any, Any]):
    """The map of a loop that is under way."""


def _insert(values: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    growing = values if type(values) is _GrowingMap else _GrowingMap(values)
    return _grown(growing, map_key(key), value)


def _insert_all(values: dict[Any, Any], added: dict[Any, Any]) -> dict[Any, Any]:
    growing = values if type(values) is _GrowingMap else _GrowingMap(values)
    for key, value in added.items():
        _grown(growing, key, value)
    return growing


def _grown(values: _GrowingMap, key: Any, value: Any) -> _GrowingMap:
    if key in values:
        raise EvalError(f"insert failed: key {shown(key_value(key))} already exists")
    values[key] = value
    return values


# --- macros -----------------------------------------------------------------------------------


def _expand_all(helper: MacroHelper, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    return _loop(
        helper,
        target,
        args,
        start=helper.literal(True),
        condition=helper.call("@not_strictly_false", helper.accu_ident()),
        step=helper.call("_&&_", helper.accu_ident(), args[2]),
    )


def _expand_exists(helper: MacroHelper, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    not_found = helper.call("!_", helper.accu_ident())
    return _loop(
        helper,
        target,
        args,
        start=helper.literal(False),
        condition=helper.call("@not_strictly_false", not_found),
        step=helper.call("_||_", helper.accu_ident(), args[2]),
    )


def _expand_exists_one(helper: MacroHelper, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    one_more = helper.call("_+_", helper.accu_ident(), helper.literal(1))
    return _loop(
        helper,
        target,
        args,
        start=helper.literal(0),
        condition=helper.literal(True),
        step=helper.call("_?_:_", args[2], one_more, helper.accu_ident()),
        result=helper.call("_==_", helper.accu_ident(), helper.literal(1)),
    )


def _expand_transform_list(
    helper: MacroHelper, target: Expr | None, args: tuple[Expr, ...]
) -> Expr:
    step = helper.call("_+_", helper.accu_ident(), helper.new_list(args[-1]))
    return _transform(helper, target, args, helper.new_list(), step)


def _expand_transform_map(helper: MacroHelper, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    key, _ = _variables(helper, args)
    step = helper.call(MAP_INSERT, helper.accu_ident(), helper.ident(key), args[-1])
    return _transform(helper, target, args, helper.new_map(), step)


def _expand_transform_map_entry(
    helper: MacroHelper, target: Expr | None, args: tuple[Expr, ...]
) -> Expr:
    step = helper.call(MAP_INSERT, helper.accu_ident(), args[-1])
    return _transform(helper, target, args, helper.new_map(), step)


def _transform(
    helper: MacroHelper, target: Expr | None, args: tuple[Expr, ...], start: Expr, step: Expr
) -> Expr:
    """Return the loop that takes a step for every entry, or for every one that a filter admits."""
    if len(args) == 4:
        step = helper.call("_?_:_", args[2], step, helper.accu_ident())
    return _loop(helper, target, args, start=start, condition=helper.literal(True), step=step)


def _loop(
    helper: MacroHelper,
    target: Expr | None,
    args: tuple[Expr, ...],
    *,
    start: Expr,
    condition: Expr,
    step: Expr,
    result: Expr | None = None,
) -> Expr:
    assert target is not None
    first, second = _variables(helper, args)
    if result is None:
        result = helper.accu_ident()
    return helper.comprehension(
        target,
        first,
        ACCUMULATOR,
        start,
        condition,
        step,
        result,
        iter_var2=second,
    )


def _variables(helper: MacroHelper, args: tuple[Expr, ...]) -> tuple[str, str]:
    first, second = (_simple_name(helper, arg) for arg in args[:2])
    if first == second:
        raise helper.error(args[1], f"duplicate variable name: {first}")
    for name, arg in ((first, args[0]), (second, args[1])):
        if name in (ACCUMULATOR, _OLD_ACCUMULATOR):
            raise helper.error(arg, "iteration variable overwrites accumulator variable")
    return first, second


def _simple_name(helper: MacroHelper, arg: Expr) -> str:
    if not isinstance(arg, Ident):
        raise helper.error(arg, "argument must be a simple name")
    return arg.name
