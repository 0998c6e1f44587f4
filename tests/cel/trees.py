"""Syntax trees as text, for tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moorage.cel.lang import ast
from moorage.cel.lang.ast import Expr, ParsedAST, children
from moorage.cel.lang.errors import CompileError
from moorage.cel.lang.macros import STANDARD_MACROS
from moorage.cel.lang.parser import parse


def parsed(text: str) -> ParsedAST:
    return parse(text, STANDARD_MACROS)


def tree(text: str) -> str:
    return show(parsed(text).expr)


def error(text: str) -> str:
    with pytest.raises(CompileError) as caught:
        parsed(text)
    return str(caught.value)


def messages(text: str) -> list[str]:
    """Return the places and messages of the errors of a text, without the lines."""
    lines = error(text).split("\n")
    return [line.removeprefix("ERROR: <input>:") for line in lines if line.startswith("ERROR")]


def show(node: Expr) -> str:
    """Return a tree as one line; strings as Python writes them."""
    match node:
        case ast.Literal(value=value):
            return repr(value)
        case ast.Ident(name=name):
            return name
        case ast.Select(operand=operand, field=field, test_only=test_only):
            return f"{show(operand)}.{field}{'?' if test_only else ''}"
        case ast.Call(function=function, args=args, target=target):
            before = f"{show(target)}." if target else ""
            return f"{before}{function}({_row(args)})"
        case ast.CreateList(elements=elements, optional=optional):
            marks = ("?" if i in optional else "" for i in range(len(elements)))
            parts = (mark + show(part) for mark, part in zip(marks, elements, strict=True))
            return f"[{', '.join(parts)}]"
        case ast.CreateMap(entries=entries):
            return f"{{{', '.join(_mark(e) + f'{show(e.key)}: {show(e.value)}' for e in entries)}}}"
        case ast.CreateStruct(type_name=name, fields=fields):
            parts = (_mark(e) + f"{e.field}: {show(e.value)}" for e in fields)
            return f"{name}{{{', '.join(parts)}}}"
        case ast.Comprehension():
            names = (node.iter_var, node.accu_var)
            assert node.iter_var2 is None
            return f"loop({', '.join(names)}; {'; '.join(map(show, children(node)))})"


def _row(nodes: tuple[Expr, ...]) -> str:
    return ", ".join(map(show, nodes))


def _mark(entry: ast.MapEntry | ast.FieldEntry) -> str:
    return "?" if entry.optional else ""


def nodes(node: Expr) -> Iterator[Expr]:
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += children(node)
