"""Find mistakes that types do not show: literals that cannot be meant.

- `[1, "a"]`, `[1, dyn(2)]`, `{1: 1, "a": 1}`: entries must have one type;
- `duration("x")`, `timestamp("x")`: the argument is read as it would be at run time;
- `s.matches("(")`: the pattern must be a regular expression;
- what libraries check themselves, such as the format string of `format`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mooring.cel.lang import ast, complaints
from mooring.cel.lang.ast import Expr
from mooring.cel.lang.checked import Checked
from mooring.cel.lang.environment import Environment
from mooring.cel.lang.errors import CompileError, Issue
from mooring.cel.lang.inference import is_optional, same
from mooring.cel.lang.regex import compile_regex
from mooring.cel.lang.types import Type
from mooring.cel.lang.values import EvalError

_CONVERSIONS = ("duration", "timestamp")
_MATCHES = "matches"
# Its argument is one list of whatever the format string asks for.
_MIXES_TYPES = "format"

Finding = tuple[Expr, str]


def validate(checked: Checked, environment: Environment) -> None:
    """Raise CompileError if an expression holds literals that cannot be right."""
    findings = list(_findings(checked, environment))
    if findings:
        issues = [Issue(node.offset, message) for node, message in findings]
        raise CompileError(issues, checked.parsed.source)


def _findings(checked: Checked, environment: Environment) -> Iterator[Finding]:
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
    """Yield nodes after those below them, with whether they may hold entries of several types."""
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
    calls: list[ast.Call], function: str, checked: Checked, environment: Environment
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
        # Of `matches(text, pattern)` the reference implementation looks at the text.
        literal = _first_literal(call)
        if call.function != _MATCHES or literal is None:
            continue
        try:
            compile_regex(literal.value)
        except EvalError:
            yield literal, f"invalid {_MATCHES} argument"


def _mixed_elements(node: ast.CreateList, checked: Checked) -> Iterator[Finding]:
    first: Type | None = None
    for position, element in enumerate(node.elements):
        type_ = _held(checked.types[element.id], optional=position in node.optional)
        first = first or type_
        if not same(first, type_):
            yield _mismatch(element, first, type_)
            return


def _mixed_entries(node: ast.CreateMap, checked: Checked) -> Iterator[Finding]:
    if not node.entries:
        return
    types = [
        (checked.types[entry.key.id], _held(checked.types[entry.value.id], optional=entry.optional))
        for entry in node.entries
    ]
    first_key, first_value = types[0]
    for entry, (key, value) in zip(node.entries, types, strict=True):
        if not same(first_key, key):
            yield _mismatch(entry.key, first_key, key)
        if not same(first_value, value):
            yield _mismatch(entry.value, first_value, value)


def _held(type_: Type, *, optional: bool) -> Type:
    return type_.params[0] if optional and is_optional(type_) else type_


def _mismatch(node: Expr, wanted: Type, given: Type) -> Finding:
    return node, complaints.mismatch(wanted, given)
