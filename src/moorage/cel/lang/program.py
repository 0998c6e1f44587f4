"""Programs: parse, check, validate and plan an expression; then evaluate it.

Validation finds errors that types do not show:

- `[1, "a"]`, `[1, dyn(2)]`, `{1: 1, "a": 1}`: entries must have one type;
- `duration("x")`, `timestamp("x")`: the argument is parsed as it would be at run time;
- `s.matches("(")`: the pattern must be a regular expression;
- checks of libraries, such as the template of `format`.

A plan becomes Python code that is fast where nothing fails. The generated function returns value
and cost. For anything unusual (an error, a value of an unexpected type, a cost above the limit)
it raises, and the plan itself is run instead, which knows what errors cost and who absorbs them. So
generated code never has to be right about errors, only never overlook one. It consists of made-up
names (t0, k1, …) and of nothing from the expression: constants and functions are passed in, there
are no builtins, and no attribute of any value is read. The function for many evaluations takes a
batch: for each evaluation the values at the end of the paths that the expression reads.

Both count their cost, and beyond some cost ask the meter (see `metering`) whether to go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from moorage.cel.lang import ast
from moorage.cel.lang.ast import CheckedAST, Expr
from moorage.cel.lang.attributes import Path, Pattern
from moorage.cel.lang.checker import check
from moorage.cel.lang.code_support import NotCompilable, stop
from moorage.cel.lang.code_writer import Writer
from moorage.cel.lang.environment import Environment
from moorage.cel.lang.errors import Cancelled, CompileError, EvalError, Issue, mismatch
from moorage.cel.lang.interpretable import Activation, Budget, Failure, Interpretable
from moorage.cel.lang.metering import Interrupted, Meter, More
from moorage.cel.lang.parser import parse
from moorage.cel.lang.planner import plan
from moorage.cel.lang.regex import compile_regex
from moorage.cel.lang.types import Type, is_optional, same
from moorage.cel.lang.unpaid_work import begin_evaluation


class Evaluated(NamedTuple):
    """The result of an evaluation: a value or an error, and the cost."""

    value: Any
    cost: int | None
    error: str | None = None


class Program:
    """A compiled expression."""

    def __init__(self, checked: CheckedAST, step: Interpretable, environment: Environment) -> None:
        self.checked = checked
        self.environment = environment
        self._step = step

    @property
    def output_type(self) -> Type:
        """The type that the checker found for the expression."""
        return self.checked.output_type

    @cached_property
    def fast(self) -> Fast | None:
        """The generated code, made on demand: checking alone needs none."""
        return compile_one(self._step)

    @cached_property
    def many(self) -> Many | None:
        """The generated code for many evaluations, made on demand."""
        return compile_many(self._step, self.environment.cells)

    def evaluate(
        self, variables: dict[str, Any], *, cost_limit: int, meter: Meter | None = None
    ) -> Evaluated:
        """Return the value for these variables; raises Interrupted if the meter does, only."""
        if self.fast is not None:
            begin_evaluation()
            try:
                if meter is None:
                    return Evaluated(*self.fast(variables, cost_limit))
                return Evaluated(*self.fast(variables, *meter.checkpoints(cost_limit)))
            except Interrupted:
                raise
            except Exception:  # noqa: S110 - the plan finds the error
                pass
        return self.run_plan(variables, cost_limit=cost_limit, meter=meter)

    def run_plan(
        self, variables: dict[str, Any], *, cost_limit: int, meter: Meter | None = None
    ) -> Evaluated:
        """Return the value by running the plan, step by step."""
        begin_evaluation()
        budget = Budget(cost_limit, meter)
        try:
            value = self._step.run(Activation(variables, budget))
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

    Raises CompileError for what the language refuses, InstantiationError for errors that only show
    when constants are folded.
    """
    begin_evaluation()  # of constants
    checked = check(parse(text, environment.macros), environment)
    validate(checked, environment)
    begin_evaluation()
    return Program(checked, plan(checked, environment), environment)


# --- validation -----------------------------------------------------------------------------------


_CONVERSIONS = ("duration", "timestamp")
_MATCHES = "matches"
# Its argument is one list of whatever the template needs.
_MIXES_TYPES = "format"
Finding = tuple[Expr, str]


def validate(checked: CheckedAST, environment: Environment) -> None:
    """Raise CompileError if an expression has invalid literals."""
    findings = list(_findings(checked, environment))
    if findings:
        issues = [Issue(node.offset, message) for node, message in findings]
        raise CompileError(issues, checked.parsed.source)


def _findings(checked: CheckedAST, environment: Environment) -> Iterator[Finding]:
    nodes = list(_bottom_up(checked.parsed.expr))
    calls = [node for node, _ in nodes if isinstance(node, ast.Call)]
    for node, may_mix in nodes:
        if isinstance(node, ast.CreateList) and not may_mix:
            yield from _mixed_elements(node, checked)
    for node, may_mix in nodes:
        if isinstance(node, ast.CreateMap) and not may_mix:
            yield from _mixed_entries(node, checked)
    for function in _CONVERSIONS:
        yield from _bad_conversions(calls, function, checked, environment)
    yield from _bad_patterns(calls)
    for validator in environment.validators:
        for call in calls:
            yield from validator(call, checked)


def _bottom_up(root: Expr) -> Iterator[tuple[Expr, bool]]:
    """Yield nodes after their children, with whether they may have entries of several types."""
    stack = [(root, False, False)]
    while stack:
        node, may_mix, is_expanded = stack.pop()
        if is_expanded:
            yield node, may_mix
            continue
        stack.append((node, may_mix, True))
        below = may_mix or (isinstance(node, ast.Call) and node.function == _MIXES_TYPES)
        stack.extend((child, below, False) for child in reversed(ast.children(node)))


def _first_literal(call: ast.Call) -> ast.Literal | None:
    first = call.args[0] if call.args else None
    return first if isinstance(first, ast.Literal) else None


def _bad_conversions(
    calls: list[ast.Call], function: str, checked: CheckedAST, environment: Environment
) -> Iterator[Finding]:
    for call in calls:
        literal = _first_literal(call)
        if call.function != function or literal is None:
            continue
        reference = checked.references[call.id]
        for overload_id in reference.overload_ids:
            overload = environment.overload(function, overload_id)
            if overload is None or overload.evaluate is None:
                continue
            try:
                overload.evaluate(literal.value)
            except EvalError:
                yield literal, f"invalid {function} argument"


def _bad_patterns(calls: list[ast.Call]) -> Iterator[Finding]:
    for call in calls:
        # Of `matches(text, pattern)` cel-go looks at the text.
        literal = _first_literal(call)
        if call.function != _MATCHES or literal is None:
            continue
        try:
            compile_regex(literal.value)
        except (EvalError, Cancelled):
            yield literal, f"invalid {_MATCHES} argument"


def _mixed_elements(node: ast.CreateList, checked: CheckedAST) -> Iterator[Finding]:
    first: Type | None = None
    for position, element in enumerate(node.elements):
        type_ = _held(checked.types[element.id], optional=position in node.optional)
        first = first or type_
        if not same(first, type_):
            yield element, mismatch(first, type_)
            return


def _mixed_entries(node: ast.CreateMap, checked: CheckedAST) -> Iterator[Finding]:
    if not node.entries:
        return
    types = [
        (checked.types[entry.key.id], _held(checked.types[entry.value.id], optional=entry.optional))
        for entry in node.entries
    ]
    first_key, first_value = types[0]
    for entry, (key, value) in zip(node.entries, types, strict=True):
        if not same(first_key, key):
            yield entry.key, mismatch(first_key, key)
        if not same(first_value, value):
            yield entry.value, mismatch(first_value, value)


def _held(type_: Type, *, optional: bool) -> Type:
    return type_.params[0] if optional and is_optional(type_) else type_


# --- code generation ------------------------------------------------------------------------------


class Fast(Protocol):
    """Generated code for one evaluation."""

    def __call__(
        self, variables: dict[str, Any], limit: int, more: More = ..., /
    ) -> tuple[Any, int]:
        """Return the value and the cost, or raise; beyond the limit `more` returns the next."""


class FastMany(Protocol):
    """Generated code for many evaluations."""

    def __call__(
        self, batch: Iterable[tuple[Any, ...]], limit: int, more: More = ..., /
    ) -> tuple[list[Any], list[int | None]]:
        """Return values and costs, None and None where code for one would raise."""


_ONE = """\
def evaluate(variables, limit, more=stop):
{inputs}
    c = 0
{body}
    return {result}, c
"""
_MANY = """\
def evaluate(batch, first, more=stop):
    values = []
    costs = []
    for ({inputs}) in batch:
        limit = first
        try:
            c = 0
{body}
        except Interrupted:
            raise
        except Exception:
            values.append(None)
            costs.append(None)
        else:
            values.append({result})
            costs.append(c)
    return values, costs
"""


class Many(NamedTuple):
    """Code for many evaluations."""

    paths: tuple[Path, ...]  # of the values in a member of the batch
    evaluate: FastMany


def compile_one(step: Interpretable) -> Fast | None:
    """Return a function that equals the plan where nothing fails, if there can be one."""
    writer = Writer()
    result = _written(writer, step)
    if result is None:
        return None
    inputs = [f"{name} = variables[{writer.constant(v)}]" for (v,), name in writer.inputs.items()]
    source = _ONE.format(
        inputs=_indented(inputs, 1), body=_indented(writer.lines, 1), result=result
    )
    function: Fast | None = _function(source, writer)
    return function


def compile_many(step: Interpretable, cells: Iterable[Pattern] = ()) -> Many | None:
    """Return the same for many evaluations, reading cells from the batch."""
    writer = Writer(cells)
    result = _written(writer, step)
    if result is None:
        return None
    source = _MANY.format(
        inputs="".join(f"{name}, " for name in writer.inputs.values()),
        body=_indented(writer.lines, 3),
        result=result,
    )
    function: FastMany | None = _function(source, writer)
    return None if function is None else Many(tuple(writer.inputs), function)


def _written(writer: Writer, step: Interpretable) -> str | None:
    """Write the body and return the name of the value, None if it cannot be written."""
    begin_evaluation()  # of calls with constant arguments
    try:
        result = writer.write(step)
        writer.flush()
        writer.line("if c > limit: more(c)")
    except (NotCompilable, Cancelled, RecursionError):
        return None
    return result


def _indented(lines: Iterable[str], depth: int) -> str:
    return "\n".join("    " * depth + line for line in lines)


def _function(source: str, writer: Writer) -> Any:
    known = (type, len, dict, tuple, str, int, bool, Exception, Interrupted, stop)
    namespace: dict[str, Any] = {"__builtins__": {}, **{each.__name__: each for each in known}}
    namespace |= writer.constants
    try:
        exec(compile(source, "<expression>", "exec"), namespace)  # noqa: S102
    except (SyntaxError, RecursionError):
        return None  # Python nests blocks less deeply than CEL.
    # Its globals are this namespace, which would otherwise refer back to it.
    return namespace.pop("evaluate")
