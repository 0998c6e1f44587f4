"""Interpretables: the plan of an evaluation, a tree of steps that return a value and add a cost.

This is the reference evaluator. An error is a value here, a Failure, because the cost of an error
on its way out depends on every step it passes: a call adds its own cost although an argument
failed, `&&` goes on to its other side, a list that cannot be made still costs a list. Generated
code is faster where nothing fails, and falls back to the plan where something does.

    # activation: the variables in scope, and the cost so far
    # attribute: a variable or value with its qualifiers, `device.attributes["a"].b`, one step
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from moorage.cel.lang.environment import Overload
from moorage.cel.lang.equality import equal
from moorage.cel.lang.errors import COST_EXCEEDED, Cancelled, EvalError
from moorage.cel.lang.metering import CHECK_EVERY_COST, Meter
from moorage.cel.lang.values import BoolKey, Optional, UInt, key_value


class Failure:
    """An error as a value."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return f"Failure({self.message!r})"


class Budget:
    """The cost tracker of an evaluation: its cost so far, and its limit."""

    __slots__ = ("_meter", "_next", "limit", "spent")

    def __init__(self, limit: int, meter: Meter | None = None) -> None:
        self.limit = limit
        self.spent = 0
        self._meter = meter
        self._next = limit if meter is None else min(limit, CHECK_EVERY_COST)

    def spend(self, cost: int) -> None:
        """Add a cost, and end the evaluation if it exceeds the limit, or is interrupted."""
        self.spent += cost
        if self.spent > self._next:
            if self.spent > self.limit:
                raise Cancelled(COST_EXCEEDED)
            assert self._meter is not None
            self._meter.check()
            self._next = min(self.spent + CHECK_EVERY_COST, self.limit)


class Activation:
    """Variables by name, in front of those of the enclosing activation."""

    __slots__ = ("budget", "parent", "variables")

    def __init__(
        self, variables: dict[str, Any], budget: Budget, parent: Activation | None = None
    ) -> None:
        self.variables = variables
        self.budget = budget
        self.parent = parent

    def resolve(self, name: str) -> Any:
        """Return the value of a variable, or a Failure."""
        frame: Activation | None = self
        while frame is not None:
            if name in frame.variables:
                value = frame.variables[name]
                return value.force() if type(value) is Lazy else value
            frame = frame.parent
        return Failure(f"no such attribute(s): {name}")

    def outermost(self) -> Activation:
        """Return the activation of the caller's variables, for names with a leading dot."""
        frame = self
        while frame.parent is not None:
            frame = frame.parent
        return frame


class Lazy:
    """An initial value that is evaluated when it is first used, if ever."""

    __slots__ = ("_frame", "_step", "_value")

    def __init__(self, step: Interpretable, frame: Activation) -> None:
        self._step: Interpretable | None = step
        self._frame = frame
        self._value: Any = None

    def force(self) -> Any:
        """Return the value."""
        if self._step is not None:
            step, self._step = self._step, None
            self._value = step.run(self._frame)
        return self._value


class Interpretable:
    """One step of a plan."""

    def run(self, frame: Activation) -> Any:
        """Return the value or a Failure; spend the cost."""
        raise NotImplementedError


class Constant(Interpretable):
    """A constant; costs nothing."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def run(self, frame: Activation) -> Any:  # noqa: ARG002
        """Return the value."""
        return self.value


class Logic(Interpretable):
    """`&&` and `||`: a deciding side decides, whatever the other gives."""

    def __init__(self, terms: tuple[Interpretable, ...], *, decisive: bool) -> None:
        self.terms = terms
        self.decisive = decisive  # False for &&, True for ||

    def run(self, frame: Activation) -> Any:
        """Return the decision, or the first failure."""
        failure: Failure | None = None
        for term in self.terms:
            value = term.run(frame)
            if value is self.decisive:
                return value
            if value is not (not self.decisive) and failure is None:
                failure = value if isinstance(value, Failure) else Failure("no such overload")
        return failure if failure is not None else not self.decisive


# --- calls ----------------------------------------------------------------------------------------


CallCost = Callable[[tuple[Any, ...], Any], int]


class FunctionCall(Interpretable):
    """A function call. All arguments are evaluated, unless `stops_early`, even if one fails."""

    def __init__(
        self,
        evaluate: Callable[..., Any],
        args: tuple[Interpretable, ...],
        *,
        cost: CallCost | None,
        stops_early: bool,
        is_strict: bool = True,
        certain: Overload | None = None,
    ) -> None:
        self.evaluate = evaluate
        self.certain = certain  # the overload, if the types of all arguments are certain
        self.args = args
        self.cost = cost
        self.stops_early = stops_early
        self.is_strict = is_strict

    def run(self, frame: Activation) -> Any:
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


class Membership(Interpretable):
    """`x in [constants]`, which costs nothing but x."""

    def __init__(self, arg: Interpretable, members: list[Any]) -> None:
        self.arg = arg
        self.members = members

    def run(self, frame: Activation) -> Any:
        """Return whether the value is a member."""
        value = self.arg.run(frame)
        if isinstance(value, Failure):
            return value
        return any(equal(value, member) for member in self.members)


class OrElse(Interpretable):
    """`a.or(b)` and `a.orValue(b)`: b is evaluated only if a has no value."""

    def __init__(self, first: Interpretable, second: Interpretable, *, unwraps: bool) -> None:
        self.first = first
        self.second = second
        self.unwraps = unwraps

    def run(self, frame: Activation) -> Any:
        """Return the first that has a value."""
        value = self.first.run(frame)
        if isinstance(value, Failure):
            return value
        if not isinstance(value, Optional):
            return Failure("no such overload")
        if value.has_value:
            return value.value if self.unwraps else value
        return self.second.run(frame)


# --- comprehensions -------------------------------------------------------------------------------


class Fold(Interpretable):
    """A comprehension. The accumulator starts lazily: if it is never used, it costs nothing."""

    def __init__(
        self,
        iter_range: Interpretable,
        iter_var: str,
        iter_var2: str | None,
        accu_var: str,
        accu_init: Interpretable,
        condition: Interpretable,
        step: Interpretable,
        result: Interpretable,
    ) -> None:
        self.iter_range = iter_range
        self.iter_var = iter_var
        self.iter_var2 = iter_var2
        self.accu_var = accu_var
        self.accu_init = accu_init
        self.condition = condition
        self.step = step
        self.result = result

    def run(self, frame: Activation) -> Any:
        """Return the result after the last element, or the first that ends the loop."""
        values = self.iter_range.run(frame)
        if isinstance(values, Failure):
            return values
        accumulator = Activation({self.accu_var: Lazy(self.accu_init, frame)}, frame.budget, frame)
        loop = Activation({}, frame.budget, accumulator)
        pairs = self._pairs(values)
        if isinstance(pairs, Failure):
            return pairs
        for first, second in pairs:
            loop.variables[self.iter_var] = first
            if self.iter_var2 is not None:
                loop.variables[self.iter_var2] = second
            if self.condition.run(loop) is False:
                break
            accumulator.variables[self.accu_var] = self.step.run(loop)
        return self.result.run(accumulator)

    def _pairs(self, values: Any) -> Iterator[tuple[Any, Any]] | Failure:
        if isinstance(values, dict):
            return ((key_value(key), value) for key, value in values.items())
        if isinstance(values, list | tuple):
            if self.iter_var2 is None:
                return ((value, None) for value in values)
            return iter(enumerate(values))
        if self.iter_var2 is not None:
            return Failure(f"unsupported comprehension range type: {go_type(values)}")
        return Failure(f"got '{go_type(values)}', expected iterable type")


_GO_TYPES = {
    bool: "types.Bool",
    int: "types.Int",
    UInt: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    BoolKey: "types.Bool",
    Optional: "*types.Optional",
}


def go_type(value: Any) -> str:
    """Return the name of a value's type in Kubernetes' messages."""
    return _GO_TYPES.get(type(value), type(value).__name__)
