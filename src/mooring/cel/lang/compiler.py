"""Turn a plan into Python code that is fast where nothing goes wrong.

The generated function returns the value and the cost. Whatever is unusual (an error, a value of
an unexpected type, a cost above the limit) makes it raise, and the plan itself is run instead,
which knows what errors cost and who absorbs them. So generated code never has to be right about
errors, only about not overlooking one.

It is made of names that we make up (t0, k1, …) and of nothing from the expression: constants and
functions are passed in, there are no builtins, and no attribute of any value is looked at.

There are two functions. The one for many evaluations takes a batch: for each evaluation the values
at the end of the paths that the expression reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from mooring.cel.lang.cells import Path, Pattern
from mooring.cel.lang.lines import NotCompilable
from mooring.cel.lang.steps import Step
from mooring.cel.lang.writer import Writer

# Takes the variables and the cost limit; returns the value and the cost, or raises.
Fast = Callable[[dict[str, Any], int], tuple[Any, int]]
# The same for a batch: values and costs, None and None where it would raise.
FastMany = Callable[[Iterable[tuple[Any, ...]], int], tuple[list[Any], list[int | None]]]

_ONE = """\
def evaluate(variables, limit):
{inputs}
    c = 0
{body}
    return {result}, c
"""

_MANY = """\
def evaluate(batch, limit):
    values = []
    costs = []
    for ({inputs}) in batch:
        try:
            c = 0
{body}
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

    paths: tuple[Path, ...]  # what a member of the batch consists of
    evaluate: FastMany


def compile_one(step: Step) -> Fast | None:
    """Return a function that does what the plan does where nothing fails, if there can be one."""
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


def compile_many(step: Step, cells: Iterable[Pattern] = ()) -> Many | None:
    """Return the same for many evaluations, which reads cells from the batch where it can."""
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


def _written(writer: Writer, step: Step) -> str | None:
    """Return the name of the value after the body was written, None if it cannot be."""
    try:
        result = writer.write(step)
        writer.flush()
        writer.line(f"if c > limit: raise {writer.unusual}")
    except (NotCompilable, RecursionError):
        return None
    return result


def _indented(lines: Iterable[str], depth: int) -> str:
    return "\n".join("    " * depth + line for line in lines)


def _function(source: str, writer: Writer) -> Any:
    known = (type, len, dict, tuple, str, int, bool, Exception)
    namespace: dict[str, Any] = {"__builtins__": {}, **{each.__name__: each for each in known}}
    namespace |= writer.constants
    try:
        exec(compile(source, "<expression>", "exec"), namespace)  # noqa: S102
    except (SyntaxError, RecursionError):
        return None  # Python nests blocks less deeply than CEL.
    return namespace["evaluate"]
