"""Why an expression has its result for a device: the decisive parts, and their values.

From the whole expression the explanation goes down to what decided it:

    a && b      false because of the first term that is false; true because of all
    a || b      true because of the first term that is true; false because of all
    !a          because of a
    c ? a : b   because of c and the side that it chose
    x.all(…)    false because of the first element that fails
    x.exists(…) true because of the first element that passes; false because none does
    cel.bind    because of its result
    else        the part itself, with its values

An error comes from the deepest part that has no value although all parts below it have one.

Every node of the tree is a small expression, once the variables of the loops around it are bound,
so `Parts` evaluates nodes by themselves. `atoms` gives the questions that an expression asks:

    a == 1 && !(b == 2 || c)    asks a == 1, b == 2 and c; b == 2 and c should be false
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from moorage.cel.device import COST_LIMIT
from moorage.cel.device_values import with_hint
from moorage.cel.lang import ast
from moorage.cel.lang.errors import Cancelled
from moorage.cel.lang.interpretable import Budget, Failure
from moorage.cel.lang.macros import UNUSED
from moorage.cel.lang.metering import Meter
from moorage.cel.lang.planner import plan
from moorage.cel.lang.program import Program
from moorage.cel.lang.values import key_value
from moorage.insight.expressions.syntax import (
    LOGIC,
    VariableBinding,
    binding,
    chains,
    shown,
    terms,
    walk,
    write,
)

DECISIVE: Final = {"_&&_": False, "_||_": True}
EXPLANATION_COST_MAX: Final = COST_LIMIT
SINCE: Final = ", since "
Variables = dict[str, Any]


class Valued(NamedTuple):
    """A part and its value, as text; the label is a short name for the part."""

    part: str
    label: str
    value: str


class Reason(NamedTuple):
    """One decisive part of an expression, its result, and the values it read."""

    part: str
    outcome: str
    values: tuple[Valued, ...] = ()
    detail: str = ""

    def __str__(self) -> str:
        facts = [self.detail] if self.detail else []
        facts += [f"{valued.label} is {valued.value}" for valued in self.values]
        return f"{self.part} {self.outcome}" + (f": {', '.join(facts)}" if facts else "")


Reasons = tuple[Reason, ...]


def explain(parts: Parts, variables: Variables) -> Reasons:
    """Return why the expression has its result for these variables."""
    explainer = _Explainer(parts)
    try:
        if isinstance(explainer.value(parts.root, variables), Failure):
            return explainer.origin(parts.root, variables)
        return explainer.why(parts.root, variables)
    except (Cancelled, RecursionError):
        return (Reason(parts.text(parts.root), "is too complex to be explained"),)


class _Explainer:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._budget = Budget(EXPLANATION_COST_MAX)
        # The variables are kept as well: an id is valid only while its object lives.
        self._values: dict[tuple[int, int], tuple[Variables, Any]] = {}

    def value(self, node: ast.Expr, variables: Variables) -> Any:
        """Return the value of a node, computed once."""
        key = (node.id, id(variables))
        if key not in self._values:
            value = self._parts.value(node, variables, self._budget)
            self._values[key] = (variables, value)
        return self._values[key][1]

    def why(self, node: ast.Expr, variables: Variables) -> Reasons:
        """Return why a node has its value, which is not a failure."""
        match node:
            case ast.Call(function="_&&_" | "_||_"):
                return self._why_logic(node, variables)
            case ast.Call(function="!_", args=(operand,)):
                return self.why(operand, variables)
            case ast.Call(function="_?_:_", args=(condition, *_)):
                side = self._chosen(node, variables)
                return self.why(condition, variables) + self.why(side, variables)
        if (bound := binding(node)) is not None:
            return self.why(bound.result, self._bound(bound, variables))
        loop = self._parts.loop(node)
        if loop is not None and loop.macro in ("all", "exists"):
            return self._why_loop(node, loop, variables)
        return (self._reason(node, variables),)

    def _why_logic(self, node: ast.Call, variables: Variables) -> Reasons:
        value = self.value(node, variables)
        # An error beside a decisive term changes nothing.
        deciding = [t for t in terms(node) if self.value(t, variables) is value]
        if value is DECISIVE[node.function]:
            return self.why(deciding[0], variables)
        return tuple(dict.fromkeys(r for term in deciding for r in self.why(term, variables)))

    def _why_loop(self, node: ast.Expr, loop: MacroLoop, variables: Variables) -> Reasons:
        reason = self._reason(node, variables)
        decisive = loop.macro == "exists"
        if self.value(node, variables) is not decisive:
            # No element decided: there was none that would.
            return (reason,)
        for inside in self._rounds(loop, variables):
            for body in loop.bodies:
                if self.value(body, inside) is decisive:
                    because = ", ".join(map(str, self.why(body, inside)))
                    outcome = f"{reason.outcome}{SINCE}{because}"
                    return (reason._replace(outcome=outcome, values=()),)
        return (reason,)

    def _reason(self, node: ast.Expr, variables: Variables) -> Reason:
        value = self.value(node, variables)
        return Reason(
            self._parts.text(node), f"is {shown(value)}", self._shown_values(node, variables)
        )

    def origin(self, node: ast.Expr, variables: Variables) -> Reasons:
        """Return where the failure of a node comes from."""
        deeper = next(self._failing(node, variables), None)
        if deeper is not None:
            return self.origin(*deeper)
        failure: Failure = self.value(node, variables)
        detail = with_hint(failure.message)
        values = self._shown_values(node, variables)
        return (Reason(self._parts.text(node), "has no value", values, detail),)

    def _failing(
        self, node: ast.Expr, variables: Variables
    ) -> Iterator[tuple[ast.Expr, Variables]]:
        """Yield the parts below a node that fail, with their variables."""
        for child, inside in self._below(node, variables):
            if isinstance(self.value(child, inside), Failure):
                yield child, inside

    def _below(self, node: ast.Expr, variables: Variables) -> Iterator[tuple[ast.Expr, Variables]]:
        """Yield the parts that a node evaluated, with their variables."""
        if isinstance(node, ast.Call) and node.function == "_?_:_":
            yield node.args[0], variables
            yield self._chosen(node, variables), variables
        elif (bound := binding(node)) is not None:
            yield bound.value, variables
            yield bound.result, self._bound(bound, variables)
        elif isinstance(node, ast.Comprehension):
            yield node.iter_range, variables
            yield from self._below_loop(node, variables)
        else:
            yield from ((child, variables) for child in ast.children(node))

    def _below_loop(
        self, node: ast.Comprehension, variables: Variables
    ) -> Iterator[tuple[ast.Expr, Variables]]:
        loop = self._parts.loop(node)
        if loop is None:
            return
        for inside in self._rounds(loop, variables):
            for body in loop.bodies:
                yield body, inside
                if len(loop.bodies) > 1 and self.value(body, inside) is False:
                    break  # `map(x, p, t)` looks at t only if p holds.

    def _rounds(self, loop: MacroLoop, variables: Variables) -> Iterator[Variables]:
        return self._parts.rounds(loop, self.value(loop.range, variables), variables)

    def _chosen(self, node: ast.Call, variables: Variables) -> ast.Expr:
        condition, truthy, falsy = node.args
        return truthy if self.value(condition, variables) is True else falsy

    def _bound(self, bound: VariableBinding, variables: Variables) -> Variables:
        value = self.value(bound.value, variables)
        return variables if isinstance(value, Failure) else {**variables, bound.name: value}

    def _shown_values(self, node: ast.Expr, variables: Variables) -> tuple[Valued, ...]:
        """Return the values of the attributes that a node reads, without itself."""
        found: dict[str, tuple[ast.Expr, Any]] = {}
        for chain in chains(node, variables):
            value = self.value(chain, variables)
            if chain is not node and not isinstance(value, Failure):
                found[self._parts.text(chain)] = (chain, value)
        labels = [_label(chain, text) for text, (chain, _) in found.items()]
        return tuple(
            Valued(text, label if labels.count(label) == 1 else text, shown(value))
            for label, (text, (_, value)) in zip(labels, found.items(), strict=True)
        )


def _label(chain: ast.Expr, text: str) -> str:
    """Return the name of an attribute or capacity; of anything else the text."""
    match chain:
        case ast.Select(operand=ast.Call(), field=field):
            return field
        case ast.Call(
            function="_[_]" | "_[?_]" | "_?._", args=(ast.Call(), ast.Literal(value=key))
        ):
            return str(key)
        case _:
            return text


# --- parts ------------------------------------------------------------------------------


class MacroLoop(NamedTuple):
    """A loop that the user wrote: `range.macro(variables, bodies)`."""

    macro: str
    range: ast.Expr
    variables: tuple[str, ...]
    bodies: tuple[ast.Expr, ...]


class Parts:
    """Evaluates the nodes of one expression."""

    def __init__(self, program: Program, meter: Meter | None = None) -> None:
        """Take a meter that may end evaluations."""
        self._meter = meter
        self._checked = program.checked
        self._environment = program.environment
        self._programs = {self.root.id: program}
        self._texts: dict[int, str] = {}
        # Macros keep their arguments as written; these are the checked nodes.
        self._nodes = {node.id: node for node in walk(self.root)}

    @property
    def root(self) -> ast.Expr:
        """The whole expression."""
        return self._checked.parsed.expr

    def value(self, node: ast.Expr, variables: Variables, budget: Budget | None = None) -> Any:
        """Return the value of a node for these variables, or a Failure.

        The cost counts against the caller's budget; Cancelled is raised when that is spent.
        """
        limit = COST_LIMIT if budget is None else budget.limit - budget.spent
        value, cost, error = self._program(node).evaluate(
            variables, cost_limit=limit, meter=self._meter
        )
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

    @property
    def macro_calls(self) -> Mapping[int, ast.Call]:
        """The macros as they were called, by node."""
        return self._checked.parsed.macro_calls

    def text(self, node: ast.Expr, *, tight: bool = False) -> str:
        """Return the text of a node; if tight, in parentheses where `&&` needs them."""
        if tight:
            return write(node, self.macro_calls, is_operand=True)
        text = self._texts.get(node.id)
        if text is None:
            text = self._texts[node.id] = write(node, self.macro_calls)
        return text

    def rewritten(self, instead: Mapping[int, str]) -> str:
        """Return the text of the expression with other texts for some nodes, by id."""
        return write(self.root, self.macro_calls, instead)

    def loop(self, node: ast.Expr) -> MacroLoop | None:
        """Return the loop that a node represents, if the user wrote one."""
        call = self._checked.parsed.macro_calls.get(node.id)
        if not isinstance(node, ast.Comprehension) or call is None or node.iter_var == UNUSED:
            return None
        names = (node.iter_var,) if node.iter_var2 is None else (node.iter_var, node.iter_var2)
        written = call.args[len(names) :]
        bodies = tuple(self._nodes[body.id] for body in written if body.id in self._nodes)
        return MacroLoop(call.function, node.iter_range, names, bodies)

    def rounds(self, loop: MacroLoop, values: Any, variables: Variables) -> Iterator[Variables]:
        """Yield the variables of each iteration over these values."""
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


# --- questions --------------------------------------------------------------------------


class Atom(NamedTuple):
    """A part that is true or false by itself, and the names that are bound around it."""

    node: ast.Expr
    wants_yes: bool
    bindings: tuple[VariableBinding, ...] = ()

    def variables(self, parts: Parts, variables: Variables) -> Variables:
        """Return the variables, with those that are bound around the atom."""
        for bound in self.bindings:
            value = parts.value(bound.value, variables)
            if not isinstance(value, Failure):
                variables = {**variables, bound.name: value}
        return variables


def atoms(
    node: ast.Expr, *, wants_yes: bool = True, bindings: tuple[VariableBinding, ...] = ()
) -> Iterator[Atom]:
    """Yield the questions of an expression in order, without conditions of `?:`."""
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
