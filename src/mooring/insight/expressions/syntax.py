"""Expressions taken apart: what they read of a device, their bindings, terms and chains.

An expression that reads two attributes cannot tell apart devices that have the same two. So
thousands of devices fall into a few groups, and one device of each is evaluated for all. This must
never be wrong: whatever is not understood counts as reading the whole device.

    # read: `device.attributes["d"].model`, or only its domain, or one of the fields of the device
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mooring.cel.lang import ast
from mooring.cel.lang.library.bindings import UNUSED

DEVICE: Final = "device"
MAPS: Final = ("attributes", "capacity")
FIELDS: Final = ("driver", "name", "allowMultipleAllocations")
LOGIC: Final = frozenset({"_&&_", "_||_"})


class DeviceField(NamedTuple):
    """A field of a device: `attributes["domain"].name`; "" stands for everything at that level."""

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
    """Give every read below a node; EVERYTHING where it is not clear what is read."""
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
        # The name stands for a map; its uses show what is read.
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
    """Give the longest chains below a node that need no variables but these."""
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
