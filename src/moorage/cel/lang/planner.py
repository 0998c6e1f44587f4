"""The planner: from a checked AST to a plan, with constants folded.

It folds what cel-go folds, no more and no less, because that decides the cost of an expression and
whether an error is one of compiling: lists and maps of constants, conversions of constants,
membership in a list of constants, and constant regular expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.cel.lang import ast
from moorage.cel.lang.ast import CheckedAST
from moorage.cel.lang.attributes import Attribute, Computed, Conditional, Qualifier, Variable
from moorage.cel.lang.environment import Environment, Function, Overload, guarded
from moorage.cel.lang.equality import equal, not_equal
from moorage.cel.lang.errors import Cancelled, EvalError, InstantiationError, no_such_overload
from moorage.cel.lang.interpretable import (
    Activation,
    Budget,
    CallCost,
    Constant,
    Failure,
    Fold,
    FunctionCall,
    Interpretable,
    Logic,
    Membership,
    OrElse,
)
from moorage.cel.lang.library.standard import TOTAL, matches_literal
from moorage.cel.lang.literals import MakeList, MakeMap, MakeStruct
from moorage.cel.lang.regex import Regex, compile_regex
from moorage.cel.lang.types import Type, TypeKind
from moorage.cel.lang.values import TypeValue, runtime_type

# Functions that check their arguments themselves, beyond that the first is a list.
UNGUARDED = frozenset({"sort", "@sortByAssociatedKeys", "flatten"})
CONVERSIONS = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
REGEX_FUNCTIONS = frozenset({"matches", "find", "findAll"})
NOT_STRICTLY_FALSE = frozenset({"@not_strictly_false", "__not_strictly_false__"})
STANDARD_COSTS_NEED_AN_OVERLOAD = frozenset(
    {"_+_", "_<_", "_<=_", "_>_", "_>=_", "@in", "startsWith", "endsWith", "contains", "matches"}
    | {"bytes", "string"}
)
UNLIMITED = 2**64


def plan(checked: CheckedAST, environment: Environment) -> Interpretable:
    """Return the plan of a checked expression, or raise InstantiationError."""
    try:
        return _Planner(checked, environment).plan(checked.parsed.expr)
    except InstantiationError as error:
        error.checked = checked
        raise


class _Planner:
    def __init__(self, checked: CheckedAST, environment: Environment) -> None:
        self._checked = checked
        self._environment = environment
        self._python_types = environment.python_types

    def plan(self, node: ast.Expr) -> Interpretable:
        match node:
            case ast.Literal():
                return Constant(node.value)
            case ast.Ident():
                return self._ident(node)
            case ast.Select():
                return self._select(node)
            case ast.Call():
                return self._call(node)
            case ast.CreateList():
                return self._list(node)
            case ast.CreateMap():
                return self._map(node)
            case ast.CreateStruct():
                fields = tuple(
                    (field.field, self.plan(field.value), field.optional) for field in node.fields
                )
                return MakeStruct(fields, self._environment.struct_maker(node.type_name))
            case ast.Comprehension():
                return Fold(
                    self.plan(node.iter_range),
                    node.iter_var,
                    node.iter_var2,
                    node.accu_var,
                    self.plan(node.accu_init),
                    self.plan(node.loop_condition),
                    self.plan(node.loop_step),
                    self.plan(node.result),
                )

    # --- names ------------------------------------------------------------------------

    def _ident(self, node: ast.Ident) -> Interpretable:
        return self._named(node) or Attribute(Variable(node.name))

    def _named(self, node: ast.Ident | ast.Select) -> Interpretable | None:
        """Return the step for a node that the checker resolved to a name."""
        reference = self._checked.references.get(node.id)
        if reference is None or reference.name is None:
            return None
        if reference.value is not None:
            return Constant(reference.value)
        type_ = self._checked.types[node.id]
        if type_.kind is TypeKind.TYPE:
            raise InstantiationError(f"reference to undefined type: {reference.name}")
        name = reference.name
        if isinstance(node, ast.Ident) and node.name.startswith("."):
            name = node.name
        return Attribute(Variable(name))

    def _select(self, node: ast.Select) -> Interpretable:
        if (named := self._named(node)) is not None:
            return named
        attribute = self._attribute(self.plan(node.operand))
        attribute.qualify(Qualifier(node.field, tests=node.test_only))
        attribute.is_presence_test = node.test_only
        return attribute

    def _attribute(self, step: Interpretable) -> Attribute:
        return step if isinstance(step, Attribute) else Attribute(Computed(step))

    # --- calls ------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Interpretable:
        parts = node.args if node.target is None else (node.target, *node.args)
        args = tuple(map(self.plan, parts))
        match node.function:
            case "_&&_":
                return Logic(args, decisive=False)
            case "_||_":
                return Logic(args, decisive=True)
            case "_?_:_":
                condition, truthy, falsy = args
                return Conditional(condition, self._attribute(truthy), self._attribute(falsy))
            case "_[_]":
                return self._index(args, optional=False)
            case "_[?_]" | "_?._":
                return self._index(args, optional=True)
            case "or" | "orValue" if len(args) == 2:
                return OrElse(args[0], args[1], unwraps=node.function == "orValue")
            case "_==_":
                cost = self._overload_cost(node.function, "equals")
                certain = self._plain_equality(node)
                return FunctionCall(equal, args, cost=cost, stops_early=False, certain=certain)
            case "_!=_":
                cost = self._overload_cost(node.function, "not_equals")
                return FunctionCall(not_equal, args, cost=cost, stops_early=False)
        return self._folded(node, self._function_call(node, args), args)

    def _index(self, args: tuple[Interpretable, ...], *, optional: bool) -> Interpretable:
        target, index = args
        attribute = self._attribute(target)
        if isinstance(index, Constant):
            attribute.qualify(Qualifier(index.value, optional=optional))
        else:
            attribute.qualify(Qualifier(computed=self._attribute(index), optional=optional))
        return attribute

    def _function_call(self, node: ast.Call, args: tuple[Interpretable, ...]) -> FunctionCall:
        reference = self._checked.references.get(node.id)
        ids = reference.overload_ids if reference is not None else ()
        function = self._environment.functions[node.function]
        overload = _only_overload(function, ids)
        cost = self._cost(function, overload)
        if node.function in NOT_STRICTLY_FALSE:
            return FunctionCall(
                _not_strictly_false, args, cost=cost, stops_early=False, is_strict=False
            )
        certain = overload if self._are_certain(node) else None
        if node.function in TOTAL:
            total = function.overloads[0].evaluate
            assert total is not None
            evaluate: Callable[..., Any] = self._with_pattern(node, args) or total
            return FunctionCall(evaluate, args, cost=cost, stops_early=False, certain=certain)
        if node.function == "type":
            return FunctionCall(self._type_of, args, cost=cost, stops_early=False)
        if node.function == "dyn":
            return FunctionCall(_identity, args, cost=cost, stops_early=False)
        if node.function in UNGUARDED:
            evaluate = _unguarded(function)
            if overload is None:
                cost = None  # These costs depend on the overload.
            return FunctionCall(evaluate, args, cost=cost, stops_early=False)
        if overload is not None:
            evaluate = guarded(function, (overload,), self._python_types)
            return FunctionCall(
                evaluate, args, cost=cost, stops_early=len(args) > 2, certain=certain
            )
        return FunctionCall(
            guarded(function, function.overloads, self._python_types),
            args,
            cost=cost,
            stops_early=True,
        )

    def _plain_equality(self, node: ast.Call) -> Overload | None:
        """Return the overload of an equality of two strings, or two ints, if that is certain."""
        kinds = {self._checked.types[part.id].kind for part in node.args}
        if kinds not in ({TypeKind.STRING}, {TypeKind.INT}):
            return None
        return self._environment.functions["_==_"].overloads[0]

    def _are_certain(self, node: ast.Call) -> bool:
        """Return whether the values of all arguments must have the checked types."""
        return all(_is_certain(self._checked.types.get(part.id)) for part in ast.children(node))

    def _type_of(self, value: Any) -> TypeValue:
        return TypeValue(runtime_type(value, self._python_types))

    def _cost(self, function: Function, overload: Overload | None) -> CallCost | None:
        if overload is not None:
            cost = overload.runtime_cost
        elif function.name in STANDARD_COSTS_NEED_AN_OVERLOAD:
            cost = None
        else:
            cost = function.overloads[0].runtime_cost
        return None if cost is None else _tolerant(cost)

    def _overload_cost(self, function: str, overload_id: str) -> CallCost | None:
        for overload in self._environment.functions[function].overloads:
            if overload.id == overload_id and overload.runtime_cost is not None:
                return _tolerant(overload.runtime_cost)
        return None

    # --- folding ----------------------------------------------------------------------

    def _folded(
        self, node: ast.Call, call: FunctionCall, args: tuple[Interpretable, ...]
    ) -> Interpretable:
        if node.function in CONVERSIONS and len(args) == 1 and isinstance(args[0], Constant):
            return Constant(_instantiated(call))
        if node.function in REGEX_FUNCTIONS and isinstance(args[1], Constant):
            self._check_pattern(args[1])
        if node.function == "@in" and isinstance(args[1], Constant):
            members = args[1].value
            if isinstance(members, list | tuple) and _is_in_list(node, self._checked):
                return self._membership(call, args[0], list(members))
        return call

    def _membership(
        self, call: FunctionCall, arg: Interpretable, members: list[Any]
    ) -> Interpretable:
        if not members:
            return Constant(False)
        if all(isinstance(m, bool | int | float | str) for m in members):
            return Membership(arg, members)
        return call

    def _with_pattern(
        self, node: ast.Call, args: tuple[Interpretable, ...]
    ) -> Callable[..., Any] | None:
        """Return `matches` with its constant pattern compiled."""
        if node.function != "matches" or not isinstance(args[1], Constant):
            return None
        return matches_literal(self._check_pattern(args[1])) if args[1].value else None

    def _check_pattern(self, arg: Constant) -> Regex:
        try:
            return compile_regex(arg.value)
        except (EvalError, Cancelled) as error:
            raise InstantiationError(str(error)) from None

    def _list(self, node: ast.CreateList) -> Interpretable:
        elements = tuple(map(self.plan, node.elements))
        made = MakeList(elements, node.optional)
        if all(isinstance(element, Constant) for element in elements):
            return Constant(_instantiated(made))
        return made

    def _map(self, node: ast.CreateMap) -> Interpretable:
        entries = tuple(
            (self.plan(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries
        )
        made = MakeMap(entries)
        if all(isinstance(k, Constant) and isinstance(v, Constant) for k, v, _ in entries):
            return Constant(_instantiated(made))
        return made


def _unguarded(function: Function) -> Callable[..., Any]:
    """Return the call of the overload for the number of arguments, whatever the list holds."""

    def call(*args: Any) -> Any:
        for overload in function.overloads:
            if len(overload.params) == len(args) and overload.evaluate is not None:
                if not isinstance(args[0], list | tuple):
                    break
                return overload.evaluate(*args)
        raise no_such_overload()

    return call


def _is_certain(type_: Type | None) -> bool:
    if type_ is None or type_.is_dyn or type_.kind is TypeKind.TYPE_PARAM:
        return False
    return all(map(_is_certain, type_.params))


def _only_overload(function: Function, ids: tuple[str, ...]) -> Overload | None:
    """Return the overload if there is only one."""
    if len(ids) == 1:
        return next((o for o in function.overloads if o.id == ids[0]), None)
    if len(function.overloads) == 1:
        return function.overloads[0]
    return None


def _is_in_list(node: ast.Call, checked: CheckedAST) -> bool:
    reference = checked.references.get(node.id)
    return reference is not None and reference.overload_ids == ("in_list",)


def _tolerant(cost: CallCost) -> CallCost:
    """Return the cost function for arguments that may be failures, whose size is 1."""

    def tolerant(args: tuple[Any, ...], result: Any) -> int:
        plain = tuple(None if isinstance(arg, Failure) else arg for arg in args)
        return cost(plain, None if isinstance(result, Failure) else result)

    return tolerant


def _instantiated(step: Interpretable) -> Any:
    """Return the value of a step that has only constants below it."""
    value = step.run(Activation({}, Budget(UNLIMITED)))
    if isinstance(value, Failure):
        raise InstantiationError(value.message)
    return value


def _not_strictly_false(value: Any) -> bool:
    return value is not False


def _identity(value: Any) -> Any:
    return value
