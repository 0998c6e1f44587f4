"""The extension libraries, and what Kubernetes answered to expressions that use them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from moorage.cel.lang.environment import Library
from moorage.cel.lang.errors import CompileError, EvalError
from moorage.cel.lang.library import formatting, lists, optionals, strings
from moorage.cel.lang.macros import bindings_library, two_variable_library
from moorage.cel.lang.types import Type, TypeKind
from moorage.cel.lang.values import Optional, TypeValue, UInt, double_text, key_value, runtime_type
from tests.cel.calls import PYTHON_TYPES
from tests.cel.evaluator import Evaluator, Unsupported
from tests.corpus import corpus

MODULES = (strings, formatting, lists, optionals)
EVALUATOR = Evaluator(
    *(module.library() for module in MODULES),
    lists.sets_library(),
    bindings_library(),
    two_variable_library(),
)


def value_of(text: str) -> Any:
    """Return the value of an expression."""
    return EVALUATOR.evaluate(text)


def error_of(text: str) -> str:
    """Return the error of evaluating an expression, or what its macros say about it."""
    try:
        value = EVALUATOR.evaluate(text)
    except EvalError as error:
        return str(error)
    except CompileError as error:
        return error.issues[0].message
    raise AssertionError(f"{text} is {value!r}")


# --- recorded answers ---------------------------------------------------------------------


class Case(NamedTuple):
    """An expression, and what Kubernetes answers."""

    expression: str
    is_raw: bool
    value: Any
    error: str | None


def recorded(*categories: str) -> list[Case]:
    """Return the recorded expressions of some categories that could be evaluated."""
    return [case for category in categories for case in _cases().get(category, ())]


@cache
def _cases() -> dict[str, list[Case]]:
    cases: dict[str, list[Case]] = {}
    for line in corpus("cel", "public.jsonl").read_text().splitlines():
        record = json.loads(line)
        expect = record["expect"]
        if expect["compile_error"] is not None or "cost_limit" in record:
            continue
        case = Case(
            record["expression"], record["kind"] == "raw", expect["value"], expect["eval_error"]
        )
        cases.setdefault(record["category"], []).append(case)
    return cases


def differences(cases: Iterable[Case]) -> tuple[int, list[str]]:
    """Return how many cases could be tried, and which answers differ."""
    tried, different = 0, []
    for case in cases:
        try:
            answer = _answer(case)
        except (Unsupported, CompileError):
            continue
        tried += 1
        if answer != (case.value, case.error):
            different.append(f"{case.expression}: {answer}, not {(case.value, case.error)}")
    return tried, different


def _answer(case: Case) -> tuple[Any, str | None]:
    try:
        value = EVALUATOR.evaluate(case.expression)
    except EvalError as error:
        return None, str(error)
    if case.is_raw:
        return _encoded(value)["v"], None
    return _plain(value), None


def _plain(value: Any) -> Any:
    return list(map(_plain, value)) if isinstance(value, list | tuple) else value


def _encoded(value: Any) -> dict[str, Any]:
    return {"t": runtime_type(value, PYTHON_TYPES).name, "v": _content(value)}


def _content(value: Any) -> Any:
    match value:
        case Optional():
            return {"some": _encoded(value.value)} if value.has_value else {"none": True}
        case dict():
            entries = ([_encoded(key_value(key)), _encoded(item)] for key, item in value.items())
            return sorted(entries, key=json.dumps)
        case list() | tuple():
            return list(map(_encoded, value))
        case TypeValue():
            return value.name
        case float():
            return double_text(value)
        case UInt():
            return int(value)
        case _:
            return value


# --- recorded declarations ----------------------------------------------------------------


def signatures(library: Library) -> Iterator[tuple[str, str]]:
    """Yield the functions of a library and their signatures, as they were recorded."""
    for function in library.functions:
        for overload in function.overloads:
            params = list(map(_shown, overload.params))
            target = f"{params.pop(0)}." if overload.is_member else ""
            result = _shown(overload.result)
            yield function.name, f"{overload.id}: {target}({', '.join(params)}) -> {result}"


def recorded_signatures() -> dict[str, list[str]]:
    """Return the functions of the fullest environment and their signatures."""
    environments = json.loads(corpus("cel", "environment.json").read_text())
    functions = environments["StoredExpressions,list=true,consumable=true"]["functions"]
    assert isinstance(functions, dict)
    return functions


def _shown(type_: Type) -> str:
    if type_.kind is TypeKind.TYPE_PARAM:
        return f"<{type_.name}>"
    inner = f"({', '.join(map(_shown, type_.params))})" if type_.params else ""
    return type_.name + inner
