"""The parse tree: expressions by the grammar, before macros and literals are interpreted.

Parentheses leave no node, nor does a rule that only passes on its one part. In the tree of a text
with errors any part may be missing: None, or Broken.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from moorage.cel.lang.lexer import Token


@dataclass(slots=True)
class ParseNode:
    """The attribute of all nodes."""

    start: Token


@dataclass(slots=True)
class Broken(ParseNode):
    """A part that recovery could not parse."""

    is_placed: bool = False  # whether errors about it may point at its start


@dataclass(slots=True)
class Conditional(ParseNode):
    """`condition ? then : otherwise`."""

    condition: Tree | None = None
    op: Token | None = None
    then: Tree | None = None
    otherwise: Tree | None = None


@dataclass(slots=True)
class Logic(ParseNode):
    """`term && term && term`, or the same with `||`."""

    terms: list[Tree | None] = field(default_factory=list)
    ops: list[Token] = field(default_factory=list)


@dataclass(slots=True)
class Binary(ParseNode):
    """`left op right`: arithmetic, comparison or `in`."""

    left: Tree | None = None
    op: Token | None = None
    right: Tree | None = None


@dataclass(slots=True)
class Unary(ParseNode):
    """`!!operand`, `--operand`."""

    ops: list[Token] = field(default_factory=list)
    operand: Tree | None = None


@dataclass(slots=True)
class Name(ParseNode):
    """A field name: an identifier, or one in backticks."""

    id: Token | None = None


@dataclass(slots=True)
class Select(ParseNode):
    """`operand.name`, `operand.?name`."""

    operand: Tree | None = None
    op: Token | None = None
    opt: Token | None = None
    name: Name | None = None


@dataclass(slots=True)
class MemberCall(ParseNode):
    """`operand.id(args)`."""

    operand: Tree | None = None
    op: Token | None = None
    id: Token | None = None
    open: Token | None = None
    args: CallArguments | None = None


@dataclass(slots=True)
class Index(ParseNode):
    """`operand[index]`, `operand[?index]`."""

    operand: Tree | None = None
    op: Token | None = None
    opt: Token | None = None
    index: Tree | None = None


@dataclass(slots=True)
class Ident(ParseNode):
    """`id`, `.id`."""

    dot: Token | None = None
    id: Token | None = None


@dataclass(slots=True)
class GlobalCall(ParseNode):
    """`id(args)`, `.id(args)`."""

    dot: Token | None = None
    id: Token | None = None
    op: Token | None = None
    args: CallArguments | None = None


@dataclass(slots=True)
class CallArguments(ParseNode):
    """The arguments of a call."""

    args: list[Tree | None] = field(default_factory=list)


@dataclass(slots=True)
class OptionalExpr(ParseNode):
    """`e`, `?e`: an element of a list or a key of a map."""

    opt: Token | None = None
    e: Tree | None = None


@dataclass(slots=True)
class ListElements(ParseNode):
    """The elements of a list."""

    elements: list[OptionalExpr] = field(default_factory=list)


@dataclass(slots=True)
class ListLiteral(ParseNode):
    """`[a, ?b]`."""

    op: Token | None = None
    elements: ListElements | None = None


@dataclass(slots=True)
class MapInitializers(ParseNode):
    """The entries of a map."""

    keys: list[OptionalExpr] = field(default_factory=list)
    colons: list[Token] = field(default_factory=list)
    values: list[Tree | None] = field(default_factory=list)


@dataclass(slots=True)
class MapLiteral(ParseNode):
    """`{k: v, ?k: v}`."""

    op: Token | None = None
    entries: MapInitializers | None = None


@dataclass(slots=True)
class FieldName(ParseNode):
    """`name`, `?name`: the left side of a field of a message."""

    opt: Token | None = None
    name: Name | None = None


@dataclass(slots=True)
class FieldInitializers(ParseNode):
    """The fields of a message."""

    fields: list[FieldName] = field(default_factory=list)
    colons: list[Token] = field(default_factory=list)
    values: list[Tree | None] = field(default_factory=list)


@dataclass(slots=True)
class MessageLiteral(ParseNode):
    """`pkg.Type{name: v}`."""

    dot: Token | None = None
    ids: list[Token] = field(default_factory=list)
    ops: list[Token] = field(default_factory=list)
    op: Token | None = None
    entries: FieldInitializers | None = None


@dataclass(slots=True)
class Constant(ParseNode):
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
