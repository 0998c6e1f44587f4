"""Expressions as written: what the grammar tells apart, before macros and literals mean anything.

Parentheses have done their work and are gone, and a rule that only passes on its one part leaves
no node. In the tree of a text with errors any part may be missing: None, or Broken.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mooring.cel.lang.lexer import Token


@dataclass(slots=True)
class Written:
    """What all nodes have."""

    start: Token


@dataclass(slots=True)
class Broken(Written):
    """What recovery could make nothing of."""

    is_placed: bool = False  # whether errors about it may point at its start


@dataclass(slots=True)
class Conditional(Written):
    """`condition ? then : otherwise`."""

    condition: Tree | None = None
    op: Token | None = None
    then: Tree | None = None
    otherwise: Tree | None = None


@dataclass(slots=True)
class Logic(Written):
    """`term && term && term`, or the same with `||`."""

    terms: list[Tree | None] = field(default_factory=list)
    ops: list[Token] = field(default_factory=list)


@dataclass(slots=True)
class Binary(Written):
    """`left op right`: arithmetic, comparison or `in`."""

    left: Tree | None = None
    op: Token | None = None
    right: Tree | None = None


@dataclass(slots=True)
class Unary(Written):
    """`!!operand`, `--operand`."""

    ops: list[Token] = field(default_factory=list)
    operand: Tree | None = None


@dataclass(slots=True)
class Name(Written):
    """A field name: an identifier, or one in backticks."""

    id: Token | None = None


@dataclass(slots=True)
class Select(Written):
    """`operand.name`, `operand.?name`."""

    operand: Tree | None = None
    op: Token | None = None
    opt: Token | None = None
    name: Name | None = None


@dataclass(slots=True)
class MemberCall(Written):
    """`operand.id(args)`."""

    operand: Tree | None = None
    op: Token | None = None
    id: Token | None = None
    open: Token | None = None
    args: Args | None = None


@dataclass(slots=True)
class Index(Written):
    """`operand[index]`, `operand[?index]`."""

    operand: Tree | None = None
    op: Token | None = None
    opt: Token | None = None
    index: Tree | None = None


@dataclass(slots=True)
class Ident(Written):
    """`id`, `.id`."""

    dot: Token | None = None
    id: Token | None = None


@dataclass(slots=True)
class GlobalCall(Written):
    """`id(args)`, `.id(args)`."""

    dot: Token | None = None
    id: Token | None = None
    op: Token | None = None
    args: Args | None = None


@dataclass(slots=True)
class Args(Written):
    """What stands between the parentheses of a call."""

    args: list[Tree | None] = field(default_factory=list)


@dataclass(slots=True)
class Element(Written):
    """`e`, `?e`: an element of a list or a key of a map."""

    opt: Token | None = None
    e: Tree | None = None


@dataclass(slots=True)
class Elements(Written):
    """What stands between the brackets of a list."""

    elements: list[Element] = field(default_factory=list)


@dataclass(slots=True)
class ListLiteral(Written):
    """`[a, ?b]`."""

    op: Token | None = None
    elements: Elements | None = None


@dataclass(slots=True)
class Entries(Written):
    """What stands between the braces of a map."""

    keys: list[Element] = field(default_factory=list)
    colons: list[Token] = field(default_factory=list)
    values: list[Tree | None] = field(default_factory=list)


@dataclass(slots=True)
class MapLiteral(Written):
    """`{k: v, ?k: v}`."""

    op: Token | None = None
    entries: Entries | None = None


@dataclass(slots=True)
class Field(Written):
    """`name`, `?name`: the left side of a field of a message."""

    opt: Token | None = None
    name: Name | None = None


@dataclass(slots=True)
class Fields(Written):
    """What stands between the braces of a message."""

    fields: list[Field] = field(default_factory=list)
    colons: list[Token] = field(default_factory=list)
    values: list[Tree | None] = field(default_factory=list)


@dataclass(slots=True)
class MessageLiteral(Written):
    """`pkg.Type{name: v}`."""

    dot: Token | None = None
    ids: list[Token] = field(default_factory=list)
    ops: list[Token] = field(default_factory=list)
    op: Token | None = None
    entries: Fields | None = None


@dataclass(slots=True)
class Constant(Written):
    """A number with its sign, a string, bytes, `true`, `false` or `null`."""

    sign: Token | None = None
    token: Token | None = None


# An expression.
Tree = (
    Broken
    | Conditional
    | Logic
    | Binary
    | Unary
    | Select
    | MemberCall
    | Index
    | Ident
    | GlobalCall
    | ListLiteral
    | MapLiteral
    | MessageLiteral
    | Constant
)
