"""A recursive-descent parser for correct text; it stops at the first token that does not fit.

The methods are generators: one that needs a nested part yields the steps that parse it and is sent
the result, so that depth does not use Python's stack.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, NoReturn

from moorage.cel.lang import parse_tree
from moorage.cel.lang.errors import Issue
from moorage.cel.lang.lexer import Token, TokenKind
from moorage.cel.lang.parse_tree import Tree

RULE_DEPTH_MAX: Final = 250

# How tightly operators bind, of those that are read by precedence.
_RELATION, _SUM, _PRODUCT = 1, 2, 3
_LEVELS: Final = {
    **{kind: _RELATION for kind in TokenKind if TokenKind.EQUAL <= kind <= TokenKind.GREATER},
    **dict.fromkeys((TokenKind.PLUS, TokenKind.MINUS), _SUM),
    **dict.fromkeys((TokenKind.STAR, TokenKind.SLASH, TokenKind.PERCENT), _PRODUCT),
}
_CONSTANTS: Final = frozenset(
    {TokenKind.INT, TokenKind.UINT, TokenKind.FLOAT, TokenKind.STRING, TokenKind.BYTES}
    | {TokenKind.TRUE, TokenKind.FALSE, TokenKind.NULL}
)
_SIGNED: Final = frozenset((TokenKind.INT, TokenKind.FLOAT))
_NAMES: Final = frozenset((TokenKind.IDENTIFIER, TokenKind.ESCAPED_IDENTIFIER))

_CLOSING: Final = frozenset(
    {TokenKind.RIGHT_PARENTHESIS, TokenKind.RIGHT_BRACKET, TokenKind.RIGHT_BRACE}
    | {TokenKind.COMMA, TokenKind.COLON, TokenKind.EOF}
)

# Yields the steps of something nested, is sent their results, and returns its own.
Steps = Generator[Any, Any, Any]


class UnexpectedTokenError(Exception):
    """The text is not correct."""


class RuleDepths(NamedTuple):
    """How deeply these rules of cel-go's grammar are nested; it limits each."""

    expressions: int = 0
    relations: int = 0
    calculations: int = 0


class ParsedPart(NamedTuple):
    """A part of a text: the number of the token behind it, and its tree."""

    end: int
    tree: Tree


@dataclass(frozen=True, slots=True)
class ParseResult:
    """The parse tree of a text, and its syntax errors; an abandoned parse has no tree."""

    tree: Tree | None
    issues: list[Issue]
    is_abandoned: bool = False


@dataclass(slots=True)
class CorrectParts:
    """The correct parts of a text with errors, by the number of the first token."""

    expressions: dict[int, ParsedPart] = field(default_factory=dict)
    relations: dict[int, ParsedPart] = field(default_factory=dict)


def parse_tokens(tokens: list[Token]) -> ParseResult:
    """Return the parse tree; raises UnexpectedTokenError."""
    reader = _Reader(tokens, 0, RuleDepths(), None)
    tree = reader.read()
    reader.finish()
    return ParseResult(tree, [])


def parse_correct_parts(
    tokens: list[Token], start: int, depths: RuleDepths, findings: CorrectParts
) -> int:
    """Parse as far as the text is correct; record the parts, and return where it ended."""
    reader = _Reader(tokens, start, depths, findings)
    with suppress(UnexpectedTokenError):
        reader.read()
    return reader.position


class _Reader:
    """Reads the tokens of a correct text; the first that is wrong ends it."""

    def __init__(
        self, tokens: list[Token], start: int, depths: RuleDepths, findings: CorrectParts | None
    ) -> None:
        self._tokens = tokens
        self.position = start
        self._kind = tokens[start].kind
        self._expressions, self._relations, self._calculations = depths
        self._findings = findings

    def read(self) -> Tree:
        """Return the expression that begins here."""
        waiting: list[Steps] = [self._expression()]
        result: Any = None
        while waiting:
            try:
                waiting.append(waiting[-1].send(result))
                result = None
            except StopIteration as done:
                waiting.pop()
                result = done.value
        tree: Tree = result
        return tree

    def finish(self) -> None:
        """Make sure that this is the end of the text."""
        self._take(TokenKind.EOF)

    # --- tokens -------------------------------------------------------------------------------

    def _next(self) -> Token:
        """Return the current token and go to the next."""
        token = self._tokens[self.position]
        if token.kind is not TokenKind.EOF:
            self.position += 1
            self._kind = self._tokens[self.position].kind
        return token

    def _take(self, kind: TokenKind) -> Token:
        """Return the current token, which must be of a kind, and go to the next."""
        if self._kind is not kind:
            self._fail()
        return self._next()

    def _take_if(self, kind: TokenKind) -> Token | None:
        return self._next() if self._kind is kind else None

    def _ahead(self, distance: int = 1) -> TokenKind:
        """Return the kind of a token that is still ahead."""
        return self._tokens[min(self.position + distance, len(self._tokens) - 1)].kind

    def _fail(self) -> NoReturn:
        raise UnexpectedTokenError

    # --- operators ----------------------------------------------------------------------------

    def _lone(self) -> Tree | None:
        """Return an expression that is only a constant or a name, or None if it is more.

        This is for speed alone: it skips the rules.
        """
        if self._ahead() not in _CLOSING or self._findings is not None:
            return None
        if max(self._expressions, self._relations, self._calculations) >= RULE_DEPTH_MAX:
            return None
        return self._leaf()

    def _expression(self) -> Steps:
        """expression = or [ "?" or ":" expression ]"""
        start = self.position
        self._expressions += 1
        if self._expressions > RULE_DEPTH_MAX:
            self._fail()
        condition = yield self._or()
        if self._kind is TokenKind.QUESTION:
            op = self._next()
            then = yield self._or()
            self._take(TokenKind.COLON)
            otherwise = yield self._expression()
            condition = parse_tree.Conditional(condition.start, condition, op, then, otherwise)
        self._expressions -= 1
        if self._findings is not None:
            self._findings.expressions[start] = ParsedPart(self.position, condition)
        return condition

    def _or(self) -> Steps:
        """or = and { "||" and }; and = relation { "&&" relation }"""
        alternatives: list[Tree] = []
        ors: list[Token] = []
        while True:
            terms, ands = [(yield self._relation())], []
            while self._kind is TokenKind.AND:
                ands.append(self._next())
                terms.append((yield self._relation()))
            alternatives.append(_logic(terms, ands))
            if self._kind is not TokenKind.OR:
                return _logic(alternatives, ors)
            ors.append(self._next())

    def _relation(self) -> Steps:
        """relation = operand { operator operand }, operators of three levels, all left to right"""
        operands: list[Tree] = []
        ops: list[Token] = []
        levels: list[int] = []
        start, relations, calculations = self.position, self._relations, self._calculations
        while True:
            is_compared = bool(levels) and levels[0] == _RELATION
            self._relations = relations + 1 + is_compared
            self._calculations = calculations + 1 + len(levels) - is_compared
            if max(self._relations, self._calculations) > RULE_DEPTH_MAX:
                self._fail()
            operands.append(self._leaf() or (yield self._operand()))
            level = _LEVELS.get(self._kind, 0)
            while levels and levels[-1] >= level:
                right, left = operands.pop(), operands.pop()
                operands.append(parse_tree.Binary(left.start, left, ops.pop(), right))
                levels.pop()
            if not level:
                self._relations, self._calculations = relations, calculations
                if self._findings is not None:
                    self._findings.relations[start] = ParsedPart(self.position, operands[0])
                return operands[0]
            ops.append(self._next())
            levels.append(level)

    # --- operands -----------------------------------------------------------------------------

    def _leaf(self) -> Tree | None:
        """Return an operand that is only a constant or a name, or None if it is more."""
        ahead = self._ahead()
        if ahead is TokenKind.DOT or ahead is TokenKind.LEFT_BRACKET:
            return None
        token = self._tokens[self.position]
        if token.kind in _CONSTANTS:
            return parse_tree.Constant(token, None, self._next())
        if token.kind is not TokenKind.IDENTIFIER:
            return None
        if ahead is TokenKind.LEFT_PARENTHESIS or ahead is TokenKind.LEFT_BRACE:
            return None
        return parse_tree.Ident(token, None, self._next())

    def _operand(self) -> Steps:
        """operand = { "!" } member | { "-" } member, where `-1` is a constant, not a negation"""
        start = self._tokens[self.position]
        ops = []
        if start.kind is TokenKind.NOT:
            while self._kind is TokenKind.NOT:
                ops.append(self._next())
        elif start.kind is TokenKind.MINUS and self._ahead() not in _SIGNED:
            while self._kind is TokenKind.MINUS:
                ops.append(self._next())
        tree = yield self._primary()
        while True:
            if self._kind is TokenKind.DOT:
                tree = yield self._member(tree)
            elif self._kind is TokenKind.LEFT_BRACKET:
                tree = yield self._index(tree)
            else:
                return parse_tree.Unary(start, ops, tree) if ops else tree

    def _member(self, operand: Tree) -> Steps:
        """member = operand "." [ "?" ] name | operand "." identifier "(" [ arguments ] ")" """
        op = self._next()
        opt = self._take_if(TokenKind.QUESTION)
        if self._kind not in _NAMES:
            self._fail()
        token = self._next()
        is_call = self._kind is TokenKind.LEFT_PARENTHESIS
        if not is_call or opt or token.kind is not TokenKind.IDENTIFIER:
            return parse_tree.Select(operand.start, operand, op, opt, parse_tree.Name(token, token))
        open_ = self._next()
        args = yield self._arguments()
        return parse_tree.MemberCall(operand.start, operand, op, token, open_, args)

    def _index(self, operand: Tree) -> Steps:
        """index = operand "[" [ "?" ] expression "]" """
        op = self._next()
        opt = self._take_if(TokenKind.QUESTION)
        index = self._lone() or (yield self._expression())
        self._take(TokenKind.RIGHT_BRACKET)
        return parse_tree.Index(operand.start, operand, op, opt, index)

    def _arguments(self) -> Steps:
        """arguments = [ expression { "," expression } ] ")" """
        if self._take_if(TokenKind.RIGHT_PARENTHESIS):
            return None
        start = self._tokens[self.position]
        args = [self._lone() or (yield self._expression())]
        while self._take_if(TokenKind.COMMA):
            args.append(self._lone() or (yield self._expression()))
        self._take(TokenKind.RIGHT_PARENTHESIS)
        return parse_tree.CallArguments(start, args)

    def _primary(self) -> Steps:
        """primary = name | call | "(" expression ")" | list | map | message | constant"""
        start = self._tokens[self.position]
        match start.kind:
            case TokenKind.LEFT_PARENTHESIS:
                self._next()
                tree = yield self._expression()
                self._take(TokenKind.RIGHT_PARENTHESIS)
                return tree
            case TokenKind.LEFT_BRACKET:
                return (yield self._list())
            case TokenKind.LEFT_BRACE:
                return (yield self._map())
            case TokenKind.DOT | TokenKind.IDENTIFIER:
                return (yield self._named())
            case TokenKind.MINUS if self._ahead() in _SIGNED:
                return parse_tree.Constant(start, self._next(), self._next())
            case kind if kind in _CONSTANTS:
                return parse_tree.Constant(start, None, self._next())
        self._fail()

    def _named(self) -> Steps:
        """named = [ "." ] identifier [ "(" arguments | { "." identifier } "{" fields ]"""
        start = self._tokens[self.position]
        dot = self._take_if(TokenKind.DOT)
        distance = 1
        while (
            self._ahead(distance) is TokenKind.DOT
            and self._ahead(distance + 1) is TokenKind.IDENTIFIER
        ):
            distance += 2
        if self._ahead(distance) is TokenKind.LEFT_BRACE:
            return (yield self._message(start, dot))
        token = self._take(TokenKind.IDENTIFIER)
        if self._kind is not TokenKind.LEFT_PARENTHESIS:
            return parse_tree.Ident(start, dot, token)
        op = self._next()
        args = yield self._arguments()
        return parse_tree.GlobalCall(start, dot, token, op, args)

    # --- lists, maps, messages ----------------------------------------------------------------

    def _list(self) -> Steps:
        """list = "[" [ element { "," element } ] [ "," ] "]" """
        op = self._next()
        elements = parse_tree.ListElements(self._tokens[self.position])
        while self._is_more(TokenKind.RIGHT_BRACKET, bool(elements.elements)):
            elements.elements.append((yield self._element()))
        return parse_tree.ListLiteral(op, op, elements)

    def _is_more(self, close: TokenKind, is_behind_one: bool) -> bool:
        """Return whether another part follows; take the comma before it, or the close."""
        comma = self._take_if(TokenKind.COMMA)
        if self._kind is not close:
            # A comma may follow the last part, or be alone; it may not be first.
            if is_behind_one != bool(comma):
                self._fail()
            return True
        self._next()
        return False

    def _element(self) -> Steps:
        """element = [ "?" ] expression"""
        start = self._tokens[self.position]
        opt = self._take_if(TokenKind.QUESTION)
        return parse_tree.OptionalExpr(start, opt, self._lone() or (yield self._expression()))

    def _map(self) -> Steps:
        """map = "{" [ element ":" expression { "," … } ] [ "," ] "}" """
        op = self._next()
        entries = parse_tree.MapInitializers(self._tokens[self.position])
        while self._is_more(TokenKind.RIGHT_BRACE, bool(entries.keys)):
            entries.keys.append((yield self._element()))
            entries.colons.append(self._take(TokenKind.COLON))
            entries.values.append(self._lone() or (yield self._expression()))
        return parse_tree.MapLiteral(op, op, entries)

    def _message(self, start: Token, dot: Token | None) -> Steps:
        """message = identifier { "." identifier } "{" [ field ":" expression … ] [ "," ] "}" """
        ids = [self._take(TokenKind.IDENTIFIER)]
        ops = []
        while self._kind is TokenKind.DOT:
            ops.append(self._next())
            ids.append(self._take(TokenKind.IDENTIFIER))
        op = self._take(TokenKind.LEFT_BRACE)
        fields = parse_tree.FieldInitializers(self._tokens[self.position])
        while self._is_more(TokenKind.RIGHT_BRACE, bool(fields.fields)):
            fields.fields.append(self._field())
            fields.colons.append(self._take(TokenKind.COLON))
            fields.values.append(self._lone() or (yield self._expression()))
        return parse_tree.MessageLiteral(start, dot, ids, ops, op, fields)

    def _field(self) -> parse_tree.FieldName:
        """field = [ "?" ] name"""
        start = self._tokens[self.position]
        opt = self._take_if(TokenKind.QUESTION)
        if self._kind not in _NAMES:
            self._fail()
        token = self._next()
        return parse_tree.FieldName(start, opt, parse_tree.Name(token, token))


def _logic(terms: list[Tree], ops: list[Token]) -> Tree:
    """Return a chain of terms, or the term if it is the only one."""
    return parse_tree.Logic(terms[0].start, list(terms), ops) if ops else terms[0]
