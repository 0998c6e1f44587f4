"""The parts of an expression, each evaluated on its own.

An expression gives one value. To say why, we look at what its parts give: every node of the tree
is a small expression, once the variables of the loops around it are bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from mooring.cel.device import COST_LIMIT
from mooring.cel.lang import ast
from mooring.cel.lang.library.bindings import UNUSED
from mooring.cel.lang.planner import plan
from mooring.cel.lang.program import Program
from mooring.cel.lang.steps import Budget, Failure
from mooring.cel.lang.values import key_value
from mooring.insight.expressions.trees import walk
from mooring.insight.wording import write

Variables = dict[str, Any]


class Loop(NamedTuple):
    """A loop that the user wrote: `range.macro(variables, bodies)`."""

    macro: str
    range: ast.Expr
    variables: tuple[str, ...]
    bodies: tuple[ast.Expr, ...]


class Parts:
    """Evaluates the nodes of one expression."""

    def __init__(self, program: Program) -> None:
        self._checked = program.checked
        self._environment = program.environment
        self._programs = {self.root.id: program}
        self._texts: dict[int, str] = {}
        # Macros keep their arguments as written; here is what the checker made of them.
        self._nodes = {node.id: node for node in walk(self.root)}

    @property
    def root(self) -> ast.Expr:
        """The whole expression."""
        return self._checked.parsed.expr

    def value(self, node: ast.Expr, variables: Variables, budget: Budget | None = None) -> Any:
        """Return what a node gives for these variables: a value, or a Failure.

        It is counted against the caller's budget, and Cancelled is raised when that is spent.
        """
        limit = COST_LIMIT if budget is None else budget.limit - budget.spent
        value, cost, error = self._program(node).evaluate(variables, cost_limit=limit)
        if budget is not None:
            budget.spend(cost or 0)
        return value if error is None else Failure(error)

    def _program(self, node: ast.Expr) -> Program:
        program = self._programs.get(node.id)
        if program is None:
            checked = replace(self._checked, parsed=replace(self._checked.parsed, expr=node))
            program = Program(checked, plan(checked, self._environment), self._environment)
            self._programs[node.id] = program
        return program

    def text(self, node: ast.Expr) -> str:
        """Return the text of a node."""
        text = self._texts.get(node.id)
        if text is None:
            text = self._texts[node.id] = write(node, self._checked.parsed.macro_calls)
        return text

    def loop(self, node: ast.Expr) -> Loop | None:
        """Return the loop that a node is, if it is one that the user wrote."""
        call = self._checked.parsed.macro_calls.get(node.id)
        if not isinstance(node, ast.Comprehension) or call is None or node.iter_var == UNUSED:
            return None
        names = (node.iter_var,) if node.iter_var2 is None else (node.iter_var, node.iter_var2)
        written = call.args[len(names) :]
        bodies = tuple(self._nodes[body.id] for body in written if body.id in self._nodes)
        return Loop(call.function, node.iter_range, names, bodies)

    def rounds(self, loop: Loop, values: Any, variables: Variables) -> Iterator[Variables]:
        """Give the variables of each round of a loop over these values."""
        if isinstance(values, dict):
            pairs = [(key_value(key), value) for key, value in values.items()]
        elif isinstance(values, list | tuple):
            pairs = list(enumerate(values))
        else:
            return
        for first, second in pairs:
            if len(loop.variables) == 2:
                yield {**variables, loop.variables[0]: first, loop.variables[1]: second}
            else:
                element = first if isinstance(values, dict) else second
                yield {**variables, loop.variables[0]: element}
