"""What checking finds out about an expression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mooring.cel.lang import ast
from mooring.cel.lang.types import Type


@dataclass(frozen=True, slots=True)
class Reference:
    """What a node refers to: a name, with its value if that is constant, or overloads."""

    name: str | None = None
    overload_ids: tuple[str, ...] = ()
    value: Any = None


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked expression: the tree with full names, and by node id types and references."""

    parsed: ast.Parsed
    types: dict[int, Type]
    references: dict[int, Reference]

    @property
    def output_type(self) -> Type:
        """The type of the expression's value."""
        return self.types[self.parsed.expr.id]
