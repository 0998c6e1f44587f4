"""The lines of generated code, and the functions that it calls.

Names are made up: t0 is an intermediate value, k0 a constant, c the cost. A function that generated
code calls raises Unusual for anything that only the plan can decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from moorage.cel.lang.attributes import ABSENT, look_up
from moorage.cel.lang.equality import equal
from moorage.cel.lang.interpretable import Constant, Failure, FunctionCall
from moorage.cel.lang.library import operators
from moorage.cel.lang.metering import CostExceeded
from moorage.cel.lang.values import Optional, key_value

LINES_MAX = 1500


class NotCompilable(Exception):  # noqa: N818
    """A plan that cannot become code."""


class Lines:
    """The lines of a function's body, and the constants in them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self._names: dict[Any, str] = {}
        self._depth = 0
        self._temporaries = 0
        self._cost = 0  # known cost that no line has added yet

    def line(self, text: str) -> None:
        """Write a line at the current depth."""
        if len(self.lines) > LINES_MAX:
            raise NotCompilable
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Write an indented block; the known cost is added before it."""
        self.flush()
        self.line(header)
        self._depth += 1
        yield
        self.flush()
        self._depth -= 1

    def flush(self) -> None:
        """Write the line that adds the known cost."""
        if self._cost:
            self.line(f"c += {self._cost}")
            self._cost = 0

    def temporary(self) -> str:
        """Return a name that was not used before."""
        self._temporaries += 1
        return f"t{self._temporaries}"

    def constant(self, value: Any) -> str:
        """Return the name of a constant."""
        if value is None or value is True or value is False:
            return str(value)
        # Constants are held, so no id is used twice.
        key = (str, value) if type(value) is str else id(value)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = f"k{len(self.constants)}"
            self.constants[name] = value
        return name

    def _assign(self, code: str) -> str:
        """Write the line that gives a value a name, and return the name."""
        name = self.temporary()
        self.line(f"{name} = {code}")
        return name


# --- functions of generated code ------------------------------------------------------------------


# Overloads that are Python's own operators on values of the declared types.
COMPARISONS = {
    f"{name}_{type_}": operator
    for name, operator in (
        ("less", "<"),
        ("less_equals", "<="),
        ("greater", ">"),
        ("greater_equals", ">="),
    )
    for type_ in ("int64", "uint64", "int64_uint64", "uint64_int64", "string", "bytes", "bool")
}


DIVISIONS: dict[Callable[..., Any], str] = {operators.divide: "//", operators.modulo: "%"}
RELATIONS: dict[Callable[..., Any], str] = {
    operators.less: "<",
    operators.less_equals: "<=",
    operators.greater: ">",
    operators.greater_equals: ">=",
}


def with_int(step: FunctionCall, args: Sequence[str], general: str) -> str:
    """Return the code of a call; for a value of unknown type and a constant int a shorter way.

    If the value is an int, a comparison is Python's, and so is a division of what is not negative
    by what is positive: neither can overflow. Everything else is left to the general code.
    """
    last = step.args[-1] if len(step.args) == 2 else None
    if not isinstance(last, Constant) or type(last.value) is not int:
        return general
    value, constant = args
    if step.evaluate in RELATIONS:
        code = f"{value} {RELATIONS[step.evaluate]} {constant}"
        return f"{code} if type({value}) is int else {general}"
    if step.evaluate in DIVISIONS and last.value > 0:
        code = f"{value} {DIVISIONS[step.evaluate]} {constant}"
        return f"{code} if type({value}) is int and {value} >= 0 else {general}"
    return general


class Unusual(Exception):  # noqa: N818 - a signal to run the plan
    """Generated code leaves this to the plan."""


def stop(cost: int) -> int:  # noqa: ARG001 - the same signature as a meter's
    """Raise that the cost exceeds the limit, where no meter is asked."""
    raise CostExceeded


def indexed(value: Any, key: Any) -> Any:
    """Return the value of a key."""
    found = look_up(value, key, presence=False)
    if type(found) is Failure:
        raise Unusual
    return found


def looked_up(value: Any, key: Any) -> Any:
    """Return the value of a key, or ABSENT."""
    found = look_up(value, key, presence=True)
    if type(found) is Failure:
        raise Unusual
    return found


def is_present(value: Any, key: Any) -> bool:
    """Return whether there is a key."""
    return looked_up(value, key) is not ABSENT


def unwrapped(value: Optional) -> Any:
    """Return the value of an optional that has one."""
    return value.value


def elements(values: Any) -> Any:
    """Return the range of a loop."""
    if isinstance(values, list | tuple):
        return values
    if isinstance(values, dict):
        return [key_value(key) for key in values]
    raise Unusual


class Members:
    """Membership in a list of constants."""

    def __init__(self, members: list[Any]) -> None:
        self._members = members
        self._texts = frozenset(m for m in members if type(m) is str)

    def __call__(self, value: Any) -> bool:
        """Return whether a value is a member."""
        if type(value) is str:
            return value in self._texts
        return any(equal(value, member) for member in self._members)
