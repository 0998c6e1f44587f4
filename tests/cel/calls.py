"""Calls of a library's functions without any expression around them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cel.lang.ast import Expr, Ident
from moorage.cel.lang.costs import Argument, Range
from moorage.cel.lang.environment import Library, Overload
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.types import DURATION, STRING, TIMESTAMP, Type
from moorage.cel.lang.unpaid_work import begin_evaluation

PYTHON_TYPES = {Duration: DURATION, Timestamp: TIMESTAMP}


class Caller:
    """A library whose functions can be called by name."""

    def __init__(self, library: Library) -> None:
        self._functions = {function.name: function for function in library.functions}

    def overload(self, name: str, *args: Any) -> Overload:
        """Return the overload that fits the arguments."""
        for overload in self._functions[name].overloads:
            if overload.accepts(args, PYTHON_TYPES):
                return overload
        raise LookupError(name)

    def by_id(self, name: str, id_: str) -> Overload:
        """Return an overload by its id."""
        return next(each for each in self._functions[name].overloads if each.id == id_)

    def call(self, name: str, *args: Any) -> Any:
        """Return the result."""
        evaluate = self.overload(name, *args).evaluate
        assert evaluate is not None
        begin_evaluation()
        return evaluate(*args)

    def refusal(self, name: str, *args: Any) -> str:
        """Return the error."""
        with pytest.raises(EvalError) as refusal:
            self.call(name, *args)
        return str(refusal.value)

    def cost(self, name: str, *args: Any) -> int:
        """Return what the call costs; one that fails has no result."""
        overload = self.overload(name, *args)
        try:
            result = self.call(name, *args)
        except EvalError:
            result = None
        return 1 if overload.runtime_cost is None else overload.runtime_cost(args, result)


def argument(
    size: Range,
    type_: Type = STRING,
    *,
    expr: Expr = Ident(1, 0, "x"),  # noqa: B008 - frozen
) -> Argument:
    """Return an argument of which only its size is known, or how it is written."""
    return Argument(expr, type_, size)


def size(low: int, high: int) -> Argument:
    """Return an argument of so many characters or elements."""
    return argument(Range(low, high))
