"""Which overload runs for which values, when the checker could not tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mooring.cel.lang import types as t
from mooring.cel.lang.declarations import Function, Overload
from mooring.cel.lang.types import Kind, Type
from mooring.cel.lang.values import EvalError, Optional, TypeValue, UInt

PythonTypes = Mapping[type, Type]

_BASE: dict[type, Type] = {
    type(None): t.NULL,
    bool: t.BOOL,
    int: t.INT,
    UInt: t.UINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    list: t.list_of(t.DYN),
    tuple: t.list_of(t.DYN),
    dict: t.map_of(t.DYN, t.DYN),
    Optional: t.optional_of(t.DYN),
    TypeValue: t.TYPE,
}


def runtime_type(value: Any, python_types: PythonTypes) -> Type:
    """Return the CEL type of a value."""
    found = _BASE.get(type(value)) or python_types.get(type(value))
    if found is not None:
        return found
    for class_, type_ in (*_BASE.items(), *python_types.items()):
        if isinstance(value, class_):
            return type_
    raise TypeError(f"{type(value).__name__} is no CEL value")


def fits(value: Any, wanted: Type, python_types: PythonTypes) -> bool:
    """Tell whether a value may stand for a parameter; lists and maps by their first element."""
    if wanted.is_dyn or wanted.kind is Kind.TYPE_PARAM:
        return True
    if runtime_type(value, python_types).name != wanted.name:
        return False
    if wanted.kind is Kind.LIST and len(value):
        return fits(value[0], wanted.params[0], python_types)
    if wanted.kind is Kind.MAP and len(value):
        key, item = next(iter(value.items()))
        return fits(key, wanted.params[0], python_types) and fits(
            item, wanted.params[1], python_types
        )
    return True


def accepts(overload: Overload, args: tuple[Any, ...], python_types: PythonTypes) -> bool:
    """Tell whether the values fit the overload's signature."""
    return len(args) == len(overload.params) and all(
        fits(value, wanted, python_types)
        for value, wanted in zip(args, overload.params, strict=True)
    )


def call_guarded(
    function: str, overload: Overload, args: tuple[Any, ...], python_types: PythonTypes
) -> Any:
    """Return the result of one overload, if the values fit it."""
    if overload.evaluate is None or not accepts(overload, args, python_types):
        raise no_such_overload(function, args, python_types)
    return overload.evaluate(*args)


def call_any(function: Function, args: tuple[Any, ...], python_types: PythonTypes) -> Any:
    """Return the result of the first overload that the values fit."""
    for overload in function.overloads:
        if overload.evaluate is not None and accepts(overload, args, python_types):
            return overload.evaluate(*args)
    raise no_such_overload(function.name, args, python_types)


def no_such_overload(function: str, args: tuple[Any, ...], python_types: PythonTypes) -> EvalError:
    """Return the error that names the function and the types it was given."""
    names = ", ".join(runtime_type(value, python_types).name for value in args)
    return EvalError(f"no such overload: {function}({names})")
