"""The parser: text to AST, with macros expanded.

    text ─lexer→ tokens ─descent_parser→ parse tree ─Builder→ AST
                            │
                            └─ a token that does not fit: recovery parses everything again, as
                               cel-go's parser does, to report all errors with its messages

Building continues after an error, to find all of them. Trees are as deep as expressions, so nothing
here recurses: a method that needs a part built yields it and is sent the node.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from typing import Any, Final

from moorage.cel.lang import ast, parse_tree
from moorage.cel.lang.ast import Expr, ParsedAST
from moorage.cel.lang.descent_parser import ParseResult, UnexpectedTokenError, parse_tokens
from moorage.cel.lang.errors import (
    NOWHERE,
    UNKNOWN,
    CompileError,
    Issue,
    LiteralError,
    MacroError,
)
from moorage.cel.lang.lexer import (
    Token,
    TokenKind,
    parse_bytes,
    parse_double,
    parse_int,
    parse_string,
    parse_uint,
    tokenize,
)
from moorage.cel.lang.macros import Macro, MacroExprFactory

SIZE_MAX: Final = 100_000  # in code points
DEPTH_MAX: Final = 250
# Names that a field may have, but no variable.
RESERVED: Final = frozenset(
    {"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in"}
    | {"let", "loop", "package", "namespace", "null", "return", "true", "var", "void", "while"}
)
BINARY: Final = {
    TokenKind.EQUAL: "_==_",
    TokenKind.NOT_EQUAL: "_!=_",
    TokenKind.IN: "@in",
    TokenKind.LESS: "_<_",
    TokenKind.LESS_EQUAL: "_<=_",
    TokenKind.GREATER_EQUAL: "_>=_",
    TokenKind.GREATER: "_>_",
    TokenKind.PLUS: "_+_",
    TokenKind.MINUS: "_-_",
    TokenKind.STAR: "_*_",
    TokenKind.SLASH: "_/_",
    TokenKind.PERCENT: "_%_",
    TokenKind.AND: "_&&_",
    TokenKind.OR: "_||_",
}
UNARY: Final = {TokenKind.NOT: "!_", TokenKind.MINUS: "-_"}
_LITERALS: Final[dict[TokenKind, Callable[[str], Any]]] = {
    TokenKind.INT: parse_int,
    TokenKind.UINT: parse_uint,
    TokenKind.FLOAT: parse_double,
    TokenKind.STRING: parse_string,
    TokenKind.BYTES: parse_bytes,
    TokenKind.TRUE: lambda _: True,
    TokenKind.FALSE: lambda _: False,
    TokenKind.NULL: lambda _: None,
}
# Yields parts to build, is sent what became of them, and returns a node.
Steps = Generator["parse_tree.Tree | None", Expr, Expr]


def parse(text: str, macros: Iterable[Macro]) -> ParsedAST:
    """Return the AST of an expression, with its macros expanded; raises CompileError."""
    if len(text) > SIZE_MAX:
        message = f"expression code point size exceeds limit: size: {len(text)}, limit {SIZE_MAX}"
        raise CompileError([Issue(NOWHERE, message)], text)
    reading = _read(text)
    builder = Builder(macros, reading.issues)
    expr = None if reading.is_abandoned else builder.build(reading.tree)
    if expr is None:
        raise CompileError(reading.issues, text)
    return ParsedAST(expr, text, builder.macro_calls)


def _read(text: str) -> ParseResult:
    """Return the parse tree, and the syntax errors."""
    tokens, garbage = tokenize(text)
    if not garbage:
        with suppress(UnexpectedTokenError):
            return parse_tokens(tokens)
    # Imported lazily: it takes a while, and only wrong texts need it.
    from moorage.cel.lang.recovery import recover

    return recover(text, tokens, garbage)


class TooDeep(Exception):  # noqa: N818 - describes the expression
    """An expression that is nested more deeply than the limit."""


class Builder:
    """Builds one AST; `issues` collects the errors."""

    def __init__(self, macros: Iterable[Macro], issues: list[Issue]) -> None:
        self._macros = {(macro.name, macro.arity, macro.is_member): macro for macro in macros}
        self._last_id = 0
        self._depth = 0
        self.issues = issues
        self.macro_calls: dict[int, ast.Call] = {}

    def build(self, tree: parse_tree.Tree | None) -> Expr | None:
        """Return the AST, or None if there are issues."""
        try:
            expr = self._run(tree)
        except TooDeep:
            self.issues.append(Issue(NOWHERE, "max recursion depth exceeded"))
            return None
        return None if self.issues else expr

    def _run(self, tree: parse_tree.Tree | None) -> Expr:
        """Return the node of a tree, with an explicit stack for the methods that wait."""
        waiting: list[Steps] = []
        made = self._visit(tree)
        while True:
            answer: Any = None
            if isinstance(made, Generator):
                waiting.append(made)
            elif waiting:
                answer = made
            else:
                return made
            try:
                made = self._visit(waiting[-1].send(answer))
            except StopIteration as done:
                waiting.pop()
                made = done.value

    def _visit(self, tree: parse_tree.Tree | None) -> Expr | Steps:
        """Return the node of a leaf, or the steps that make one."""
        return self.broken(UNKNOWN) if tree is None else _VISITORS[type(tree)](self, tree)

    # --- nodes --------------------------------------------------------------------------------

    def next_id(self) -> int:
        """Return a new node id."""
        self._last_id += 1
        return self._last_id

    def broken(self, offset: int) -> Expr:
        """Return a placeholder for a node that could not be built."""
        return ast.Literal(self.next_id(), offset, None)

    def _fail(self, offset: int, message: str) -> Expr:
        self.issues.append(Issue(offset, message))
        return self.broken(offset)

    def _descend(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise TooDeep

    def _call(self, op: Token, function: str, *args: Expr) -> Expr:
        return ast.Call(self.next_id(), op.offset, function, args)

    def _call_or_macro(
        self, op: Token | None, function: str, target: Expr | None, args: tuple[Expr, ...]
    ) -> Expr:
        """Return a call, or its expansion if it is a macro."""
        offset = UNKNOWN if op is None else op.offset
        call = ast.Call(self.next_id(), offset, function, args, target)
        macro = self._macros.get((function, len(args), target is not None))
        if macro is None:
            return call
        try:
            expansion = macro.expand(MacroExprFactory(self.next_id, offset), target, args)
        except MacroError as error:
            return self._fail(error.issue.offset, error.issue.message)
        if expansion is None:
            return call
        self.macro_calls[expansion.id] = call
        return expansion

    # --- parse nodes --------------------------------------------------------------------------

    def _broken(self, tree: parse_tree.Broken) -> Expr:
        return self.broken(tree.start.offset if tree.is_placed else UNKNOWN)

    def _conditional(self, tree: parse_tree.Conditional) -> Steps:
        self._descend()
        condition = yield tree.condition
        then = yield tree.then
        otherwise = yield tree.otherwise
        self._depth -= 1
        assert tree.op is not None
        return self._call(tree.op, "_?_:_", condition, then, otherwise)

    def _logic(self, tree: parse_tree.Logic) -> Steps:
        terms = []
        for term in tree.terms:
            terms.append((yield term))  # noqa: PERF401 - a comprehension cannot yield
        return self._balanced(tree.ops, terms, 0, len(tree.ops) - 1)

    def _balanced(self, ops: list[Token], terms: list[Expr], low: int, high: int) -> Expr:
        """Return a tree of minimal depth for a chain of && or ||."""
        middle = (low + high + 1) // 2
        left = terms[middle] if middle == low else self._balanced(ops, terms, low, middle - 1)
        right = (
            terms[middle + 1] if middle == high else self._balanced(ops, terms, middle + 1, high)
        )
        return self._call(ops[middle], BINARY[ops[middle].kind], left, right)

    def _binary(self, tree: parse_tree.Binary) -> Steps:
        self._descend()
        left = yield tree.left
        right = yield tree.right
        self._depth -= 1
        assert tree.op is not None
        return self._call(tree.op, BINARY[tree.op.kind], left, right)

    def _unary(self, tree: parse_tree.Unary) -> Steps:
        operand = yield tree.operand
        if len(tree.ops) % 2 == 0:
            return operand
        return self._call(tree.ops[0], UNARY[tree.ops[0].kind], operand)

    def _select(self, tree: parse_tree.Select) -> Steps:
        self._descend()
        operand = yield tree.operand
        self._depth -= 1
        if tree.name is None or tree.op is None:
            return self.broken(tree.start.offset)
        name = self._name(tree.name, tree.name.start)
        if tree.opt is None:
            return ast.Select(self.next_id(), tree.op.offset, operand, name or "")
        literal = ast.Literal(self.next_id(), tree.name.start.offset, name or "")
        return self._call(tree.op, "_?._", operand, literal)

    def _name(self, name: parse_tree.Name | None, blamed: Token) -> str | None:
        """Return a field name without its backticks, or None after an issue."""
        if name is None or name.id is None:
            self._fail(blamed.offset, "unsupported ident kind")
            return None
        return name.id.text.strip("`")

    def _member_call(self, tree: parse_tree.MemberCall) -> Steps:
        self._descend()
        target = yield tree.operand
        if tree.id is None:
            self._depth -= 1
            return self.broken(tree.start.offset)
        args = yield from self._args(tree.args)
        self._depth -= 1
        return self._call_or_macro(tree.open, tree.id.text, target, args)

    def _args(
        self, args: parse_tree.CallArguments | None
    ) -> Generator[parse_tree.Tree | None, Expr, tuple[Expr, ...]]:
        built = []
        for argument in args.args if args else ():
            built.append((yield argument))  # noqa: PERF401 - likewise
        return tuple(built)

    def _index(self, tree: parse_tree.Index) -> Steps:
        self._descend()
        operand = yield tree.operand
        if tree.op is None:
            self._depth -= 1
            return self.broken(tree.start.offset)
        index = yield tree.index
        self._depth -= 1
        return self._call(tree.op, "_[?_]" if tree.opt else "_[_]", operand, index)

    def _ident(self, tree: parse_tree.Ident) -> Expr:
        if tree.id is None:
            return self.broken(tree.start.offset)
        if tree.id.text in RESERVED:
            return self._fail(tree.start.offset, f"reserved identifier: {tree.id.text}")
        name = f".{tree.id.text}" if tree.dot else tree.id.text
        return ast.Ident(self.next_id(), tree.id.offset, name)

    def _global_call(self, tree: parse_tree.GlobalCall) -> Steps:
        if tree.id is None:
            return self.broken(tree.start.offset)
        if tree.id.text in RESERVED:
            return self._fail(tree.start.offset, f"reserved identifier: {tree.id.text}")
        name = f".{tree.id.text}" if tree.dot else tree.id.text
        args = yield from self._args(tree.args)
        return self._call_or_macro(tree.op, name, None, args)

    def _list(self, tree: parse_tree.ListLiteral) -> Steps:
        elements, optional = [], set()
        for position, element in enumerate(tree.elements.elements if tree.elements else ()):
            elements.append((yield element.e))
            if element.opt is not None:
                optional.add(position)
        offset = UNKNOWN if tree.op is None else tree.op.offset
        return ast.CreateList(self.next_id(), offset, tuple(elements), frozenset(optional))

    def _map(self, tree: parse_tree.MapLiteral) -> Steps:
        entries = []
        written = tree.entries or parse_tree.MapInitializers(tree.start)
        for key_written, colon, value_written in zip(
            written.keys, written.colons, written.values, strict=False
        ):
            entry_id = self.next_id()
            key = yield key_written.e
            value = yield value_written
            is_optional = key_written.opt is not None
            entries.append(ast.MapEntry(entry_id, colon.offset, key, value, is_optional))
        offset = UNKNOWN if tree.op is None else tree.op.offset
        return ast.CreateMap(self.next_id(), offset, tuple(entries))

    def _message(self, tree: parse_tree.MessageLiteral) -> Steps:
        entries = []
        written = tree.entries or parse_tree.FieldInitializers(tree.start)
        for field, colon, value_written in zip(
            written.fields, written.colons, written.values, strict=False
        ):
            entry_id = self.next_id()
            name = self._name(field.name, written.start)
            if name is None:
                continue
            value = yield value_written
            is_optional = field.opt is not None
            entries.append(ast.FieldEntry(entry_id, colon.offset, name, value, is_optional))
        type_name = ("." if tree.dot else "") + ".".join(token.text for token in tree.ids)
        offset = UNKNOWN if tree.op is None else tree.op.offset
        return ast.CreateStruct(self.next_id(), offset, type_name, tuple(entries))

    def _constant(self, tree: parse_tree.Constant) -> Expr:
        if tree.token is None:
            return self.broken(UNKNOWN)
        text = tree.sign.text + tree.token.text if tree.sign else tree.token.text
        try:
            value = _LITERALS[tree.token.kind](text)
        except LiteralError as error:
            return self._fail(tree.start.offset, str(error))
        return ast.Literal(self.next_id(), tree.start.offset, value)


_VISITORS: Final[dict[type, Callable[[Builder, Any], Expr | Steps]]] = {
    parse_tree.Broken: Builder._broken,
    parse_tree.Conditional: Builder._conditional,
    parse_tree.Logic: Builder._logic,
    parse_tree.Binary: Builder._binary,
    parse_tree.Unary: Builder._unary,
    parse_tree.Select: Builder._select,
    parse_tree.MemberCall: Builder._member_call,
    parse_tree.Index: Builder._index,
    parse_tree.Ident: Builder._ident,
    parse_tree.GlobalCall: Builder._global_call,
    parse_tree.ListLiteral: Builder._list,
    parse_tree.MapLiteral: Builder._map,
    parse_tree.MessageLiteral: Builder._message,
    parse_tree.Constant: Builder._constant,
}
