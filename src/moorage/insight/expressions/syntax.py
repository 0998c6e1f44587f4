"""Expressions taken apart, and written as text that fits on a line.

An expression that reads two attributes cannot distinguish devices that have the same two. So
thousands of devices fall into a few groups, and one device of each is evaluated for all. This must
never be wrong: whatever is not understood counts as reading the whole device.

    # read: `device.attributes["d"].model`, or only its domain, or one of the fields of the device

The parser records where a node begins but not where it ends, and nobody wrote what a macro expands
to. So a part of an expression is formatted from its tree, in one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from moorage.cel.lang import ast
from moorage.cel.lang.costs import UNBOUNDED
from moorage.cel.lang.macros import UNUSED
from moorage.cel.lang.values import Optional, TypeValue, UInt, key_value

DEVICE: Final = "device"
MAPS: Final = ("attributes", "capacity")
FIELDS: Final = ("driver", "name", "allowMultipleAllocations")
LOGIC: Final = frozenset({"_&&_", "_||_"})
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
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKETS: Final = re.compile(r"\([^()\[\]]*\)|\[[^()\[\]]*\]")
_RELATION_SIGN: Final = re.compile(r" (?:==|!=|<|<=|>|>=|in) ")


class DeviceField(NamedTuple):
    """A field of a device: `attributes["domain"].name`; "" means everything at that level."""

    field: str
    domain: str = ""
    name: str = ""


EVERYTHING: Final = DeviceField("")


class DeviceRead(NamedTuple):
    """A field that is read, by which node, and whether the read allows for its absence."""

    read: DeviceField
    node: ast.Expr
    is_guarded: bool = False


Aliases = Mapping[str, DeviceField]  # names that cel.bind gave to fields


def reads_of(node: ast.Expr) -> frozenset[DeviceField]:
    """Return all fields that an expression reads."""
    return frozenset(reading.read for reading in readings(node))


def readings(node: ast.Expr, aliases: Aliases | None = None) -> Iterator[DeviceRead]:
    """Yield every read below a node; EVERYTHING if the read fields are unclear."""
    aliases = {DEVICE: EVERYTHING} if aliases is None else aliases
    found = place(node, aliases)
    if found is not None:
        yield found
        return
    bound = binding(node)
    if bound is not None:
        yield from _in_binding(bound.name, bound.value, bound.result, aliases)
    elif isinstance(node, ast.Comprehension):
        yield from readings(node.iter_range, aliases)
        names = (node.iter_var, node.iter_var2, node.accu_var)
        inner = {name: read for name, read in aliases.items() if name not in names}
        for part in (node.accu_init, node.loop_condition, node.loop_step, node.result):
            yield from readings(part, inner)
    else:
        for child in ast.children(node):
            yield from readings(child, aliases)


def _in_binding(
    name: str, value: ast.Expr, result: ast.Expr, aliases: Aliases
) -> Iterator[DeviceRead]:
    named = place(value, aliases)
    inner = {other: read for other, read in aliases.items() if other != name}
    if named is not None and not named.is_guarded and named.read.field and not named.read.name:
        # The name refers to a map; its uses show which keys are read.
        yield from readings(result, {**inner, name: named.read})
        return
    yield from readings(value, aliases)
    yield from readings(result, inner)


def place(node: ast.Expr, aliases: Aliases) -> DeviceRead | None:
    """Return the device field that a node reads; None if it reads none."""
    match node:
        case ast.Ident(name=name):
            read = aliases.get(name.removeprefix("."))
            return None if read is None else DeviceRead(read, node)
        case ast.Select(operand=operand, field=field, test_only=is_test):
            return _below(node, operand, field, aliases, is_guarded=is_test)
        case ast.Call(function="_[_]", args=(target, ast.Literal(value=str(key)))):
            return _below(node, target, key, aliases, is_guarded=False)
        case ast.Call(function="_[?_]" | "_?._", args=(target, ast.Literal(value=str(key)))):
            return _below(node, target, key, aliases, is_guarded=True)
        case _:
            return None


def _below(
    node: ast.Expr, operand: ast.Expr, key: str, aliases: Aliases, *, is_guarded: bool
) -> DeviceRead | None:
    outer = place(operand, aliases)
    if outer is None:
        return None
    guarded = is_guarded or outer.is_guarded
    match outer.read:
        case DeviceField(field=""):
            return (
                DeviceRead(DeviceField(key), node)
                if key in (*MAPS, *FIELDS)
                else DeviceRead(EVERYTHING, node)
            )
        case DeviceField(field=field, domain="") if field in MAPS:
            return DeviceRead(DeviceField(field, key), node, guarded)
        case DeviceField(field=field, domain=domain, name="") if domain:
            return DeviceRead(DeviceField(field, domain, key), node, guarded)
        case _:
            # Something of a value: `"x" in device.attributes["d"].list[0]`.
            return DeviceRead(outer.read, outer.node, outer.is_guarded)


# --- shapes of trees --------------------------------------------------------------------


class VariableBinding(NamedTuple):
    """`cel.bind(name, value, result)`."""

    name: str
    value: ast.Expr
    result: ast.Expr


def binding(node: ast.Expr) -> VariableBinding | None:
    """Return the binding of a node, if it is a `cel.bind`."""
    if isinstance(node, ast.Comprehension) and node.iter_var == UNUSED:
        return VariableBinding(node.accu_var, node.accu_init, node.result)
    return None


def walk(node: ast.Expr) -> Iterator[ast.Expr]:
    """Yield a node and all below it, in the order they are written."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(ast.children(current)))


def terms(node: ast.Call) -> Iterator[ast.Expr]:
    """Yield the terms of `a && b && c`, however they are grouped."""
    waiting: list[ast.Expr] = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, ast.Call) and current.function == node.function:
            waiting.extend(reversed(current.args))
        else:
            yield current


def _is_chain(node: ast.Expr, variables: Mapping[str, Any]) -> bool:
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
    """Yield the longest chains below a node that need no variables but these."""
    if _is_chain(node, variables):
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


# --- text -------------------------------------------------------------------------------


def write(
    node: ast.Expr,
    macro_calls: Mapping[int, ast.Call],
    instead: Mapping[int, str] | None = None,
    *,
    is_operand: bool = False,
) -> str:
    """Return the text of a node, with macros as they were called.

    `instead` has other texts for nodes, by id. An operand of `&&` may need parentheses.
    """
    writer = _Writer(macro_calls, instead or {})
    return writer.write(node, tightness=_AND if is_operand else _TERNARY)


class _Writer:
    def __init__(self, macro_calls: Mapping[int, ast.Call], instead: Mapping[int, str]) -> None:
        self._macro_calls = macro_calls
        self._instead = instead

    def write(self, node: ast.Expr, *, tightness: int = _TERNARY) -> str:
        """Return the text of a node, in parentheses where its position needs them."""
        text, own = self._written(node)
        return text if own >= tightness else f"({text})"

    def _written(self, node: ast.Expr) -> tuple[str, int]:
        if node.id in self._instead:
            text = self._instead[node.id]
            return text, _tightness(text)
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


def _tightness(text: str) -> int:
    """Return how tightly a text binds: as its loosest operator outside strings and brackets."""
    plain = _STRING.sub('""', text)
    while (shorter := _BRACKETS.sub("", plain)) != plain:
        plain = shorter
    for sign, tightness in (("?", _TERNARY), ("||", _OR), ("&&", _AND)):
        if f" {sign} " in plain:
            return tightness
    if _RELATION_SIGN.search(plain):
        return _RELATION
    return _UNARY if plain.startswith(("!", "-")) else _TIGHTEST


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
