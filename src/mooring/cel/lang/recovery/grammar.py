"""The grammar, as data.

Recovery reasons about it: what may follow, what would have been possible instead. So here it
stands once more, in the shape of cel-go's, since the shape decides which errors are reported.

    # label: the attribute of the syntax node that a part becomes
    # alternative: one of the ways to write a rule
    # tail: the alternatives of a rule that begin with the rule itself (member = member "." name)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mooring.cel.lang import parse_tree
from mooring.cel.lang.lexer import Token, TokenKind

# What the labelled parts of an alternative became, and what makes a syntax node of them.
Parts = dict[str, Any]
Make = Callable[[Token, Parts], Any]


@dataclass(frozen=True, slots=True)
class Terminal:
    """One token, of one of some kinds."""

    kinds: frozenset[TokenKind]
    label: str = ""
    is_many: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """A rule, of which the operators that bind less than the precedence are not a part."""

    rule: str
    label: str = ""
    is_many: bool = False
    precedence: int = 0


@dataclass(frozen=True, slots=True)
class Optional:
    """[ parts ]."""

    parts: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """{ parts }, or with at_least_once parts { parts }."""

    parts: tuple[Element, ...]
    at_least_once: bool = False


Element = Terminal | Reference | Optional | Repeated


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to write a rule; `precedence` is that of an operator in a tail."""

    make: Make
    parts: tuple[Element, ...]
    precedence: int = 0


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; `make_broken` makes the node if not even the alternative is known.

    In an alternative of the tail, what was read of the rule so far gets the label `left`.
    """

    name: str
    alternatives: tuple[Alternative, ...]
    tail: tuple[Alternative, ...] = ()
    left: str = "left"
    make_broken: Make = lambda start, _: parse_tree.Broken(start)


def _token(kind: TokenKind, label: str = "", *, is_many: bool = False) -> Terminal:
    return Terminal(frozenset((kind,)), label, is_many)


def _optional(*parts: Element) -> Optional:
    return Optional(parts)


def _repeated(*parts: Element) -> Repeated:
    return Repeated(parts)


def _many(rule: str, label: str) -> Reference:
    return Reference(rule, label, is_many=True)


def _written(make: Make, *parts: Element, precedence: int = 0) -> Alternative:
    return Alternative(make, parts, precedence)


def _node(node: Callable[..., Any]) -> Make:
    return lambda start, parts: node(start, **parts)


def _only(label: str) -> Make:
    """Make no node of its own: the one part stands for the rule."""
    return lambda _, parts: parts.get(label)


def _conditional(start: Token, parts: Parts) -> Any:
    return parse_tree.Conditional(start, **parts) if parts.get("op") else parts.get("condition")


def _logic(start: Token, parts: Parts) -> Any:
    return parse_tree.Logic(start, **parts) if parts.get("ops") else parts["terms"][0]


_LEADING_DOT = _optional(_token(TokenKind.DOT, "dot"))
_QUESTION = _optional(_token(TokenKind.QUESTION, "opt"))
_SIGN = _optional(_token(TokenKind.MINUS, "sign"))
_TRAILING_COMMA = _optional(_token(TokenKind.COMMA))
_COMMA = _token(TokenKind.COMMA)
_COLON = _token(TokenKind.COLON, "colons", is_many=True)
_DOT = _token(TokenKind.DOT, "op")
_IDENTIFIER = _token(TokenKind.IDENTIFIER, "id")
_ARGUMENTS = (_optional(Reference("exprList", "args")), _token(TokenKind.RIGHT_PARENTHESIS))
_RELATIONS = Terminal(
    frozenset(kind for kind in TokenKind if TokenKind.EQUAL <= kind <= TokenKind.GREATER), "op"
)
_PRODUCTS = Terminal(frozenset((TokenKind.STAR, TokenKind.SLASH, TokenKind.PERCENT)), "op")
_SUMS = Terminal(frozenset((TokenKind.PLUS, TokenKind.MINUS)), "op")

_EXPRESSIONS = (
    Rule("start", (_written(_only("e"), Reference("expr", "e"), _token(TokenKind.EOF)),)),
    Rule(
        "expr",
        (
            _written(
                _conditional,
                Reference("conditionalOr", "condition"),
                _optional(
                    _token(TokenKind.QUESTION, "op"),
                    Reference("conditionalOr", "then"),
                    _token(TokenKind.COLON),
                    Reference("expr", "otherwise"),
                ),
            ),
        ),
    ),
    Rule(
        "conditionalOr",
        (
            _written(
                _logic,
                _many("conditionalAnd", "terms"),
                _repeated(
                    _token(TokenKind.OR, "ops", is_many=True), _many("conditionalAnd", "terms")
                ),
            ),
        ),
    ),
    Rule(
        "conditionalAnd",
        (
            _written(
                _logic,
                _many("relation", "terms"),
                _repeated(_token(TokenKind.AND, "ops", is_many=True), _many("relation", "terms")),
            ),
        ),
    ),
    Rule(
        "relation",
        (_written(_only("e"), Reference("calc", "e")),),
        (
            _written(
                _node(parse_tree.Binary),
                _RELATIONS,
                Reference("relation", "right", precedence=2),
                precedence=1,
            ),
        ),
    ),
    Rule(
        "calc",
        (_written(_only("e"), Reference("unary", "e")),),
        (
            _written(
                _node(parse_tree.Binary),
                _PRODUCTS,
                Reference("calc", "right", precedence=3),
                precedence=2,
            ),
            _written(
                _node(parse_tree.Binary),
                _SUMS,
                Reference("calc", "right", precedence=2),
                precedence=1,
            ),
        ),
    ),
    Rule(
        "unary",
        (
            _written(_only("operand"), Reference("member", "operand")),
            _written(
                _node(parse_tree.Unary),
                Repeated((_token(TokenKind.NOT, "ops", is_many=True),), at_least_once=True),
                Reference("member", "operand"),
            ),
            _written(
                _node(parse_tree.Unary),
                Repeated((_token(TokenKind.MINUS, "ops", is_many=True),), at_least_once=True),
                Reference("member", "operand"),
            ),
        ),
        make_broken=lambda start, _: parse_tree.Broken(start, is_placed=True),
    ),
    Rule(
        "member",
        (_written(_only("e"), Reference("primary", "e")),),
        (
            _written(
                _node(parse_tree.Select),
                _DOT,
                _QUESTION,
                Reference("escapeIdent", "name"),
                precedence=3,
            ),
            _written(
                _node(parse_tree.MemberCall),
                _DOT,
                _IDENTIFIER,
                _token(TokenKind.LEFT_PARENTHESIS, "open"),
                *_ARGUMENTS,
                precedence=2,
            ),
            _written(
                _node(parse_tree.Index),
                _token(TokenKind.LEFT_BRACKET, "op"),
                _QUESTION,
                Reference("expr", "index"),
                _token(TokenKind.RIGHT_BRACKET),
                precedence=1,
            ),
        ),
        left="operand",
    ),
)

_OPERANDS = (
    Rule(
        "primary",
        (
            _written(_node(parse_tree.Ident), _LEADING_DOT, _IDENTIFIER),
            _written(
                _node(parse_tree.GlobalCall),
                _LEADING_DOT,
                _IDENTIFIER,
                _token(TokenKind.LEFT_PARENTHESIS, "op"),
                *_ARGUMENTS,
            ),
            _written(
                _only("e"),
                _token(TokenKind.LEFT_PARENTHESIS),
                Reference("expr", "e"),
                _token(TokenKind.RIGHT_PARENTHESIS),
            ),
            _written(
                _node(parse_tree.ListLiteral),
                _token(TokenKind.LEFT_BRACKET, "op"),
                _optional(Reference("listInit", "elements")),
                _TRAILING_COMMA,
                _token(TokenKind.RIGHT_BRACKET),
            ),
            _written(
                _node(parse_tree.MapLiteral),
                _token(TokenKind.LEFT_BRACE, "op"),
                _optional(Reference("mapInitializerList", "entries")),
                _TRAILING_COMMA,
                _token(TokenKind.RIGHT_BRACE),
            ),
            _written(
                _node(parse_tree.MessageLiteral),
                _LEADING_DOT,
                _token(TokenKind.IDENTIFIER, "ids", is_many=True),
                _repeated(
                    _token(TokenKind.DOT),
                    _token(TokenKind.IDENTIFIER, "ids", is_many=True),
                ),
                _token(TokenKind.LEFT_BRACE, "op"),
                _optional(Reference("fieldInitializerList", "entries")),
                _TRAILING_COMMA,
                _token(TokenKind.RIGHT_BRACE),
            ),
            _written(_only("e"), Reference("literal", "e")),
        ),
    ),
    Rule(
        "exprList",
        (
            _written(
                _node(parse_tree.Args),
                _many("expr", "args"),
                _repeated(_COMMA, _many("expr", "args")),
            ),
        ),
    ),
    Rule(
        "listInit",
        (
            _written(
                _node(parse_tree.Elements),
                _many("optExpr", "elements"),
                _repeated(_COMMA, _many("optExpr", "elements")),
            ),
        ),
    ),
    Rule(
        "fieldInitializerList",
        (
            _written(
                _node(parse_tree.Fields),
                _many("optField", "fields"),
                _COLON,
                _many("expr", "values"),
                _repeated(_COMMA, _many("optField", "fields"), _COLON, _many("expr", "values")),
            ),
        ),
    ),
    Rule(
        "optField",
        (_written(_node(parse_tree.Field), _QUESTION, Reference("escapeIdent", "name")),),
    ),
    Rule(
        "mapInitializerList",
        (
            _written(
                _node(parse_tree.Entries),
                _many("optExpr", "keys"),
                _COLON,
                _many("expr", "values"),
                _repeated(_COMMA, _many("optExpr", "keys"), _COLON, _many("expr", "values")),
            ),
        ),
    ),
    Rule(
        "escapeIdent",
        (
            _written(_node(parse_tree.Name), _IDENTIFIER),
            _written(_node(parse_tree.Name), _token(TokenKind.ESCAPED_IDENTIFIER, "id")),
        ),
        make_broken=_node(parse_tree.Name),
    ),
    Rule(
        "optExpr",
        (_written(_node(parse_tree.Element), _QUESTION, Reference("expr", "e")),),
    ),
    Rule(
        "literal",
        (
            _written(_node(parse_tree.Constant), _SIGN, _token(TokenKind.INT, "token")),
            _written(_node(parse_tree.Constant), _token(TokenKind.UINT, "token")),
            _written(_node(parse_tree.Constant), _SIGN, _token(TokenKind.FLOAT, "token")),
            *(
                _written(_node(parse_tree.Constant), _token(kind, "token"))
                for kind in (
                    TokenKind.STRING,
                    TokenKind.BYTES,
                    TokenKind.TRUE,
                    TokenKind.FALSE,
                    TokenKind.NULL,
                )
            ),
        ),
    ),
)

RULES: Final = {rule.name: rule for rule in (*_EXPRESSIONS, *_OPERANDS)}
