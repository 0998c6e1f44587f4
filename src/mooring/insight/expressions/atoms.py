"""The questions that an expression is made of.

a == 1 && !(b == 2 || c)    asks a == 1, b == 2 and c; of b == 2 and c it wants a no
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mooring.cel.lang import ast
from mooring.cel.lang.steps import Failure
from mooring.insight.expressions.parts import Parts, Variables
from mooring.insight.expressions.trees import LOGIC, Binding, binding


class Atom(NamedTuple):
    """A part that is yes or no by itself, and the names that are bound around it."""

    node: ast.Expr
    wants_yes: bool
    bindings: tuple[Binding, ...] = ()

    def variables(self, parts: Parts, variables: Variables) -> Variables:
        """Return the variables with those that are bound around the atom."""
        for bound in self.bindings:
            value = parts.value(bound.value, variables)
            if not isinstance(value, Failure):
                variables = {**variables, bound.name: value}
        return variables


def atoms(
    node: ast.Expr, *, wants_yes: bool = True, bindings: tuple[Binding, ...] = ()
) -> Iterator[Atom]:
    """Give the questions of an expression in their order; those that choose a side left out."""
    match node:
        case ast.Call(function=function, args=args) if function in LOGIC:
            inner = args
        case ast.Call(function="!_", args=inner):
            wants_yes = not wants_yes
        case ast.Call(function="_?_:_", args=(_, truthy, falsy)):
            inner = (truthy, falsy)
        case _ if (bound := binding(node)) is not None:
            inner, bindings = (bound.result,), (*bindings, bound)
        case _:
            yield Atom(node, wants_yes, bindings)
            return
    for child in inner:
        yield from atoms(child, wants_yes=wants_yes, bindings=bindings)
