"""Shapes in the trees of expressions: logic, bindings, and chains of fields and keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mooring.cel.lang import ast
from mooring.cel.lang.library.bindings import UNUSED

LOGIC: Final = frozenset({"_&&_", "_||_"})


class Binding(NamedTuple):
    """`cel.bind(name, value, result)`."""

    name: str
    value: ast.Expr
    result: ast.Expr


def binding(node: ast.Expr) -> Binding | None:
    """Return what a node binds, if it is a `cel.bind`."""
    if isinstance(node, ast.Comprehension) and node.iter_var == UNUSED:
        return Binding(node.accu_var, node.accu_init, node.result)
    return None


def walk(node: ast.Expr) -> Iterator[ast.Expr]:
    """Give a node and all below it, in the order they are written."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(ast.children(current)))


def terms(node: ast.Call) -> Iterator[ast.Expr]:
    """Give the terms of `a && b && c`, however they are grouped."""
    waiting: list[ast.Expr] = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, ast.Call) and current.function == node.function:
            waiting.extend(reversed(current.args))
        else:
            yield current


def is_chain(node: ast.Expr, variables: Mapping[str, Any]) -> bool:
    """Whether a node is a variable with fields and keys: `device.attributes["d"].?model`."""
    while True:
        match node:
            case ast.Ident(name=name):
                return name.removeprefix(".") in variables
            case ast.Select(operand=operand, test_only=False):
                node = operand
            case ast.Call(function="_[_]" | "_[?_]" | "_?._", args=(target, _)):
                node = target
            case _:
                return False


def chains(node: ast.Expr, variables: Mapping[str, Any]) -> Iterator[ast.Expr]:
    """Give the longest chains below a node that need no variables but these."""
    if is_chain(node, variables):
        yield node
        return
    match node:
        case ast.Comprehension():
            inner: tuple[ast.Expr, ...] = (
                (node.accu_init,) if node.iter_var == UNUSED else (node.iter_range,)
            )
        case ast.Select(test_only=True):
            inner = ()
        case _:
            inner = ast.children(node)
    for child in inner:
        yield from chains(child, variables)
