"""The plan of an evaluation: a tree of steps, each of which yields a value and adds its cost.

This is the reference evaluator. An error is a value here, a Failure, because what an error costs
on its way out depends on every step it passes: a call adds its own cost although an argument
failed, `&&` goes on to its other side, a list that cannot be made still costs a list. Generated
code is faster where nothing fails, and comes back here where something does.

# frame: the variables in sight, and what was spent so far
# attribute: a variable or value with its qualifiers, `device.attributes["a"].b`, one step in all
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.cel.lang.declarations import Overload
from mooring.cel.lang.equality import equal
from mooring.cel.lang.values import (
    Cancelled,
    EvalError,
)

COST_EXCEEDED = "operation cancelled: actual cost limit exceeded"


class Failure:
    """An error as a value."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return f"Failure({self.message!r})"


class Budget:
    """What an evaluation has spent and may spend."""

    __slots__ = ("limit", "spent")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.spent = 0

    def spend(self, cost: int) -> None:
        """Add to what was spent, and end the evaluation if it is too much."""
        self.spent += cost
        if self.spent > self.limit:
            raise Cancelled(COST_EXCEEDED)


class Frame:
    """Variables by name, those of an enclosing frame behind them."""

    __slots__ = ("budget", "parent", "variables")

    def __init__(
        self, variables: dict[str, Any], budget: Budget, parent: Frame | None = None
    ) -> None:
        self.variables = variables
        self.budget = budget
        self.parent = parent

    def resolve(self, name: str) -> Any:
        """Return the value of a variable, or a Failure."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.variables:
                value = frame.variables[name]
                return value.force() if type(value) is Lazy else value
            frame = frame.parent
        return Failure(f"no such attribute(s): {name}")

    def outermost(self) -> Frame:
        """Return the frame of the caller's variables, for names with a leading dot."""
        frame = self
        while frame.parent is not None:
            frame = frame.parent
        return frame


class Lazy:
    """An initial value that is worked out when it is first looked at, if ever."""

    __slots__ = ("_frame", "_step", "_value")

    def __init__(self, step: Step, frame: Frame) -> None:
        self._step: Step | None = step
        self._frame = frame
        self._value: Any = None

    def force(self) -> Any:
        """Return the value."""
        if self._step is not None:
            step, self._step = self._step, None
            self._value = step.run(self._frame)
        return self._value


class Step:
    """One step of a plan."""

    def run(self, frame: Frame) -> Any:
        """Return the value or a Failure; spend the cost."""
        raise NotImplementedError


class Constant(Step):
    """A value that is known; costs nothing."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def run(self, frame: Frame) -> Any:  # noqa: ARG002
        """Return the value."""
        return self.value


# --- logic --------------------------------------------------------------------------------


class Logic(Step):
    """`&&` and `||`: a deciding side decides, whatever the other gives."""

    def __init__(self, terms: tuple[Step, ...], *, decisive: bool) -> None:
        self.terms = terms
        self.decisive = decisive  # False for &&, True for ||

    def run(self, frame: Frame) -> Any:
        """Return the decision, or the first failure."""
        failure: Failure | None = None
        for term in self.terms:
            value = term.run(frame)
            if value is self.decisive:
                return value
            if value is not (not self.decisive) and failure is None:
                failure = value if isinstance(value, Failure) else Failure("no such overload")
        return failure if failure is not None else not self.decisive


# --- calls --------------------------------------------------------------------------------

CallCost = Callable[[tuple[Any, ...], Any], int]


class Call(Step):
    """A function call. All arguments are evaluated, unless `stops_early`, even if one fails."""

    def __init__(
        self,
        evaluate: Callable[..., Any],
        args: tuple[Step, ...],
        *,
        cost: CallCost | None,
        stops_early: bool,
        is_strict: bool = True,
        certain: Overload | None = None,
    ) -> None:
        self.evaluate = evaluate
        self.certain = certain  # the overload, if the types of all arguments are known for sure
        self.args = args
        self.cost = cost
        self.stops_early = stops_early
        self.is_strict = is_strict

    def run(self, frame: Frame) -> Any:
        """Return the result."""
        values = []
        failure: Failure | None = None
        for arg in self.args:
            value = arg.run(frame)
            values.append(value)
            if self.is_strict and isinstance(value, Failure):
                if self.stops_early:
                    return value
                failure = failure or value
        arguments = tuple(values)
        result = failure or self._evaluated(arguments)
        frame.budget.spend(self._cost(arguments, result))
        return result

    def _evaluated(self, arguments: tuple[Any, ...]) -> Any:
        try:
            return self.evaluate(*arguments)
        except EvalError as error:
            return Failure(str(error))

    def _cost(self, arguments: tuple[Any, ...], result: Any) -> int:
        return 1 if self.cost is None else self.cost(arguments, result)


class Membership(Step):
    """`x in [constants]`, which costs nothing but x."""

    def __init__(self, arg: Step, members: list[Any]) -> None:
        self.arg = arg
        self.members = members

    def run(self, frame: Frame) -> Any:
        """Return whether the value is a member."""
        value = self.arg.run(frame)
        if isinstance(value, Failure):
            return value
        return any(equal(value, member) for member in self.members)
