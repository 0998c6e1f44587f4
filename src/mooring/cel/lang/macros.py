"""The standard macros.

    has(e.f)                e.f is there
    e.all(x, p)             p holds for every element        absorbs errors like &&
    e.exists(x, p)          p holds for some element         absorbs errors like ||
    e.exists_one(x, p)      p holds for exactly one element
    e.map(x, t)             [t, ...]
    e.map(x, p, t)          [t, ...] of the elements for which p holds
    e.filter(x, p)          the elements for which p holds

All but has() become comprehensions over e that collect into the accumulator, a variable whose
name no expression can write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mooring.cel.lang import ast
from mooring.cel.lang.ast import Expr, Ident, Select
from mooring.cel.lang.declarations import Expander, Macro, MacroHelper
from mooring.cel.lang.errors import Issue

ACCUMULATOR: Final = "@result"
# What the accumulator was called before; still refused as a variable.
_OLD_ACCUMULATOR: Final = "__result__"


def iteration_variable(helper: MacroHelper, argument: Expr, complaint: str) -> str:
    """Return the name of the variable of a loop; anything but a free name is an error."""
    if not isinstance(argument, Ident):
        raise helper.error(argument, complaint)
    if argument.name in (ACCUMULATOR, _OLD_ACCUMULATOR):
        raise helper.error(argument, "iteration variable overwrites accumulator variable")
    return argument.name


def _has(helper: MacroHelper, _target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    (argument,) = args
    if not isinstance(argument, Select):
        raise helper.error(argument, "invalid argument to has() macro")
    return helper.presence(argument.operand, argument.field)


# From the predicate: the initial value, the condition, the step and the result of a loop.
_Loop = Callable[[MacroHelper, Expr], tuple[Expr, Expr, Expr, Expr]]


def _all(helper: MacroHelper, predicate: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    return (
        helper.literal(True),
        helper.call("@not_strictly_false", helper.accu_ident()),
        helper.call("_&&_", helper.accu_ident(), predicate),
        helper.accu_ident(),
    )


def _exists(helper: MacroHelper, predicate: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    return (
        helper.literal(False),
        helper.call("@not_strictly_false", helper.call("!_", helper.accu_ident())),
        helper.call("_||_", helper.accu_ident(), predicate),
        helper.accu_ident(),
    )


def _exists_one(helper: MacroHelper, predicate: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    one_more = helper.call("_+_", helper.accu_ident(), helper.literal(1))
    return (
        helper.literal(0),
        helper.literal(True),
        helper.call("_?_:_", predicate, one_more, helper.accu_ident()),
        helper.call("_==_", helper.accu_ident(), helper.literal(1)),
    )


def _quantifier(loop: _Loop) -> Expander:
    """Return what expands `e.name(x, predicate)` to a loop."""

    def expand(helper: MacroHelper, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
        assert target is not None
        variable = iteration_variable(helper, args[0], "argument must be a simple name")
        init, condition, step, result = loop(helper, args[1])
        return helper.comprehension(target, variable, ACCUMULATOR, init, condition, step, result)

    return expand


def _map(helper: MacroHelper, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    predicate = args[1] if len(args) == 3 else None
    return _collect(helper, target, args[0], predicate, args[-1])


def _filter(helper: MacroHelper, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    return _collect(helper, target, args[0], args[1], args[0])


def _collect(
    helper: MacroHelper,
    target: Expr | None,
    argument: Expr,
    predicate: Expr | None,
    element: Expr,
) -> Expr:
    """Return the loop that makes a list of elements."""
    assert target is not None
    variable = iteration_variable(helper, argument, "argument is not an identifier")
    step = helper.call("_+_", helper.accu_ident(), helper.new_list(element))
    if predicate is not None:
        step = helper.call("_?_:_", predicate, step, helper.accu_ident())
    return helper.comprehension(
        target,
        variable,
        ACCUMULATOR,
        helper.new_list(),
        helper.literal(True),
        step,
        helper.accu_ident(),
    )


STANDARD_MACROS: Final[tuple[Macro, ...]] = (
    Macro("has", 1, False, _has),
    Macro("all", 2, True, _quantifier(_all)),
    Macro("exists", 2, True, _quantifier(_exists)),
    Macro("exists_one", 2, True, _quantifier(_exists_one)),
    Macro("map", 2, True, _map),
    Macro("map", 3, True, _map),
    Macro("filter", 2, True, _filter),
)


class MacroError(Exception):
    """A macro whose arguments do not fit."""

    def __init__(self, issue: Issue) -> None:
        super().__init__(issue.message)
        self.issue = issue


class CallSite:
    """What a macro builds nodes with; all stand at the place of the call."""

    def __init__(self, next_id: Callable[[], int], offset: int) -> None:
        self._next_id = next_id
        self._offset = offset

    def _place(self) -> tuple[int, int]:
        return self._next_id(), self._offset

    def literal(self, value: Any) -> Expr:
        """Return a constant."""
        return ast.Literal(*self._place(), value)

    def ident(self, name: str) -> Expr:
        """Return a name."""
        return ast.Ident(*self._place(), name)

    def accu_ident(self) -> Expr:
        """Return the accumulator."""
        return ast.Ident(*self._place(), ACCUMULATOR)

    def select(self, operand: Expr, field: str) -> Expr:
        """Return `operand.field`."""
        return ast.Select(*self._place(), operand, field)

    def presence(self, operand: Expr, field: str) -> Expr:
        """Return `has(operand.field)`."""
        return ast.Select(*self._place(), operand, field, test_only=True)

    def call(self, function: str, *args: Expr) -> Expr:
        """Return `function(args)`."""
        return ast.Call(*self._place(), function, args)

    def member_call(self, function: str, target: Expr, *args: Expr) -> Expr:
        """Return `target.function(args)`."""
        return ast.Call(*self._place(), function, args, target)

    def new_list(self, *elements: Expr) -> Expr:
        """Return `[elements]`."""
        return ast.CreateList(*self._place(), elements)

    def new_map(self) -> Expr:
        """Return `{}`."""
        return ast.CreateMap(*self._place(), ())

    def comprehension(
        self,
        iter_range: Expr,
        iter_var: str,
        accu_var: str,
        accu_init: Expr,
        loop_condition: Expr,
        loop_step: Expr,
        result: Expr,
        *,
        iter_var2: str | None = None,
    ) -> Expr:
        """Return a loop."""
        return ast.Comprehension(
            *self._place(),
            iter_range,
            iter_var,
            iter_var2,
            accu_var,
            accu_init,
            loop_condition,
            loop_step,
            result,
        )

    def error(self, at: Expr, message: str) -> Exception:
        """Return the error to raise at a node."""
        return MacroError(Issue(at.offset, message))
