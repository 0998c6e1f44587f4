"""What an expression reads of a device.

An expression that reads two attributes cannot tell apart devices that have the same two. So a
fleet of thousands falls into a few groups, and one device of each tells for all. This must never
be wrong: whatever is not understood counts as reading the whole device.

# read: `device.attributes["d"].model`, or only its domain, or one of the fields of the device
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from mooring.cel.lang import ast
from mooring.insight.expressions.trees import binding

DEVICE: Final = "device"
MAPS: Final = ("attributes", "capacity")
FIELDS: Final = ("driver", "name", "allowMultipleAllocations")


class Read(NamedTuple):
    """A place in a device: `attributes["domain"].name`; "" stands for all that is there."""

    field: str
    domain: str = ""
    name: str = ""


EVERYTHING: Final = Read("")


class Reading(NamedTuple):
    """A read, the node it is, and whether it asks only if something is there, or may be absent."""

    read: Read
    node: ast.Expr
    is_guarded: bool = False


Aliases = Mapping[str, Read]  # names that cel.bind gave to places


def reads_of(node: ast.Expr) -> frozenset[Read]:
    """Return all places that an expression reads."""
    return frozenset(reading.read for reading in readings(node))


def readings(node: ast.Expr, aliases: Aliases | None = None) -> Iterator[Reading]:
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
) -> Iterator[Reading]:
    named = place(value, aliases)
    inner = {other: read for other, read in aliases.items() if other != name}
    if named is not None and not named.is_guarded and named.read.field and not named.read.name:
        # The name stands for a map; what is read of it shows where it is used.
        yield from readings(result, {**inner, name: named.read})
        return
    yield from readings(value, aliases)
    yield from readings(result, inner)


def place(node: ast.Expr, aliases: Aliases) -> Reading | None:
    """Return the place in the device that a node stands for, or None if it is no such thing."""
    match node:
        case ast.Ident(name=name):
            read = aliases.get(name.removeprefix("."))
            return None if read is None else Reading(read, node)
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
) -> Reading | None:
    outer = place(operand, aliases)
    if outer is None:
        return None
    guarded = is_guarded or outer.is_guarded
    match outer.read:
        case Read(field=""):
            return (
                Reading(Read(key), node) if key in (*MAPS, *FIELDS) else Reading(EVERYTHING, node)
            )
        case Read(field=field, domain="") if field in MAPS:
            return Reading(Read(field, key), node, guarded)
        case Read(field=field, domain=domain, name="") if domain:
            return Reading(Read(field, domain, key), node, guarded)
        case _:
            # Something of a value: `"x" in device.attributes["d"].list[0]`.
            return Reading(outer.read, outer.node, outer.is_guarded)
