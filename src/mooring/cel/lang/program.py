"""An expression, compiled: parse, check, validate, plan; then evaluate as often as wanted."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from mooring.cel.lang.checked import Checked
from mooring.cel.lang.checker import check
from mooring.cel.lang.compiler import Fast, Many, compile_many, compile_one
from mooring.cel.lang.environment import Environment
from mooring.cel.lang.parser import parse
from mooring.cel.lang.planner import plan
from mooring.cel.lang.steps import Budget, Failure, Frame, Step
from mooring.cel.lang.types import Type
from mooring.cel.lang.validators import validate
from mooring.cel.lang.values import Cancelled, EvalError


class Evaluated(NamedTuple):
    """What evaluating gave: a value or an error, and what it cost."""

    value: Any
    cost: int | None
    error: str | None = None


class Program:
    """A compiled expression."""

    def __init__(self, checked: Checked, step: Step, environment: Environment) -> None:
        self.checked = checked
        self.environment = environment
        self._step = step

    @property
    def output_type(self) -> Type:
        """The type that the checker found for the expression."""
        return self.checked.output_type

    @cached_property
    def fast(self) -> Fast | None:
        """The generated code, made when it is first wanted: who only checks needs none."""
        return compile_one(self._step)

    @cached_property
    def many(self) -> Many | None:
        """The generated code for many evaluations, made when it is first wanted."""
        return compile_many(self._step, self.environment.cells)

    def evaluate(self, variables: dict[str, Any], *, cost_limit: int) -> Evaluated:
        """Return the value for these variables; never raises."""
        if self.fast is not None:
            try:
                return Evaluated(*self.fast(variables, cost_limit))
            except Exception:  # noqa: S110 - whatever it is, the plan knows better
                pass
        return self.run_plan(variables, cost_limit=cost_limit)

    def run_plan(self, variables: dict[str, Any], *, cost_limit: int) -> Evaluated:
        """Return the value by running the plan, step by step."""
        budget = Budget(cost_limit)
        try:
            value = self._step.run(Frame(variables, budget))
        except Cancelled as cancelled:
            return Evaluated(None, budget.spent, str(cancelled))
        except EvalError as error:
            return Evaluated(None, budget.spent, str(error))
        except RecursionError:
            return Evaluated(None, budget.spent, "nested too deeply")
        if isinstance(value, Failure):
            return Evaluated(None, budget.spent, value.message)
        return Evaluated(value, budget.spent)


def compile_expression(text: str, environment: Environment) -> Program:
    """Return the compiled expression.

    Raises CompileError for what the language refuses, InstantiationError for what only shows
    when constants are worked out.
    """
    checked = check(parse(text, environment.macros), environment)
    validate(checked, environment)
    return Program(checked, plan(checked, environment), environment)
