"""cel-go's grammar as data: its shape decides which errors are reported.

alternative = { element } "->" node
element     = item [ ":" label [ "*" ] ] | "[" { element } "]" | "{" { element } "}" [ "+" ]
item        = TOKEN | TOKEN "/" TOKEN … | rule [ "!" precedence ]

# label: the attribute of the parse node that a part becomes; with `*` a list of parts
# [ ]: optional; { }: repeated; { }+: at least once
# node: the class of the parse node; `.label` passes on that part without a node of its own
# tail: the alternatives of a rule that begin with the rule itself (member = member "." name),
#       each behind its precedence; `rule!2` leaves out operators of a lower precedence
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from moorage.cel.lang import parse_tree
from moorage.cel.lang.lexer import Token, TokenKind

# The labelled parts of an alternative, and the function that makes a parse node of them.
Parts = dict[str, Any]
Make = Callable[[Token, Parts], Any]


@dataclass(frozen=True, slots=True)
class Terminal:
    """One token, of one of some kinds."""

    kinds: frozenset[TokenKind]
    label: str = ""
    is_many: bool = False


@dataclass(frozen=True, slots=True)
class RuleReference:
    """A rule, without the operators that bind less than the precedence."""

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


Element = Terminal | RuleReference | Optional | Repeated


@dataclass(frozen=True, slots=True)
class Alternative:
    """One form of a rule; `precedence` is the precedence of an operator in a tail."""

    make: Make
    parts: tuple[Element, ...]
    precedence: int = 0


@dataclass(frozen=True, slots=True)
class GrammarRule:
    """A rule; `make_broken` makes the node if not even the alternative is known.

    In an alternative of the tail, the part that was read before gets the label `left`.
    """

    name: str
    alternatives: tuple[Alternative, ...]
    tail: tuple[Alternative, ...] = ()
    left: str = "left"
    make_broken: Make = lambda start, _: parse_tree.Broken(start)


_GRAMMAR: Final = """
start = expr:e EOF -> .e
expr = conditionalOr:condition [ QUESTION:op conditionalOr:then COLON expr:otherwise ] -> Conditional
conditionalOr = conditionalAnd:terms* { OR:ops* conditionalAnd:terms* } -> Logic
conditionalAnd = relation:terms* { AND:ops* relation:terms* } -> Logic
relation = calc:e -> .e
  1 EQUAL/NOT_EQUAL/IN/LESS/LESS_EQUAL/GREATER_EQUAL/GREATER:op relation!2:right -> Binary
calc = unary:e -> .e
  2 STAR/SLASH/PERCENT:op calc!3:right -> Binary
  1 PLUS/MINUS:op calc!2:right -> Binary
unary = member:operand -> .operand
  | { NOT:ops* }+ member:operand -> Unary
  | { MINUS:ops* }+ member:operand -> Unary
member = primary:e -> .e
  3 DOT:op [ QUESTION:opt ] escapeIdent:name -> Select
  2 DOT:op IDENTIFIER:id LEFT_PARENTHESIS:open [ exprList:args ] RIGHT_PARENTHESIS -> MemberCall
  1 LEFT_BRACKET:op [ QUESTION:opt ] expr:index RIGHT_BRACKET -> Index
primary = [ DOT:dot ] IDENTIFIER:id -> Ident
  | [ DOT:dot ] IDENTIFIER:id LEFT_PARENTHESIS:op [ exprList:args ] RIGHT_PARENTHESIS -> GlobalCall
  | LEFT_PARENTHESIS expr:e RIGHT_PARENTHESIS -> .e
  | LEFT_BRACKET:op [ listInit:elements ] [ COMMA ] RIGHT_BRACKET -> ListLiteral
  | LEFT_BRACE:op [ mapInitializerList:entries ] [ COMMA ] RIGHT_BRACE -> MapLiteral
  | [ DOT:dot ] IDENTIFIER:ids* { DOT IDENTIFIER:ids* } LEFT_BRACE:op [ fieldInitializerList:entries ] [ COMMA ] RIGHT_BRACE -> MessageLiteral
  | literal:e -> .e
exprList = expr:args* { COMMA expr:args* } -> CallArguments
listInit = optExpr:elements* { COMMA optExpr:elements* } -> ListElements
fieldInitializerList = optField:fields* COLON:colons* expr:values* { COMMA optField:fields* COLON:colons* expr:values* } -> FieldInitializers
optField = [ QUESTION:opt ] escapeIdent:name -> FieldName
mapInitializerList = optExpr:keys* COLON:colons* expr:values* { COMMA optExpr:keys* COLON:colons* expr:values* } -> MapInitializers
escapeIdent = IDENTIFIER:id -> Name
  | ESCAPED_IDENTIFIER:id -> Name
optExpr = [ QUESTION:opt ] expr:e -> OptionalExpr
literal = [ MINUS:sign ] INT:token -> Constant
  | UINT:token -> Constant
  | [ MINUS:sign ] FLOAT:token -> Constant
  | STRING:token -> Constant
  | BYTES:token -> Constant
  | TRUE:token -> Constant
  | FALSE:token -> Constant
  | NULL:token -> Constant
"""  # noqa: E501


def _conditional(start: Token, parts: Parts) -> Any:
    if parts.get("op"):
        return parse_tree.Conditional(start, **parts)
    return parts.get("condition")


def _logic(start: Token, parts: Parts) -> Any:
    return parse_tree.Logic(start, **parts) if parts.get("ops") else parts["terms"][0]


def _make(node: str) -> Make:
    """Return the function that makes a node; without operators two of them pass on their part."""
    if node.startswith("."):
        return lambda _, parts: parts.get(node[1:])
    class_ = getattr(parse_tree, node)
    plain: dict[str, Make] = {"Conditional": _conditional, "Logic": _logic}
    return plain.get(node, lambda start, parts: class_(start, **parts))


def _elements(words: Iterator[str]) -> tuple[tuple[Element, ...], str]:
    """Return the elements up to a closing bracket or the end, and the bracket."""
    found: list[Element] = []
    for word in words:
        if word in ("]", "}", "}+"):
            return tuple(found), word
        if word in ("[", "{"):
            parts, close = _elements(words)
            found.append(Optional(parts) if word == "[" else Repeated(parts, close == "}+"))
        else:
            found.append(_item(word))
    return tuple(found), ""


def _item(word: str) -> Terminal | RuleReference:
    item, _, label = word.partition(":")
    is_many, label = label.endswith("*"), label.rstrip("*")
    if item[0].isupper():
        kinds = frozenset(TokenKind[name] for name in item.split("/"))
        return Terminal(kinds, label, is_many)
    rule, _, precedence = item.partition("!")
    return RuleReference(rule, label, is_many, int(precedence or 0))


def _alternative(text: str) -> Alternative:
    precedence, _, rest = text.partition(" ") if text[0].isdigit() else ("0", "", text)
    elements, _, node = rest.partition(" -> ")
    parts, _ = _elements(iter(elements.split()))
    return Alternative(_make(node), parts, int(precedence))


_BROKEN: Final[dict[str, Make]] = {
    "unary": lambda start, _: parse_tree.Broken(start, is_placed=True),
    "escapeIdent": lambda start, parts: parse_tree.Name(start, **parts),
}


def _rule(text: str) -> GrammarRule:
    name, _, body = text.partition(" = ")
    lines = body.split("\n  ")
    return GrammarRule(
        name,
        tuple(_alternative(line.removeprefix("| ")) for line in lines if not line[0].isdigit()),
        tuple(_alternative(line) for line in lines if line[0].isdigit()),
        left="operand" if name == "member" else "left",
        make_broken=_BROKEN.get(name, lambda start, _: parse_tree.Broken(start)),
    )


RULES: Final = {rule.name: rule for rule in map(_rule, re.split(r"\n(?! )", _GRAMMAR.strip()))}
