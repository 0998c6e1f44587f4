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

from mooring.cel.lang import syntax
from mooring.cel.lang.tokens import Kind, Token

# What the labelled parts of an alternative became, and what makes a syntax node of them.
Parts = dict[str, Any]
Make = Callable[[Token, Parts], Any]


@dataclass(frozen=True, slots=True)
class Terminal:
    """One token, of one of some kinds."""

    kinds: frozenset[Kind]
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
    make_broken: Make = lambda start, _: syntax.Broken(start)


def _token(kind: Kind, label: str = "", *, is_many: bool = False) -> Terminal:
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
    return syntax.Conditional(start, **parts) if parts.get("op") else parts.get("condition")


def _logic(start: Token, parts: Parts) -> Any:
    return syntax.Logic(start, **parts) if parts.get("ops") else parts["terms"][0]


_LEADING_DOT = _optional(_token(Kind.DOT, "dot"))
_QUESTION = _optional(_token(Kind.QUESTION, "opt"))
_SIGN = _optional(_token(Kind.MINUS, "sign"))
_TRAILING_COMMA = _optional(_token(Kind.COMMA))
_COMMA = _token(Kind.COMMA)
_COLON = _token(Kind.COLON, "colons", is_many=True)
_DOT = _token(Kind.DOT, "op")
_IDENTIFIER = _token(Kind.IDENTIFIER, "id")
_ARGUMENTS = (_optional(Reference("exprList", "args")), _token(Kind.RIGHT_PARENTHESIS))
_RELATIONS = Terminal(frozenset(kind for kind in Kind if Kind.EQUAL <= kind <= Kind.GREATER), "op")
_PRODUCTS = Terminal(frozenset((Kind.STAR, Kind.SLASH, Kind.PERCENT)), "op")
_SUMS = Terminal(frozenset((Kind.PLUS, Kind.MINUS)), "op")

_EXPRESSIONS = (
    Rule("start", (_written(_only("e"), Reference("expr", "e"), _token(Kind.EOF)),)),
    Rule(
        "expr",
        (
            _written(
                _conditional,
                Reference("conditionalOr", "condition"),
                _optional(
                    _token(Kind.QUESTION, "op"),
                    Reference("conditionalOr", "then"),
                    _token(Kind.COLON),
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
                _repeated(_token(Kind.OR, "ops", is_many=True), _many("conditionalAnd", "terms")),
            ),
        ),
    ),
    Rule(
        "conditionalAnd",
        (
            _written(
                _logic,
                _many("relation", "terms"),
                _repeated(_token(Kind.AND, "ops", is_many=True), _many("relation", "terms")),
            ),
        ),
    ),
    Rule(
        "relation",
        (_written(_only("e"), Reference("calc", "e")),),
        (
            _written(
                _node(syntax.Binary),
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
                _node(syntax.Binary),
                _PRODUCTS,
                Reference("calc", "right", precedence=3),
                precedence=2,
            ),
            _written(
                _node(syntax.Binary),
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
                _node(syntax.Unary),
                Repeated((_token(Kind.NOT, "ops", is_many=True),), at_least_once=True),
                Reference("member", "operand"),
            ),
            _written(
                _node(syntax.Unary),
                Repeated((_token(Kind.MINUS, "ops", is_many=True),), at_least_once=True),
                Reference("member", "operand"),
            ),
        ),
        make_broken=lambda start, _: syntax.Broken(start, is_placed=True),
    ),
    Rule(
        "member",
        (_written(_only("e"), Reference("primary", "e")),),
        (
            _written(
                _node(syntax.Select),
                _DOT,
                _QUESTION,
                Reference("escapeIdent", "name"),
                precedence=3,
            ),
            _written(
                _node(syntax.MemberCall),
                _DOT,
                _IDENTIFIER,
                _token(Kind.LEFT_PARENTHESIS, "open"),
                *_ARGUMENTS,
                precedence=2,
            ),
            _written(
                _node(syntax.Index),
                _token(Kind.LEFT_BRACKET, "op"),
                _QUESTION,
                Reference("expr", "index"),
                _token(Kind.RIGHT_BRACKET),
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
            _written(_node(syntax.Ident), _LEADING_DOT, _IDENTIFIER),
            _written(
                _node(syntax.GlobalCall),
                _LEADING_DOT,
                _IDENTIFIER,
                _token(Kind.LEFT_PARENTHESIS, "op"),
                *_ARGUMENTS,
            ),
            _written(
                _only("e"),
                _token(Kind.LEFT_PARENTHESIS),
                Reference("expr", "e"),
                _token(Kind.RIGHT_PARENTHESIS),
            ),
            _written(
                _node(syntax.ListLiteral),
                _token(Kind.LEFT_BRACKET, "op"),
                _optional(Reference("listInit", "elements")),
                _TRAILING_COMMA,
                _token(Kind.RIGHT_BRACKET),
            ),
            _written(
                _node(syntax.MapLiteral),
                _token(Kind.LEFT_BRACE, "op"),
                _optional(Reference("mapInitializerList", "entries")),
                _TRAILING_COMMA,
                _token(Kind.RIGHT_BRACE),
            ),
            _written(
                _node(syntax.MessageLiteral),
                _LEADING_DOT,
                _token(Kind.IDENTIFIER, "ids", is_many=True),
                _repeated(
                    _token(Kind.DOT),
                    _token(Kind.IDENTIFIER, "ids", is_many=True),
                ),
                _token(Kind.LEFT_BRACE, "op"),
                _optional(Reference("fieldInitializerList", "entries")),
                _TRAILING_COMMA,
                _token(Kind.RIGHT_BRACE),
            ),
            _written(_only("e"), Reference("literal", "e")),
        ),
    ),
    Rule(
        "exprList",
        (
            _written(
                _node(syntax.Args),
                _many("expr", "args"),
                _repeated(_COMMA, _many("expr", "args")),
            ),
        ),
    ),
    Rule(
        "listInit",
        (
            _written(
                _node(syntax.Elements),
                _many("optExpr", "elements"),
                _repeated(_COMMA, _many("optExpr", "elements")),
            ),
        ),
    ),
    Rule(
        "fieldInitializerList",
        (
            _written(
                _node(syntax.Fields),
                _many("optField", "fields"),
                _COLON,
                _many("expr", "values"),
                _repeated(_COMMA, _many("optField", "fields"), _COLON, _many("expr", "values")),
            ),
        ),
    ),
    Rule(
        "optField",
        (_written(_node(syntax.Field), _QUESTION, Reference("escapeIdent", "name")),),
    ),
    Rule(
        "mapInitializerList",
        (
            _written(
                _node(syntax.Entries),
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
            _written(_node(syntax.Name), _IDENTIFIER),
            _written(_node(syntax.Name), _token(Kind.ESCAPED_IDENTIFIER, "id")),
        ),
        make_broken=_node(syntax.Name),
    ),
    Rule(
        "optExpr",
        (_written(_node(syntax.Element), _QUESTION, Reference("expr", "e")),),
    ),
    Rule(
        "literal",
        (
            _written(_node(syntax.Constant), _SIGN, _token(Kind.INT, "token")),
            _written(_node(syntax.Constant), _token(Kind.UINT, "token")),
            _written(_node(syntax.Constant), _SIGN, _token(Kind.FLOAT, "token")),
            *(
                _written(_node(syntax.Constant), _token(kind, "token"))
                for kind in (Kind.STRING, Kind.BYTES, Kind.TRUE, Kind.FALSE, Kind.NULL)
            ),
        ),
    ),
)

RULES: Final = {rule.name: rule for rule in (*_EXPRESSIONS, *_OPERANDS)}
