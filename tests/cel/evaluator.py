"""A small evaluator, so that libraries can be tested without the real one.

It knows no types and no costs: a function is whichever overload takes the values. What it does
not know it calls Unsupported.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moorage.cel.lang.ast import (
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    Expr,
    Ident,
    Literal,
    Select,
)
from moorage.cel.lang.environment import Function, Library
from moorage.cel.lang.equality import compare, contains, equal, has_key
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.macros import STANDARD_MACROS
from moorage.cel.lang.parser import parse
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.values import NONE, Optional, TypeValue, key_value, map_key, runtime_type
from tests.cel.calls import PYTHON_TYPES

Variables = Mapping[str, Callable[[], Any]]


class Unsupported(Exception):  # noqa: N818 - it is no fault
    """Something that only the real evaluator knows."""


class Evaluator:
    """Evaluates expressions that use some libraries."""

    def __init__(self, *libraries: Library) -> None:
        self._macros = (*STANDARD_MACROS, *(m for library in libraries for m in library.macros))
        self._functions: dict[str, list[Function]] = {}
        for library in libraries:
            for function in library.functions:
                self._functions.setdefault(function.name, []).append(function)

    def evaluate(self, text: str) -> Any:
        """Return the value of an expression."""
        return self._value(parse(text, self._macros).expr, {})

    def _value(self, node: Expr, variables: Variables) -> Any:
        match node:
            case Literal(value=value):
                return value
            case Ident(name=name):
                return _variable(variables, name)
            case Select():
                return self._selected(node, variables)
            case CreateList():
                return self._list(node, variables)
            case CreateMap():
                return self._map(node, variables)
            case Comprehension():
                return self._looped(node, variables)
            case Call():
                return self._called(node, variables)
            case _:
                raise Unsupported(type(node).__name__)

    def _selected(self, node: Select, variables: Variables) -> Any:
        operand = self._value(node.operand, variables)
        if not isinstance(operand, dict) or node.test_only:
            raise Unsupported("select")
        return _element(operand, node.field)

    def _list(self, node: CreateList, variables: Variables) -> list[Any]:
        values: list[Any] = []
        for position, element in enumerate(node.elements):
            value = self._value(element, variables)
            if position not in node.optional:
                values.append(value)
            elif value.has_value:
                values.append(value.value)
        return values

    def _map(self, node: CreateMap, variables: Variables) -> dict[Any, Any]:
        entries = {}
        for entry in node.entries:
            key, value = (self._value(part, variables) for part in (entry.key, entry.value))
            if not entry.optional:
                entries[map_key(key)] = value
            elif value.has_value:
                entries[map_key(key)] = value.value
        return entries

    def _looped(self, node: Comprehension, variables: Variables) -> Any:
        accumulated = _once(lambda: self._value(node.accu_init, variables))
        for names in _iterations(node, self._value(node.iter_range, variables)):
            inner = {**variables, node.accu_var: accumulated, **names}
            if not self._value(node.loop_condition, inner):
                break
            accumulated = self._stepped(node.loop_step, inner)
        return self._value(node.result, {**variables, node.accu_var: accumulated})

    def _stepped(self, step: Expr, variables: Variables) -> Callable[[], Any]:
        """Return what a step of a loop gives; an error is one only if it is looked at."""
        try:
            return _known(self._value(step, variables))
        except EvalError as error:
            return _failing(error)

    def _called(self, node: Call, variables: Variables) -> Any:
        name, parts = node.function, node.args
        if isinstance(node.target, Ident) and f"{node.target.name}.{name}" in self._functions:
            name = f"{node.target.name}.{name}"
        elif node.target is not None:
            parts = (node.target, *parts)
        if name in ("_&&_", "_||_"):
            return self._decided(parts, variables, decisive=name == "_||_")
        if name == "@not_strictly_false":
            return self._is_not_false(parts[0], variables)
        if name == "_?_:_":
            return self._value(parts[1 if self._value(parts[0], variables) else 2], variables)
        args = tuple(self._value(part, variables) for part in parts)
        if name in _OPERATORS:
            return _OPERATORS[name](*args)
        return self._applied(name, args)

    def _is_not_false(self, part: Expr, variables: Variables) -> bool:
        try:
            return self._value(part, variables) is not False
        except EvalError:
            return True

    def _decided(self, parts: Iterable[Expr], variables: Variables, *, decisive: bool) -> bool:
        failure: EvalError | None = None
        for part in parts:
            try:
                if bool(self._value(part, variables)) is decisive:
                    return decisive
            except EvalError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return not decisive

    def _applied(self, name: str, args: tuple[Any, ...]) -> Any:
        for function in self._functions.get(name, ()):
            for overload in function.overloads:
                if overload.evaluate is not None and overload.accepts(args, PYTHON_TYPES):
                    return overload.evaluate(*args)
        raise Unsupported(name)


def _variable(variables: Variables, name: str) -> Any:
    if name not in variables:
        raise Unsupported(name)
    return variables[name]()


def _known(value: Any) -> Callable[[], Any]:
    return lambda: value


def _failing(error: EvalError) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


def _once(make: Callable[[], Any]) -> Callable[[], Any]:
    made: list[Any] = []

    def value() -> Any:
        if not made:
            made.append(make())
        return made[0]

    return value


def _iterations(node: Comprehension, values: Any) -> Iterable[dict[str, Callable[[], Any]]]:
    if not isinstance(values, dict | list | tuple):
        raise Unsupported("loop over what is no list or map")
    is_map = isinstance(values, dict)
    pairs: Iterable[Any] = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in pairs:
        key = key_value(key)
        if node.iter_var2 is not None:
            yield {node.iter_var: _known(key), node.iter_var2: _known(value)}
        else:
            yield {node.iter_var: _known(key if is_map else value)}


def _element(values: Any, key: Any) -> Any:
    if isinstance(values, Optional):
        return _optional_element(values, key)
    if isinstance(values, dict):
        if not has_key(values, key):
            raise EvalError(f"no such key: {key}")
        return values[map_key(key)]
    if not 0 <= key < len(values):
        raise EvalError(f"index out of bounds: {key}")
    return values[int(key)]


def _optional_element(values: Any, key: Any) -> Optional:
    if isinstance(values, Optional):
        return _optional_element(values.value, key) if values.has_value else NONE
    if not isinstance(values, list | dict):
        return NONE
    try:
        return Optional(_element(values, key))
    except EvalError:
        return NONE


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, float):
        raise Unsupported("division of doubles")
    if b == 0:
        raise EvalError("division by zero")
    return int(a / b)


def _compared(holds: Callable[[int, int], bool]) -> Callable[[Any, Any], bool]:
    return lambda a, b: holds(compare(a, b), 0)


def _size(value: Any) -> int:
    return len(value)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "_+_": operator.add,
    "_-_": operator.sub,
    "_*_": operator.mul,
    "_/_": _divide,
    "_%_": operator.mod,
    "-_": operator.neg,
    "!_": operator.not_,
    "_==_": equal,
    "_!=_": lambda a, b: not equal(a, b),
    "_<_": _compared(operator.lt),
    "_<=_": _compared(operator.le),
    "_>_": _compared(operator.gt),
    "_>=_": _compared(operator.ge),
    "@in": lambda a, b: has_key(b, a) if isinstance(b, dict) else contains(b, a),
    "_[_]": _element,
    "_[?_]": _optional_element,
    "_?._": _optional_element,
    "size": _size,
    "dyn": lambda value: value,
    "type": lambda value: TypeValue(runtime_type(value, PYTHON_TYPES)),
    "string": lambda value: str(value) if type(value) is int else _unsupported(),
    "duration": Duration.parse,
    "timestamp": Timestamp.parse,
}


def _unsupported() -> Any:
    raise Unsupported("conversion")
