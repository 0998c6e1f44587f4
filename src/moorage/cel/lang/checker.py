"""The checker: find the type of every node and the declaration of every name and call.

Checking continues after an error, with a type that fits everywhere, so that one run reports every
error. The resulting AST has full names: `sets.contains(a, b)` was parsed as a member call on `sets`
and is now a call of the function `sets.contains`; `net.IP` was parsed as a field and is now one
identifier.

    # local: an iteration variable; locals hide all other names unless these start with a dot
    # fresh parameter: the element type of a list that is not known yet, as in `[]`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from moorage.cel.lang import ast
from moorage.cel.lang.ast import CheckedAST, Expr, ReferenceInfo, Steps, Walker
from moorage.cel.lang.environment import Environment, Function, Identifier, Scopes
from moorage.cel.lang.errors import CompileError, Issue, mismatch
from moorage.cel.lang.inference import (
    Substitutions,
    TooComplex,
    instantiate,
    most_general,
)
from moorage.cel.lang.types import (
    BOOL,
    DYN,
    ERROR,
    Type,
    TypeKind,
    entry_types,
    is_optional,
    list_of,
    map_of,
    message_name,
    optional_of,
    same,
)
from moorage.cel.lang.values import runtime_type

# Ours: cel-go never finishes such an expression.
TOO_COMPLEX = "expression is too complex to be checked"

_LOGICAL = ("_&&_", "_||_")
# Macros may repeat their arguments, and nested ones grow without end.
_VISITS_MAX = 50_000


def check(parsed: ast.ParsedAST, environment: Environment) -> CheckedAST:
    """Return the checked AST, or raise CompileError with all errors."""
    checker = _Checker(environment)
    try:
        expr = checker.walk(parsed.expr)
        types = checker.final_types()
    except TooComplex:
        checker.issues = [Issue(parsed.expr.offset, TOO_COMPLEX)]
    if checker.issues:
        raise CompileError(checker.issues, parsed.source)
    return CheckedAST(replace(parsed, expr=expr), types, checker.references)


class _Checker(Walker[Expr]):
    """The methods of nodes record the node's type and return the node with full names."""

    def __init__(self, environment: Environment) -> None:
        self.issues: list[Issue] = []
        self.references: dict[int, ReferenceInfo] = {}
        self._environment = environment
        self._types: dict[int, Type] = {}
        self._substitutions = Substitutions()
        self._scopes = Scopes(environment)
        self._visits = 0

    def final_types(self) -> dict[int, Type]:
        """Return the types with all parameters replaced; those without a binding are dyn."""
        resolve = self._substitutions.resolve
        return {id_: resolve(type_, free=DYN) for id_, type_ in self._types.items()}

    def visit(self, node: Expr) -> Expr | Steps[Expr]:
        """Return the checked node, or the steps to it."""
        self._visits += 1
        if self._visits > _VISITS_MAX:
            raise TooComplex
        match node:
            case ast.Literal():
                self._note(node, runtime_type(node.value, {}))
                return node
            case ast.Ident():
                return self._ident(node)
            case ast.Select():
                return self._qualified(node) or self._select(node)
            case ast.Call(function="_?._"):
                return self._optional_select(node)
            case ast.Call():
                return self._call(node)
            case ast.CreateList():
                return self._list(node)
            case ast.CreateMap():
                return self._map(node)
            case ast.CreateStruct():
                return self._struct(node)
            case ast.Comprehension():
                return self._comprehension(node)

    def _note(self, node: Expr, type_: Type) -> None:
        if type_.params:
            self._substitutions.weigh(type_)
        self._types[node.id] = type_

    # --- names ------------------------------------------------------------------------

    def _ident(self, node: ast.Ident) -> Expr:
        found = self._scopes.find(node.name)
        if found is None:
            self._undeclared(node, node.name)
            return node
        return self._refer(node, found)

    def _qualified(self, node: ast.Select) -> Expr | None:
        """Return the identifier that a chain of selects spells, None if it spells none."""
        name = _dotted_name(node)
        found = None if name is None else self._scopes.find(name)
        return None if found is None else self._refer(node, found)

    def _refer(self, node: ast.Ident | ast.Select, to: Identifier) -> Expr:
        self._note(node, to.type)
        self.references[node.id] = ReferenceInfo(to.name, value=to.value)
        return ast.Ident(node.id, node.offset, to.name)

    # --- fields -----------------------------------------------------------------------

    def _select(self, node: ast.Select) -> Steps[Expr]:
        operand = yield node.operand
        type_, holds_optional = self._field(node, node.operand, node.field)
        type_ = optional_of(type_) if holds_optional else type_
        self._note(node, BOOL if node.test_only else self._substitutions.resolve(type_))
        return node if operand is node.operand else replace(node, operand=operand)

    def _optional_select(self, node: ast.Call) -> Steps[Expr]:
        """Check `operand.?field`, which the parser writes as a call with the name as literal."""
        operand, field = node.args
        assert isinstance(field, ast.Literal)
        checked = yield operand
        type_, _ = self._field(node, operand, field.value)
        self._note(node, self._substitutions.resolve(optional_of(type_)))
        self.references[node.id] = ReferenceInfo(overload_ids=("select_optional_field",))
        return node if checked is operand else replace(node, args=(checked, field))

    def _field(self, node: Expr, operand: Expr, field: str) -> tuple[Type, bool]:
        """Return the type of a field, and whether its operand is an optional value."""
        type_ = self._substitutions.resolve(self._types[operand.id])
        if is_optional(type_):
            return self._field_of(node, type_.params[0], field), True
        return self._field_of(node, type_, field), False

    def _field_of(self, node: Expr, type_: Type, field: str) -> Type:
        match type_.kind:
            case TypeKind.MAP:
                return type_.params[1]
            case TypeKind.STRUCT:
                return self._struct_field(node, type_.name, field)
            case TypeKind.TYPE_PARAM:
                # Whatever else would bind it later, it was used as a dynamic value here.
                self._substitutions.assign(DYN, type_)
            case _ if not type_.is_dyn:
                self._report(node, f"type '{type_}' does not support field selection")
        return DYN

    def _struct_field(self, node: ast.Node, name: str, field: str) -> Type:
        if not self._environment.has_struct(name):
            self._report(node, f"unexpected failed resolution of '{name}'")
            return ERROR
        type_ = self._environment.field_type(name, field)
        if type_ is None:
            self._report(node, f"undefined field '{field}'")
            return ERROR
        return type_

    # --- calls ------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Steps[Expr]:
        args = []
        for arg in node.args:
            args.append((yield arg))  # noqa: PERF401 - no yield in a comprehension
        target = node.target
        if target is not None:
            namespaced = self._namespaced(target, node.function)
            if namespaced is not None:
                return self._resolve(node, namespaced, None, args)
            target = yield target
        function = self._environment.function(node.function)
        if function is None:
            self._undeclared(node, node.function)
            return node
        return self._resolve(node, function, target, args)

    def _namespaced(self, target: Expr, name: str) -> Function | None:
        """Return the function that a target and a name spell together, such as `sets.contains`."""
        prefix = _dotted_name(target)
        return None if prefix is None else self._environment.function(f"{prefix}.{name}")

    def _resolve(
        self, node: ast.Call, function: Function, target: Expr | None, args: Sequence[Expr]
    ) -> Expr:
        operands = args if target is None else (target, *args)
        types = [self._types[operand.id] for operand in operands]
        if function.name in _LOGICAL:
            type_ = self._logical(node, function, operands)
        else:
            type_ = self._overloads(node, function, types, is_member=target is not None)
        self._note(node, type_)
        return replace(node, function=function.name, target=target, args=tuple(args))

    def _logical(self, node: ast.Call, function: Function, operands: Sequence[Expr]) -> Type:
        before = len(self.issues)
        for operand in operands:
            type_ = self._types[operand.id]
            if not self._substitutions.assign(type_, BOOL):
                self._mismatch(operand, BOOL, type_)
        if len(self.issues) > before:
            return ERROR
        self.references[node.id] = ReferenceInfo(overload_ids=(function.overloads[0].id,))
        return BOOL

    def _overloads(
        self, node: ast.Call, function: Function, types: list[Type], *, is_member: bool
    ) -> Type:
        """Return the type that all fitting overloads agree on, dyn if they do not."""
        ids: list[str] = []
        result = ERROR
        for overload in function.overloads:
            if overload.is_member != is_member:
                continue
            declared, *params = instantiate(
                (overload.result, *overload.params), self._substitutions
            )
            if not self._substitutions.assign_all(types, params):
                continue
            type_ = self._substitutions.resolve(declared)
            if not ids:
                result = type_
            elif result.kind not in (TypeKind.DYN, TypeKind.ANY) and not same(type_, result):
                result = DYN
            ids.append(overload.id)
        if ids:
            self.references[node.id] = ReferenceInfo(overload_ids=tuple(ids))
        else:
            given = [self._substitutions.resolve(type_, free=DYN) for type_ in types]
            target = f"{given.pop(0)}." if is_member else ""
            applied = f"{target}({', '.join(map(str, given))})"
            found = f"found no matching overload for '{function.name}'"
            self._report(node, f"{found} applied to '{applied}'")
        return result

    # --- literals of lists, maps and structs ------------------------------------------

    def _list(self, node: ast.CreateList) -> Steps[Expr]:
        elements = []
        joined: Type | None = None
        for position, element in enumerate(node.elements):
            elements.append((yield element))
            type_ = self._entry_type(element, optional=position in node.optional)
            joined = self._join(joined, type_)
        self._note(node, list_of(joined or self._substitutions.fresh_parameter()))
        return replace(node, elements=tuple(elements))

    def _map(self, node: ast.CreateMap) -> Steps[Expr]:
        entries = []
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            key = yield entry.key
            keys = self._join(keys, self._types[entry.key.id])
            value = yield entry.value
            type_ = self._entry_type(entry.value, optional=entry.optional)
            values = self._join(values, type_)
            entries.append(replace(entry, key=key, value=value))
        fresh = self._substitutions.fresh_parameter
        self._note(node, map_of(keys or fresh(), values or fresh()))
        return replace(node, entries=tuple(entries))

    def _struct(self, node: ast.CreateStruct) -> Steps[Expr]:
        found = self._environment.type_identifier(node.type_name)
        if found is None:
            self._undeclared(node, node.type_name)
            return node
        self.references[node.id] = ReferenceInfo(found.name)
        type_ = found.type.params[0]
        self._note(node, type_)
        name = type_.name if type_.kind is TypeKind.STRUCT else message_name(type_)
        if name is None:
            self._report(node, f"'{type_.name}' is not a message type")
            self._note(node, ERROR)
            name = found.name
        fields = []
        for entry in node.fields:
            value = yield entry.value
            self._struct_entry(entry, name)
            fields.append(replace(entry, value=value))
        return replace(node, type_name=found.name, fields=tuple(fields))

    def _struct_entry(self, entry: ast.FieldEntry, struct_name: str) -> None:
        wanted = self._struct_field(entry, struct_name, entry.field)
        given = self._entry_type(entry.value, optional=entry.optional)
        if not self._substitutions.assign(wanted, given):
            expected = f"expected type of field '{entry.field}' is '{wanted}'"
            self._report(entry, f"{expected} but provided type is '{given}'")

    def _entry_type(self, value: Expr, *, optional: bool) -> Type:
        """Return the type of an entry's value; with `?`, of the value in the optional."""
        type_ = self._types[value.id]
        if not optional:
            return type_
        if is_optional(type_):
            return type_.params[0]
        if type_.kind not in (TypeKind.DYN, TypeKind.ANY):
            self._mismatch(value, optional_of(type_), type_)
        return type_

    def _join(self, previous: Type | None, type_: Type) -> Type:
        """Return the common type, dyn if there is none; validation reports that."""
        if previous is None:
            return type_
        if self._substitutions.assign(previous, type_):
            return most_general(previous, type_)
        return DYN

    # --- loops ------------------------------------------------------------------------

    def _comprehension(self, node: ast.Comprehension) -> Steps[Expr]:
        iter_range = yield node.iter_range
        accu_init = yield node.accu_init
        accu_type = self._types[node.accu_init.id]
        self._scopes.enter({node.accu_var: accu_type})
        self._scopes.enter(self._loop_variables(node))
        condition = yield node.loop_condition
        self._expect(node.loop_condition, BOOL)
        step = yield node.loop_step
        self._expect(node.loop_step, accu_type)
        self._scopes.leave()
        result = yield node.result
        self._scopes.leave()
        self._note(node, self._substitutions.resolve(self._types[node.result.id]))
        return replace(
            node,
            iter_range=iter_range,
            accu_init=accu_init,
            loop_condition=condition,
            loop_step=step,
            result=result,
        )

    def _loop_variables(self, node: ast.Comprehension) -> dict[str, Type]:
        """Return the types of the iteration variables: an element, or key or index and value."""
        type_ = self._substitutions.resolve(self._types[node.iter_range.id])
        entries = entry_types(type_)
        if entries is None:
            self._report(
                node.iter_range,
                f"expression of type '{type_}' cannot be range of a comprehension"
                " (must be list, map, or dynamic)",
            )
            entries = (ERROR, ERROR)
        elif type_.kind is TypeKind.TYPE_PARAM:
            self._substitutions.assign(DYN, type_)
        key, value = entries
        if node.iter_var2 is not None:
            return {node.iter_var2: value, node.iter_var: key}
        return {node.iter_var: value if type_.kind is TypeKind.LIST else key}

    # --- errors -----------------------------------------------------------------------

    def _expect(self, node: Expr, wanted: Type) -> None:
        given = self._types[node.id]
        if not self._substitutions.assign(wanted, given):
            self._mismatch(node, wanted, given)

    def _undeclared(self, node: Expr, name: str) -> None:
        self._note(node, ERROR)
        self._report(node, f"undeclared reference to '{name}' (in container '')")

    def _mismatch(self, node: Expr, wanted: Type, given: Type) -> None:
        self._report(node, mismatch(wanted, given))

    def _report(self, node: ast.Node, message: str) -> None:
        self.issues.append(Issue(node.offset, message))


def _dotted_name(node: Expr) -> str | None:
    """Return the name that a chain of selects on an identifier spells, None for another node."""
    fields: list[str] = []
    while isinstance(node, ast.Select) and not node.test_only:
        fields.append(node.field)
        node = node.operand
    if not isinstance(node, ast.Ident):
        return None
    return ".".join([node.name, *reversed(fields)])
