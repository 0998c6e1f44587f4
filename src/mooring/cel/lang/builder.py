"""From the expression as written to the syntax tree: names, literals, operators, macros.

Building goes on behind an error, to find all of them. Trees are deep where expressions are, so
nothing here recurses: a method that needs a part built yields it and is sent the node.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any, Final

from mooring.cel.lang import ast, syntax
from mooring.cel.lang.ast import Expr
from mooring.cel.lang.declarations import Macro
from mooring.cel.lang.errors import Issue
from mooring.cel.lang.literals import (
    LiteralError,
    parse_bytes,
    parse_double,
    parse_int,
    parse_string,
    parse_uint,
)
from mooring.cel.lang.macros import CallSite, MacroError
from mooring.cel.lang.source import NOWHERE, UNKNOWN
from mooring.cel.lang.tokens import Kind, Token

DEPTH_MAX: Final = 250

# Names that no variable may have; fields may.
RESERVED: Final = frozenset(
    (
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    )
)

BINARY: Final = {
    Kind.EQUAL: "_==_",
    Kind.NOT_EQUAL: "_!=_",
    Kind.IN: "@in",
    Kind.LESS: "_<_",
    Kind.LESS_EQUAL: "_<=_",
    Kind.GREATER_EQUAL: "_>=_",
    Kind.GREATER: "_>_",
    Kind.PLUS: "_+_",
    Kind.MINUS: "_-_",
    Kind.STAR: "_*_",
    Kind.SLASH: "_/_",
    Kind.PERCENT: "_%_",
    Kind.AND: "_&&_",
    Kind.OR: "_||_",
}
UNARY: Final = {Kind.NOT: "!_", Kind.MINUS: "-_"}

_LITERALS: Final[dict[Kind, Callable[[str], Any]]] = {
    Kind.INT: parse_int,
    Kind.UINT: parse_uint,
    Kind.FLOAT: parse_double,
    Kind.STRING: parse_string,
    Kind.BYTES: parse_bytes,
    Kind.TRUE: lambda _: True,
    Kind.FALSE: lambda _: False,
    Kind.NULL: lambda _: None,
}

# Yields parts to build, is sent what became of them, and returns a node.
Steps = Generator["syntax.Tree | None", Expr, Expr]


class TooDeep(Exception):  # noqa: N818 - it is the expression that is at fault
    """An expression that is nested more deeply than the limit."""


class Builder:
    """Builds one syntax tree; `issues` gathers what is wrong."""

    def __init__(self, macros: Iterable[Macro], issues: list[Issue]) -> None:
        self._macros = {(macro.name, macro.arity, macro.is_member): macro for macro in macros}
        self._last_id = 0
        self._depth = 0
        self.issues = issues
        self.macro_calls: dict[int, ast.Call] = {}

    def build(self, tree: syntax.Tree | None) -> Expr | None:
        """Return the syntax tree, or None if there are issues."""
        try:
            expr = self._run(tree)
        except TooDeep:
            self.issues.append(Issue(NOWHERE, "max recursion depth exceeded"))
            return None
        return None if self.issues else expr

    def _run(self, tree: syntax.Tree | None) -> Expr:
        """Return the node of a tree, with a stack of our own for the methods that wait."""
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

    def _visit(self, tree: syntax.Tree | None) -> Expr | Steps:
        """Return the node of a leaf, or the steps that make one."""
        return self.broken(UNKNOWN) if tree is None else _VISITORS[type(tree)](self, tree)

    # --- nodes --------------------------------------------------------------------------------

    def next_id(self) -> int:
        """Return a number that no node has."""
        self._last_id += 1
        return self._last_id

    def broken(self, offset: int) -> Expr:
        """Return a node in place of one that could not be built; it is never used."""
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
        """Return a call, or what it expands to if there is a macro for it."""
        offset = UNKNOWN if op is None else op.offset
        call = ast.Call(self.next_id(), offset, function, args, target)
        macro = self._macros.get((function, len(args), target is not None))
        if macro is None:
            return call
        try:
            expansion = macro.expand(CallSite(self.next_id, offset), target, args)
        except MacroError as error:
            return self._fail(error.issue.offset, error.issue.message)
        if expansion is None:
            return call
        self.macro_calls[expansion.id] = call
        return expansion

    # --- what is written ----------------------------------------------------------------------

    def _broken(self, tree: syntax.Broken) -> Expr:
        return self.broken(tree.start.offset if tree.is_placed else UNKNOWN)

    def _conditional(self, tree: syntax.Conditional) -> Steps:
        self._descend()
        condition = yield tree.condition
        then = yield tree.then
        otherwise = yield tree.otherwise
        self._depth -= 1
        assert tree.op is not None
        return self._call(tree.op, "_?_:_", condition, then, otherwise)

    def _logic(self, tree: syntax.Logic) -> Steps:
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

    def _binary(self, tree: syntax.Binary) -> Steps:
        self._descend()
        left = yield tree.left
        right = yield tree.right
        self._depth -= 1
        assert tree.op is not None
        return self._call(tree.op, BINARY[tree.op.kind], left, right)

    def _unary(self, tree: syntax.Unary) -> Steps:
        operand = yield tree.operand
        if len(tree.ops) % 2 == 0:
            return operand
        return self._call(tree.ops[0], UNARY[tree.ops[0].kind], operand)

    def _select(self, tree: syntax.Select) -> Steps:
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

    def _name(self, name: syntax.Name | None, blamed: Token) -> str | None:
        """Return a field name without its backticks, or None after an issue."""
        if name is None or name.id is None:
            self._fail(blamed.offset, "unsupported ident kind")
            return None
        return name.id.text.strip("`")

    def _member_call(self, tree: syntax.MemberCall) -> Steps:
        self._descend()
        target = yield tree.operand
        if tree.id is None:
            self._depth -= 1
            return self.broken(tree.start.offset)
        args = yield from self._args(tree.args)
        self._depth -= 1
        return self._call_or_macro(tree.open, tree.id.text, target, args)

    def _args(
        self, args: syntax.Args | None
    ) -> Generator[syntax.Tree | None, Expr, tuple[Expr, ...]]:
        built = []
        for argument in args.args if args else ():
            built.append((yield argument))  # noqa: PERF401 - likewise
        return tuple(built)

    def _index(self, tree: syntax.Index) -> Steps:
        self._descend()
        operand = yield tree.operand
        if tree.op is None:
            self._depth -= 1
            return self.broken(tree.start.offset)
        index = yield tree.index
        self._depth -= 1
        return self._call(tree.op, "_[?_]" if tree.opt else "_[_]", operand, index)

    def _ident(self, tree: syntax.Ident) -> Expr:
        if tree.id is None:
            return self.broken(tree.start.offset)
        if tree.id.text in RESERVED:
            return self._fail(tree.start.offset, f"reserved identifier: {tree.id.text}")
        name = f".{tree.id.text}" if tree.dot else tree.id.text
        return ast.Ident(self.next_id(), tree.id.offset, name)

    def _global_call(self, tree: syntax.GlobalCall) -> Steps:
        if tree.id is None:
            return self.broken(tree.start.offset)
        if tree.id.text in RESERVED:
            return self._fail(tree.start.offset, f"reserved identifier: {tree.id.text}")
        name = f".{tree.id.text}" if tree.dot else tree.id.text
        args = yield from self._args(tree.args)
        return self._call_or_macro(tree.op, name, None, args)

    def _list(self, tree: syntax.ListLiteral) -> Steps:
        elements, optional = [], set()
        for position, element in enumerate(tree.elements.elements if tree.elements else ()):
            elements.append((yield element.e))
            if element.opt is not None:
                optional.add(position)
        offset = UNKNOWN if tree.op is None else tree.op.offset
        return ast.CreateList(self.next_id(), offset, tuple(elements), frozenset(optional))

    def _map(self, tree: syntax.MapLiteral) -> Steps:
        entries = []
        written = tree.entries or syntax.Entries(tree.start)
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

    def _message(self, tree: syntax.MessageLiteral) -> Steps:
        entries = []
        written = tree.entries or syntax.Fields(tree.start)
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

    def _constant(self, tree: syntax.Constant) -> Expr:
        if tree.token is None:
            return self.broken(UNKNOWN)
        text = tree.sign.text + tree.token.text if tree.sign else tree.token.text
        try:
            value = _LITERALS[tree.token.kind](text)
        except LiteralError as error:
            return self._fail(tree.start.offset, str(error))
        return ast.Literal(self.next_id(), tree.start.offset, value)


_VISITORS: Final[dict[type, Callable[[Builder, Any], Expr | Steps]]] = {
    syntax.Broken: Builder._broken,
    syntax.Conditional: Builder._conditional,
    syntax.Logic: Builder._logic,
    syntax.Binary: Builder._binary,
    syntax.Unary: Builder._unary,
    syntax.Select: Builder._select,
    syntax.MemberCall: Builder._member_call,
    syntax.Index: Builder._index,
    syntax.Ident: Builder._ident,
    syntax.GlobalCall: Builder._global_call,
    syntax.ListLiteral: Builder._list,
    syntax.MapLiteral: Builder._map,
    syntax.MessageLiteral: Builder._message,
    syntax.Constant: Builder._constant,
}
