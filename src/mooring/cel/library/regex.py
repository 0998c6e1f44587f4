"""Kubernetes' functions of regular expressions: `'abc 123'.find('[0-9]+')`.

`matches` belongs to the language; these return what they find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.cel.lang.declarations import (
    CallEstimate,
    EstimatedArgument,
    Function,
    Library,
    Overload,
    Range,
)
from mooring.cel.lang.library.costs import estimate_match, matched
from mooring.cel.lang.regex import Regex, compile_regex
from mooring.cel.lang.types import INT, STRING, Type, list_of
from mooring.cel.lang.values import EvalError


def library() -> Library:
    """Return the library `kubernetes.regex`."""
    strings = list_of(STRING)
    return Library(
        "kubernetes.regex",
        functions=(
            Function("find", (_overload("string_find_string", (), STRING, _find),)),
            Function(
                "findAll",
                (
                    _overload("string_find_all_string", (), strings, _find_all),
                    _overload("string_find_all_string_int", (INT,), strings, _find_all),
                ),
            ),
        ),
    )


def _overload(
    id_: str, more: tuple[Type, ...], result: Type, evaluate: Callable[..., Any]
) -> Overload:
    return Overload(
        id_,
        (STRING, STRING, *more),
        result,
        evaluate,
        is_member=True,
        runtime_cost=matched,
        estimate=_estimate,
    )


def _estimate(
    target: EstimatedArgument | None, args: tuple[EstimatedArgument, ...]
) -> CallEstimate | None:
    """Return the estimate of a match; at worst every character is a find of its own."""
    assert target is not None
    return CallEstimate(estimate_match(target, args).cost, Range(0, target.size.high))


def _find(text: str, pattern: str) -> str:
    return _compiled(pattern).find(text) or ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return _compiled(pattern).find_all(text, limit=limit)


def _compiled(pattern: str) -> Regex:
    try:
        return compile_regex(pattern)
    except EvalError as error:
        raise EvalError(f"Illegal regex: {error}") from None
