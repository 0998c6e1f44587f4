"""Reads the tokens of correct text, and stops at the first that is not.

The methods are generators: one that needs something nested yields the steps that read it and is
sent the result, so that depth costs no stack of Python's.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, NoReturn

from mooring.cel.lang import syntax
from mooring.cel.lang.errors import Issue
from mooring.cel.lang.syntax import Tree
from mooring.cel.lang.tokens import Kind, Token

RULE_DEPTH_MAX: Final = 250

# How tightly operators bind, of those that are read by precedence.
_RELATION, _SUM, _PRODUCT = 1, 2, 3
_LEVELS: Final = {
    Kind.EQUAL: _RELATION,
    Kind.NOT_EQUAL: _RELATION,
    Kind.IN: _RELATION,
    Kind.LESS: _RELATION,
    Kind.LESS_EQUAL: _RELATION,
    Kind.GREATER_EQUAL: _RELATION,
    Kind.GREATER: _RELATION,
    Kind.PLUS: _SUM,
    Kind.MINUS: _SUM,
    Kind.STAR: _PRODUCT,
    Kind.SLASH: _PRODUCT,
    Kind.PERCENT: _PRODUCT,
}
_CONSTANTS: Final = frozenset(
    (Kind.INT, Kind.UINT, Kind.FLOAT, Kind.STRING, Kind.BYTES, Kind.TRUE, Kind.FALSE, Kind.NULL)
)
_SIGNED: Final = frozenset((Kind.INT, Kind.FLOAT))
_NAMES: Final = frozenset((Kind.IDENTIFIER, Kind.ESCAPED_IDENTIFIER))

_LAST: Final = frozenset(
    (
        Kind.COMMA,
        Kind.COLON,
        Kind.RIGHT_PARENTHESIS,
        Kind.RIGHT_BRACKET,
        Kind.RIGHT_BRACE,
        Kind.EOF,
    )
)

# Yields the steps of something nested, is sent what they read, and returns what it read.
Steps = Generator[Any, Any, Any]


class UnexpectedToken(Exception):  # noqa: N818 - a signal, never seen by users
    """The text is not correct."""


class Depths(NamedTuple):
    """How many of these rules of cel-go's grammar are under way; it limits each."""

    expressions: int = 0
    relations: int = 0
    calculations: int = 0


class Known(NamedTuple):
    """Something that was read: the number of the token behind it, and what it is."""

    end: int
    tree: Tree


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a text, and what is wrong with it.

    What was abandoned has no tree worth a look.
    """

    tree: Tree | None
    issues: list[Issue]
    is_abandoned: bool = False


@dataclass(slots=True)
class Survey:
    """What could be read of a text that is not correct, by the number of the first token."""

    expressions: dict[int, Known] = field(default_factory=dict)
    relations: dict[int, Known] = field(default_factory=dict)


def read(tokens: list[Token]) -> Reading:
    """Return the expression as written; raises UnexpectedToken."""
    reader = _Reader(tokens, 0, Depths(), None)
    tree = reader.read()
    reader.finish()
    return Reading(tree, [])


def survey(tokens: list[Token], start: int, depths: Depths, findings: Survey) -> int:
    """Read as far as all is correct; note what was found, and return where it ended."""
    reader = _Reader(tokens, start, depths, findings)
    with suppress(UnexpectedToken):
        reader.read()
    return reader.position


class _Reader:
    """Reads the tokens of a correct text; the first that is wrong ends it."""

    def __init__(
        self, tokens: list[Token], start: int, depths: Depths, findings: Survey | None
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
        self._take(Kind.EOF)

    # --- tokens -------------------------------------------------------------------------------

    def _next(self) -> Token:
        """Return the current token and go to the next."""
        token = self._tokens[self.position]
        if token.kind is not Kind.EOF:
            self.position += 1
            self._kind = self._tokens[self.position].kind
        return token

    def _take(self, kind: Kind) -> Token:
        """Return the current token, which must be of a kind, and go to the next."""
        if self._kind is not kind:
            self._fail()
        return self._next()

    def _take_if(self, kind: Kind) -> Token | None:
        return self._next() if self._kind is kind else None

    def _ahead(self, distance: int = 1) -> Kind:
        """Return the kind of a token that is still ahead."""
        return self._tokens[min(self.position + distance, len(self._tokens) - 1)].kind

    def _fail(self) -> NoReturn:
        raise UnexpectedToken

    # --- operators ----------------------------------------------------------------------------

    def _lone(self) -> Tree | None:
        """Return an expression that is just a constant or a name, or None if it is more.

        This is for speed alone: it saves the way through the rules.
        """
        if self._ahead() not in _LAST or self._findings is not None:
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
        if self._kind is Kind.QUESTION:
            op = self._next()
            then = yield self._or()
            self._take(Kind.COLON)
            otherwise = yield self._expression()
            condition = syntax.Conditional(condition.start, condition, op, then, otherwise)
        self._expressions -= 1
        if self._findings is not None:
            self._findings.expressions[start] = Known(self.position, condition)
        return condition

    def _or(self) -> Steps:
        """or = and { "||" and }; and = relation { "&&" relation }"""
        alternatives: list[Tree] = []
        ors: list[Token] = []
        while True:
            terms, ands = [(yield self._relation())], []
            while self._kind is Kind.AND:
                ands.append(self._next())
                terms.append((yield self._relation()))
            alternatives.append(_logic(terms, ands))
            if self._kind is not Kind.OR:
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
                operands.append(syntax.Binary(left.start, left, ops.pop(), right))
                levels.pop()
            if not level:
                self._relations, self._calculations = relations, calculations
                if self._findings is not None:
                    self._findings.relations[start] = Known(self.position, operands[0])
                return operands[0]
            ops.append(self._next())
            levels.append(level)

    # --- operands -----------------------------------------------------------------------------

    def _leaf(self) -> Tree | None:
        """Return an operand that is just a constant or a name, or None if it is more."""
        ahead = self._ahead()
        if ahead is Kind.DOT or ahead is Kind.LEFT_BRACKET:
            return None
        token = self._tokens[self.position]
        if token.kind in _CONSTANTS:
            return syntax.Constant(token, None, self._next())
        if token.kind is not Kind.IDENTIFIER:
            return None
        if ahead is Kind.LEFT_PARENTHESIS or ahead is Kind.LEFT_BRACE:
            return None
        return syntax.Ident(token, None, self._next())

    def _operand(self) -> Steps:
        """operand = { "!" } member | { "-" } member, where `-1` is a constant, not a negation"""
        start = self._tokens[self.position]
        ops = []
        if start.kind is Kind.NOT:
            while self._kind is Kind.NOT:
                ops.append(self._next())
        elif start.kind is Kind.MINUS and self._ahead() not in _SIGNED:
            while self._kind is Kind.MINUS:
                ops.append(self._next())
        tree = yield self._primary()
        while True:
            if self._kind is Kind.DOT:
                tree = yield self._member(tree)
            elif self._kind is Kind.LEFT_BRACKET:
                tree = yield self._index(tree)
            else:
                return syntax.Unary(start, ops, tree) if ops else tree

    def _member(self, operand: Tree) -> Steps:
        """member = operand "." [ "?" ] name | operand "." identifier "(" [ arguments ] ")" """
        op = self._next()
        opt = self._take_if(Kind.QUESTION)
        if self._kind not in _NAMES:
            self._fail()
        token = self._next()
        is_call = self._kind is Kind.LEFT_PARENTHESIS
        if not is_call or opt or token.kind is not Kind.IDENTIFIER:
            return syntax.Select(operand.start, operand, op, opt, syntax.Name(token, token))
        open_ = self._next()
        args = yield self._arguments()
        return syntax.MemberCall(operand.start, operand, op, token, open_, args)

    def _index(self, operand: Tree) -> Steps:
        """index = operand "[" [ "?" ] expression "]" """
        op = self._next()
        opt = self._take_if(Kind.QUESTION)
        index = self._lone() or (yield self._expression())
        self._take(Kind.RIGHT_BRACKET)
        return syntax.Index(operand.start, operand, op, opt, index)

    def _arguments(self) -> Steps:
        """arguments = [ expression { "," expression } ] ")" """
        if self._take_if(Kind.RIGHT_PARENTHESIS):
            return None
        start = self._tokens[self.position]
        args = [self._lone() or (yield self._expression())]
        while self._take_if(Kind.COMMA):
            args.append(self._lone() or (yield self._expression()))
        self._take(Kind.RIGHT_PARENTHESIS)
        return syntax.Args(start, args)

    def _primary(self) -> Steps:
        """primary = name | call | "(" expression ")" | list | map | message | constant"""
        start = self._tokens[self.position]
        match start.kind:
            case Kind.LEFT_PARENTHESIS:
                self._next()
                tree = yield self._expression()
                self._take(Kind.RIGHT_PARENTHESIS)
                return tree
            case Kind.LEFT_BRACKET:
                return (yield self._list())
            case Kind.LEFT_BRACE:
                return (yield self._map())
            case Kind.DOT | Kind.IDENTIFIER:
                return (yield self._named())
            case Kind.MINUS if self._ahead() in _SIGNED:
                return syntax.Constant(start, self._next(), self._next())
            case kind if kind in _CONSTANTS:
                return syntax.Constant(start, None, self._next())
        self._fail()

    def _named(self) -> Steps:
        """named = [ "." ] identifier [ "(" arguments | { "." identifier } "{" fields ]"""
        start = self._tokens[self.position]
        dot = self._take_if(Kind.DOT)
        distance = 1
        while self._ahead(distance) is Kind.DOT and self._ahead(distance + 1) is Kind.IDENTIFIER:
            distance += 2
        if self._ahead(distance) is Kind.LEFT_BRACE:
            return (yield self._message(start, dot))
        token = self._take(Kind.IDENTIFIER)
        if self._kind is not Kind.LEFT_PARENTHESIS:
            return syntax.Ident(start, dot, token)
        op = self._next()
        args = yield self._arguments()
        return syntax.GlobalCall(start, dot, token, op, args)

    # --- lists, maps, messages ----------------------------------------------------------------

    def _list(self) -> Steps:
        """list = "[" [ element { "," element } ] [ "," ] "]" """
        op = self._next()
        elements = syntax.Elements(self._tokens[self.position])
        while self._is_more(Kind.RIGHT_BRACKET, bool(elements.elements)):
            elements.elements.append((yield self._element()))
        return syntax.ListLiteral(op, op, elements)

    def _is_more(self, close: Kind, is_behind_one: bool) -> bool:
        """Return whether another part follows; take the comma before it, or the close."""
        comma = self._take_if(Kind.COMMA)
        if self._kind is not close:
            # A comma may follow the last part, or stand alone; it may not open.
            if is_behind_one != bool(comma):
                self._fail()
            return True
        self._next()
        return False

    def _element(self) -> Steps:
        """element = [ "?" ] expression"""
        start = self._tokens[self.position]
        opt = self._take_if(Kind.QUESTION)
        return syntax.Element(start, opt, self._lone() or (yield self._expression()))

    def _map(self) -> Steps:
        """map = "{" [ element ":" expression { "," … } ] [ "," ] "}" """
        op = self._next()
        entries = syntax.Entries(self._tokens[self.position])
        while self._is_more(Kind.RIGHT_BRACE, bool(entries.keys)):
            entries.keys.append((yield self._element()))
            entries.colons.append(self._take(Kind.COLON))
            entries.values.append(self._lone() or (yield self._expression()))
        return syntax.MapLiteral(op, op, entries)

    def _message(self, start: Token, dot: Token | None) -> Steps:
        """message = identifier { "." identifier } "{" [ field ":" expression … ] [ "," ] "}" """
        ids = [self._take(Kind.IDENTIFIER)]
        ops = []
        while self._kind is Kind.DOT:
            ops.append(self._next())
            ids.append(self._take(Kind.IDENTIFIER))
        op = self._take(Kind.LEFT_BRACE)
        fields = syntax.Fields(self._tokens[self.position])
        while self._is_more(Kind.RIGHT_BRACE, bool(fields.fields)):
            fields.fields.append(self._field())
            fields.colons.append(self._take(Kind.COLON))
            fields.values.append(self._lone() or (yield self._expression()))
        return syntax.MessageLiteral(start, dot, ids, ops, op, fields)

    def _field(self) -> syntax.Field:
        """field = [ "?" ] name"""
        start = self._tokens[self.position]
        opt = self._take_if(Kind.QUESTION)
        if self._kind not in _NAMES:
            self._fail()
        token = self._next()
        return syntax.Field(start, opt, syntax.Name(token, token))


def _logic(terms: list[Tree], ops: list[Token]) -> Tree:
    """Return a chain of terms, or the term if it is the only one."""
    return syntax.Logic(terms[0].start, list(terms), ops) if ops else terms[0]
