"""Kubernetes' functions, called as expressions call them with nothing but a parser around them.

Only expressions of calls, constants, lists and `==` can be answered like this; that is most of
what was recorded about these functions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from moorage.cel.lang import ast
from moorage.cel.lang.costs import SHORTER, Argument, Range
from moorage.cel.lang.environment import Function, Library, Overload
from moorage.cel.lang.equality import equal
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.library import optionals
from moorage.cel.lang.parser import parse
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.types import BOOL, DURATION, STRING, TIMESTAMP, Type, param
from moorage.cel.lang.values import Optional, double_text, key_value, runtime_type
from moorage.cel.library import kubernetes_libraries, with_equality_costs
from tests.corpus import corpus

EQUALS = Overload(
    "equals",
    (param("A"), param("A")),
    BOOL,
    equal,
    runtime_cost=SHORTER[0],
)
STANDARD = Library("standard", functions=(Function("_==_", (EQUALS,)),))
LIBRARIES = (
    with_equality_costs(STANDARD),
    optionals.library(),
    *kubernetes_libraries(with_includes=True),
)
PYTHON_TYPES: dict[type, Type] = {Duration: DURATION, Timestamp: TIMESTAMP}
for _library in LIBRARIES:
    PYTHON_TYPES |= _library.python_types


class NotDirect(Exception):  # noqa: N818 - nothing is wrong with it
    """An expression that needs more than calls."""


@dataclass
class Answer:
    """What an expression gave."""

    value: Any = None
    error: str | None = None
    cost: int = 0


def answer(expression: str) -> Answer:
    """Return what an expression gives, or raise NotDirect."""
    walk = _Walk()
    value = walk.run(parse(expression, ()).expr)
    if isinstance(value, EvalError):
        return Answer(error=str(value), cost=walk.cost)
    return Answer(value, cost=walk.cost)


def value_of(expression: str) -> Any:
    """Return the value of an expression that has one."""
    given = answer(expression)
    assert given.error is None
    return given.value


def error_of(expression: str) -> str:
    """Return the error of an expression that has one."""
    error = answer(expression).error
    assert error is not None
    return error


@dataclass
class _Walk:
    """One walk over a tree. An error is a value here: it passes through calls, and they cost."""

    cost: int = 0

    def run(self, node: ast.Expr) -> Any:
        match node:
            case ast.Literal(value=value):
                return value
            case ast.CreateList(elements=elements):
                values = [self.run(element) for element in elements]
                self.cost += 0 if _is_constant(node) else 10
                return next((each for each in values if isinstance(each, EvalError)), values)
            case ast.Call(function="dyn", args=(arg,)):
                value = self.run(arg)
                self.cost += 0 if _is_constant(arg) else 1
                return value
            case ast.Call():
                return self._call(node)
        raise NotDirect

    def _call(self, node: ast.Call) -> Any:
        name, parts = node.function, node.args
        if isinstance(node.target, ast.Ident):
            name = f"{node.target.name}.{name}"
        elif node.target is not None:
            parts = (node.target, *parts)
        if name not in _functions():
            raise NotDirect
        args = tuple(map(self.run, parts))
        plain = tuple(None if isinstance(arg, EvalError) else arg for arg in args)
        failed = next((arg for arg in args if isinstance(arg, EvalError)), None)
        overload = _overload(name, plain, any_fits=failed is not None)
        result = failed or _result(overload, args)
        cost = overload.runtime_cost
        self.cost += 1 if cost is None else cost(plain, result)
        return result


def _overload(name: str, args: tuple[Any, ...], *, any_fits: bool) -> Overload:
    for overload in _functions()[name]:
        if any_fits or overload.accepts(args, PYTHON_TYPES):
            return overload
    raise NotDirect


def _result(overload: Overload, args: tuple[Any, ...]) -> Any:
    assert overload.evaluate is not None
    try:
        return overload.evaluate(*args)
    except EvalError as error:
        return error


def _is_constant(node: ast.Expr) -> bool:
    if isinstance(node, ast.CreateList):
        return all(map(_is_constant, node.elements))
    if isinstance(node, ast.Call):
        return node.function == "dyn" and all(map(_is_constant, node.args))
    return isinstance(node, ast.Literal)


@cache
def _functions() -> dict[str, list[Overload]]:
    found: dict[str, list[Overload]] = {}
    for library in LIBRARIES:
        for function in library.functions:
            found.setdefault(function.name, []).extend(function.overloads)
    return found


# --- arguments of estimates -----------------------------------------------------------------------


def argument(low: int, high: int | None = None, type_: Type = STRING) -> Argument:
    """Return an argument of a size."""
    return Argument(ast.Ident(1, 0, "x"), type_, Range(low, low if high is None else high))


def estimate(
    function: str,
    id_: str,
    *args: Argument,
    target: Argument | None = None,
) -> Range:
    """Return what a call of an overload is estimated to cost."""
    (overload,) = (each for each in _functions()[function] if each.id == id_)
    assert overload.estimate is not None
    estimated = overload.estimate(target, args)
    assert estimated is not None
    return estimated.cost


# --- what was recorded ----------------------------------------------------------------------------


def assert_declared_as_recorded(*libraries: Library) -> None:
    """Assert that Kubernetes has these overloads with these signatures."""
    recorded = json.loads(corpus("cel", "environment.json").read_text())
    functions = recorded["StoredExpressions,list=true,consumable=true"]["functions"]
    for library in libraries:
        for function in library.functions:
            assert {*map(_signature, function.overloads)} <= {*functions[function.name]}


def _signature(overload: Overload) -> str:
    params = [_type_name(each) for each in overload.params]
    target = f"{params.pop(0)}." if overload.is_member else ""
    return f"{overload.id}: {target}({', '.join(params)}) -> {_type_name(overload.result)}"


def _type_name(type_: Type) -> str:
    if type_ == param(type_.name):
        return f"<{type_.name}>"
    inner = ", ".join(map(_type_name, type_.params))
    return f"{type_.name}({inner})" if inner else type_.name


def assert_answers_as_recorded(categories: Iterable[str], *, at_least: int) -> None:
    """Assert that all direct expressions of some categories answer as Kubernetes did."""
    wrong = []
    count = 0
    for line in _recorded(frozenset(categories)):
        try:
            given = answer(line["expression"])
        except NotDirect:
            continue
        count += 1
        wanted = line["expect"]
        value = None if given.error is not None else _shown(given.value, line["kind"])
        got = (value, given.error, given.cost)
        if got != (wanted["value"], wanted["eval_error"], wanted["cost"]):
            wrong.append((line["expression"], got))
    assert wrong == []
    assert count >= at_least


def _recorded(categories: frozenset[str]) -> Iterator[dict[str, Any]]:
    for text in corpus("cel", "public.jsonl").read_text().splitlines():
        line = json.loads(text)
        expect = line["expect"]
        # A result of the wrong type is refused, and a bare format shows a place in memory.
        is_refused = str(expect["eval_error"]).startswith(("CEL result", "unsupported"))
        is_place = expect["value_type"] == "kubernetes.NamedFormat"
        is_evaluated = expect["compile_error"] is None and "cost_limit" not in line
        if line["category"] in categories and is_evaluated and not is_refused and not is_place:
            yield line


def _shown(value: Any, kind: str) -> Any:
    """Return a value as the record shows it."""
    match value:
        case float():
            return double_text(value)
        case Optional():
            return {"some": _tagged(value.value)} if value.has_value else {"none": True}
        case list():
            return [_tagged(each) if kind == "raw" else _shown(each, kind) for each in value]
        case dict():
            pairs = [[_tagged(key_value(key)), _tagged(each)] for key, each in value.items()]
            return sorted(pairs, key=json.dumps)
        case None | bool() | str():
            return value
        case int():
            return int(value)
    return str(value)


def _tagged(value: Any) -> dict[str, Any]:
    return {"t": runtime_type(value, PYTHON_TYPES).name, "v": _shown(value, "raw")}
