"""Expressions and values as text that fits on a line.

The parser records where a node begins but not where it ends, and nobody wrote what a macro expands
to. So a part of an expression is written anew from its tree, in one line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from mooring.cel.lang import ast
from mooring.cel.lang.declarations import UNBOUNDED
from mooring.cel.lang.values import Optional, TypeValue, UInt, key_value

VALUE_LENGTH_MAX: Final = 100
ELEMENTS_SHOWN_MAX: Final = 8

# How tightly operators bind; everything else binds tightest.
_TERNARY, _OR, _AND, _RELATION, _SUM, _PRODUCT, _UNARY, _TIGHTEST = range(8)
_BINARY: Final = {
    "_||_": ("||", _OR),
    "_&&_": ("&&", _AND),
    "_==_": ("==", _RELATION),
    "_!=_": ("!=", _RELATION),
    "_<_": ("<", _RELATION),
    "_<=_": ("<=", _RELATION),
    "_>_": (">", _RELATION),
    "_>=_": (">=", _RELATION),
    "@in": ("in", _RELATION),
    "_+_": ("+", _SUM),
    "_-_": ("-", _SUM),
    "_*_": ("*", _PRODUCT),
    "_/_": ("/", _PRODUCT),
    "_%_": ("%", _PRODUCT),
}
_PREFIX: Final = {"!_": "!", "-_": "-"}


def write(node: ast.Expr, macro_calls: Mapping[int, ast.Call]) -> str:
    """Return the text of a node, with macros as they were called."""
    return _Writer(macro_calls).write(node)


class _Writer:
    def __init__(self, macro_calls: Mapping[int, ast.Call]) -> None:
        self._macro_calls = macro_calls

    def write(self, node: ast.Expr, *, tightness: int = _TERNARY) -> str:
        """Return the text of a node, in parentheses where its position needs them."""
        text, own = self._written(node)
        return text if own >= tightness else f"({text})"

    def _written(self, node: ast.Expr) -> tuple[str, int]:
        match node:
            case ast.Literal(value=value):
                is_signed = isinstance(value, int | float) and value < 0
                return shown(value, length_max=None), _UNARY if is_signed else _TIGHTEST
            case ast.Ident(name=name):
                return name, _TIGHTEST
            case ast.Select(operand=operand, field=field, test_only=test_only):
                path = f"{self._operand(operand)}.{field}"
                return f"has({path})" if test_only else path, _TIGHTEST
            case ast.Call():
                return self._call(node)
            case ast.CreateList(elements=elements, optional=optional):
                marks = ("?" if i in optional else "" for i in range(len(elements)))
                parts = (mark + self.write(e) for mark, e in zip(marks, elements, strict=True))
                return f"[{', '.join(parts)}]", _TIGHTEST
            case ast.CreateMap(entries=entries):
                pairs = (
                    f"{'?' if e.optional else ''}{self.write(e.key)}: {self.write(e.value)}"
                    for e in entries
                )
                return f"{{{', '.join(pairs)}}}", _TIGHTEST
            case ast.CreateStruct(type_name=name, fields=fields):
                pairs = (f"{f.field}: {self.write(f.value)}" for f in fields)
                return f"{name}{{{', '.join(pairs)}}}", _TIGHTEST
            case ast.Comprehension(id=id_):
                call = self._macro_calls.get(id_)
                return ("…", _TIGHTEST) if call is None else self._call(call)

    def _call(self, node: ast.Call) -> tuple[str, int]:
        if node.id in self._macro_calls:
            return self._call(self._macro_calls[node.id])
        match node.function, node.args:
            case "_?_:_", (condition, truthy, falsy):
                first = self.write(condition, tightness=_OR)
                second = self.write(truthy, tightness=_OR)
                return f"{first} ? {second} : {self.write(falsy)}", _TERNARY
            case "_[_]", (target, key):
                return f"{self._operand(target)}[{self.write(key)}]", _TIGHTEST
            case "_[?_]", (target, key):
                return f"{self._operand(target)}[?{self.write(key)}]", _TIGHTEST
            case "_?._", (target, ast.Literal(value=field)):
                return f"{self._operand(target)}.?{field}", _TIGHTEST
            case function, (operand,) if function in _PREFIX:
                return f"{_PREFIX[function]}{self.write(operand, tightness=_UNARY)}", _UNARY
            case function, args if function in _BINARY and len(args) > 1:
                return self._binary(function, args)
        called = "" if node.target is None else f"{self._operand(node.target)}."
        return f"{called}{node.function}({', '.join(map(self.write, node.args))})", _TIGHTEST

    def _binary(self, function: str, args: tuple[ast.Expr, ...]) -> tuple[str, int]:
        sign, tightness = _BINARY[function]
        # `&&` and `||` may be grouped in any way; all others group from the left.
        right = tightness if tightness in (_OR, _AND) else tightness + 1
        first, *rest = args
        parts = [self.write(first, tightness=tightness)]
        parts += (self.write(arg, tightness=right) for arg in rest)
        return f" {sign} ".join(parts), tightness

    def _operand(self, node: ast.Expr) -> str:
        return self.write(node, tightness=_TIGHTEST)


def shown(value: Any, *, length_max: int | None = VALUE_LENGTH_MAX) -> str:
    """Return a value as a CEL literal, truncated if it is too long."""
    text = _text(value)
    if length_max is None or len(text) <= length_max:
        return text
    return f"{text[: length_max - 1]}…"


def _text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case UInt():
            return f"{int(value)}u"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bytes():
            return f'b"{"".join(map(_byte, value))}"'
        case list() | tuple():
            elements = [_text(element) for element in value[:ELEMENTS_SHOWN_MAX]]
            return f"[{_enumerated(elements, value)}]"
        case dict():
            items = list(value.items())[:ELEMENTS_SHOWN_MAX]
            pairs = [f"{_text(key_value(key))}: {_text(inner)}" for key, inner in items]
            return f"{{{_enumerated(pairs, value)}}}"
        case Optional():
            return _text(value.value) if value.has_value else "absent"
        case TypeValue():
            return value.name
        case _:
            return str(value)


def _enumerated(texts: list[str], values: Any) -> str:
    more = len(values) - len(texts)
    return ", ".join([*texts, f"… {more:,} more"] if more else texts)


def _byte(byte: int) -> str:
    is_plain = 0x20 <= byte < 0x7F and byte not in b'"\\'
    return chr(byte) if is_plain else f"\\x{byte:02x}"


def shown_cost(cost: int) -> str:
    """Return a cost as text; an estimate may be unbounded."""
    return "any amount" if cost >= UNBOUNDED else f"{cost:,}"
