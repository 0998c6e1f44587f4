"""The AST, parsed and checked, and walks through it.

Every node has an id, by which later steps record what they learn about it, and the offset of the
character that errors about it point at. Operators are calls: `a + b` is `Call("_+_", (a, b))`,
`a[b]` is `_[_]`, `a.?b` is `_?._` with the name as a literal, `a[?b]` is `_[?_]`, `a ? b : c` is
`_?_:_`, `a in b` is `@in`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from moorage.cel.lang.types import Type


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """The attributes of all nodes."""

    id: int
    offset: int  # in code points


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Node):
    """A constant: None, bool, int, UInt, float, str or bytes."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Ident(Node):
    """A name; a leading dot stays part of it."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select(Node):
    """`operand.field`, or with test_only `has(operand.field)`."""

    operand: Expr
    field: str
    test_only: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call(Node):
    """`function(args)`, or `target.function(args)`."""

    function: str
    args: tuple[Expr, ...]
    target: Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CreateList(Node):
    """`[a, ?b]`; `optional` holds the positions of elements written with `?`."""

    elements: tuple[Expr, ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class MapEntry(Node):
    """`key: value`, or `?key: value`."""

    key: Expr
    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CreateMap(Node):
    """`{k: v}`."""

    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FieldEntry(Node):
    """`field: value` of a message."""

    field: str
    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CreateStruct(Node):
    """`Type{field: value}`."""

    type_name: str
    fields: tuple[FieldEntry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Comprehension(Node):
    """A loop that macros expand to.

    accu = accu_init; for each element (bound to iter_var, or key/index and value to iter_var and
    iter_var2) while loop_condition holds: accu = loop_step; the value is result.
    """

    iter_range: Expr
    iter_var: str
    iter_var2: str | None
    accu_var: str
    accu_init: Expr
    loop_condition: Expr
    loop_step: Expr
    result: Expr


Expr = Literal | Ident | Select | Call | CreateList | CreateMap | CreateStruct | Comprehension


@dataclass(frozen=True, slots=True)
class ParsedAST:
    """A parsed expression: the AST after macros, the source, and the macro calls by node id."""

    expr: Expr
    source: str
    macro_calls: dict[int, Call]


def children(node: Expr) -> tuple[Expr, ...]:
    """Return the expressions directly below a node, in the order they are written."""
    match node:
        case Select(operand=operand):
            return (operand,)
        case Call(target=target, args=args):
            return args if target is None else (target, *args)
        case CreateList(elements=elements):
            return elements
        case CreateMap(entries=entries):
            return tuple(part for entry in entries for part in (entry.key, entry.value))
        case CreateStruct(fields=fields):
            return tuple(field.value for field in fields)
        case Comprehension():
            return (
                node.iter_range,
                node.accu_init,
                node.loop_condition,
                node.loop_step,
                node.result,
            )
        case _:
            return ()


@dataclass(frozen=True, slots=True)
class ReferenceInfo:
    """The reference of a node: a name, with its value if that is constant, or overloads."""

    name: str | None = None
    overload_ids: tuple[str, ...] = ()
    value: Any = None


@dataclass(frozen=True, slots=True)
class CheckedAST:
    """A checked expression: the AST with full names, and by node id types and references."""

    parsed: ParsedAST
    types: dict[int, Type]
    references: dict[int, ReferenceInfo]

    @property
    def output_type(self) -> Type:
        """The type of the expression's value."""
        return self.types[self.parsed.expr.id]


Result = TypeVar("Result")
# Yields the nodes below a node one by one, gets their results back, returns the node's own.
Steps = Generator[Expr, Result, Result]


class Walker(ABC, Generic[Result]):
    """Computes a result for every node from those of its children, with an explicit stack."""

    @abstractmethod
    def visit(self, node: Expr) -> Result | Steps[Result]:
        """Return the result of a node, or the steps to it if it needs others first."""

    def walk(self, root: Expr) -> Result:
        """Return the result of a tree."""
        waiting: list[Steps[Result]] = []
        made = self.visit(root)
        while True:
            try:
                if isinstance(made, Generator):
                    waiting.append(made)
                    made = self.visit(next(made))
                elif waiting:
                    made = self.visit(waiting[-1].send(made))
                else:
                    return made
            except StopIteration as finished:
                waiting.pop()
                made = finished.value
