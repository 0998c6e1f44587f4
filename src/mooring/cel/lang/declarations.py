"""What an environment declares: functions with their overloads, macros, variables, fields.

An overload carries everything about itself: its signature, what it does, what it costs at run
time and at most. So a library is one table, and no other table repeats its names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from mooring.cel.lang.ast import Call, Expr
from mooring.cel.lang.types import Type

# What evaluating an overload cost, from its arguments (the target first) and its result.
RuntimeCost = Callable[[tuple[Any, ...], Any], int]


@dataclass(frozen=True, slots=True)
class Range:
    """An estimate: at least, and at most. Sums and products saturate at UNBOUNDED."""

    low: int
    high: int


UNBOUNDED = 2**64 - 1


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """What a call may cost, and if it is known how large its result may be."""

    cost: Range
    result_size: Range | None = None


class EstimatedArgument(Protocol):
    """An argument as the estimator sees it."""

    expr: Expr
    type: Type

    @property
    def size(self) -> Range:
        """The size that the value may have; 0 to UNBOUNDED if nothing is known."""
        ...


# What a call may cost, from its target (if a member) and arguments; None: use the default.
CostEstimate = Callable[
    ["EstimatedArgument | None", tuple["EstimatedArgument", ...]], "CallEstimate | None"
]


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function.

    `evaluate` takes the arguments, the target first, as values of the declared types, and
    returns a value or raises EvalError. None: declared only (authorization).
    """

    id: str
    params: tuple[Type, ...]  # the target first, if is_member
    result: Type
    evaluate: Callable[..., Any] | None = None
    is_member: bool = False
    runtime_cost: RuntimeCost | None = None  # None: 1
    estimate: CostEstimate | None = None  # None: the runtime cost's default shape, 1


@dataclass(frozen=True, slots=True)
class Function:
    """A name and its overloads."""

    name: str
    overloads: tuple[Overload, ...]


class MacroHelper(Protocol):
    """What a macro may use to build nodes: each gets a new id and the position of the call."""

    def literal(self, value: Any) -> Expr: ...  # noqa: D102
    def ident(self, name: str) -> Expr: ...  # noqa: D102
    def select(self, operand: Expr, field: str) -> Expr: ...  # noqa: D102
    def presence(self, operand: Expr, field: str) -> Expr: ...  # noqa: D102
    def call(self, function: str, *args: Expr) -> Expr: ...  # noqa: D102
    def member_call(self, function: str, target: Expr, *args: Expr) -> Expr: ...  # noqa: D102
    def new_list(self, *elements: Expr) -> Expr: ...  # noqa: D102
    def new_map(self) -> Expr: ...  # noqa: D102
    def accu_ident(self) -> Expr: ...  # noqa: D102
    def comprehension(  # noqa: D102
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
    ) -> Expr: ...
    def error(self, at: Expr, message: str) -> Exception:
        """Return the error to raise at a node."""
        ...


# Takes the helper, the target (None for a global macro) and the arguments; returns the expansion,
# or None if the call is not this macro after all.
Expander = Callable[[MacroHelper, "Expr | None", tuple[Expr, ...]], "Expr | None"]


@dataclass(frozen=True, slots=True)
class Macro:
    """A call that the parser replaces."""

    name: str
    arity: int
    is_member: bool
    expand: Expander


@dataclass(frozen=True, slots=True)
class Library:
    """A set of declarations that come together."""

    name: str
    functions: tuple[Function, ...] = ()
    macros: tuple[Macro, ...] = ()
    # Identifiers that are types: `int`, `net.IP`.
    types: tuple[Type, ...] = ()
    # Checks of literals after type checking: yields (offending node, message).
    validators: tuple[Callable[[Call, Any], Iterable[tuple[Expr, str]]], ...] = ()
    python_types: dict[type, Type] = field(default_factory=dict)  # runtime class: its CEL type
