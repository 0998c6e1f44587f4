"""Declarations, the environment that collects them, and dispatch to overloads.

An overload carries everything about itself: its signature, its implementation, its cost at run time
and its estimate. So a library is one table, and no other table repeats its names.

Libraries are merged in order: overloads that a later library adds to a function come last. A name
is looked up first among variables, then types, then structs, then enum values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from moorage.cel.lang.ast import Call, Expr
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.types import (
    ENUM_VALUES,
    INT,
    MESSAGE_FIELDS,
    MESSAGE_TYPES,
    Type,
    TypeKind,
    struct,
    type_of,
)
from moorage.cel.lang.values import PythonTypes, TypeValue, runtime_type

if TYPE_CHECKING:
    from moorage.cel.lang.attributes import Pattern
    from moorage.cel.lang.costs import CostEstimate, RuntimeCost
    from moorage.cel.lang.macros import Macro

# A check of one call after type checking; takes the call and the CheckedAST.
Validator = Callable[[Call, Any], Iterable[tuple[Expr, str]]]
# Makes the value of a struct from its fields, or raises EvalError.
StructMaker = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function.

    `evaluate` takes the arguments, the target first, as values of the declared types, and returns a
    value or raises EvalError. None: declared only (authorization).
    """

    id: str
    params: tuple[Type, ...]  # the target first, if is_member
    result: Type
    evaluate: Callable[..., Any] | None = None
    is_member: bool = False
    runtime_cost: RuntimeCost | None = None  # None: 1
    estimate: CostEstimate | None = None  # None: 1

    def accepts(self, args: tuple[Any, ...], python_types: PythonTypes) -> bool:
        """Return whether values fit the signature."""
        return len(args) == len(self.params) and all(
            _fits(value, wanted, python_types)
            for value, wanted in zip(args, self.params, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Function:
    """A name and its overloads."""

    name: str
    overloads: tuple[Overload, ...]


Costs = tuple["RuntimeCost | None", "CostEstimate | None"]
UNIT_COST: Costs = (None, None)
_Row = tuple[str, tuple[Type, ...], Type, Callable[..., Any]]  # id, params, result, evaluate


def functions_of(name: str, *rows: _Row, costs: Costs = UNIT_COST) -> Function:
    """Return a global function whose overloads cost the same."""
    return Function(name, tuple(Overload(*row, False, *costs) for row in rows))


def members_of(name: str, *rows: _Row, costs: Costs = UNIT_COST) -> Function:
    """Return a member function whose overloads cost the same."""
    return Function(name, tuple(Overload(*row, True, *costs) for row in rows))


@dataclass(frozen=True, slots=True)
class Library:
    """A set of declarations that come together."""

    name: str
    functions: tuple[Function, ...] = ()
    macros: tuple[Macro, ...] = ()
    types: tuple[Type, ...] = ()  # that are identifiers: `int`, `net.IP`
    validators: tuple[Validator, ...] = ()
    python_types: dict[type, Type] = field(default_factory=dict)  # runtime class: its CEL type


@dataclass(frozen=True, slots=True)
class Identifier:
    """The declaration of a name; `value` if that is a constant, such as a type."""

    name: str
    type: Type
    value: Any = None


class Environment:
    """All declarations, by name.

    `type_names` are names that the checker takes for types although no value at run time has
    them; so are the names of structs. `cells` are the paths that can be read from columns.
    """

    def __init__(
        self,
        libraries: Iterable[Library],
        *,
        variables: Mapping[str, Type],
        structs: Mapping[str, Mapping[str, Type]],
        type_names: Mapping[str, Type] | None = None,
        cells: Iterable[Pattern] = (),
    ) -> None:
        self.libraries = tuple(libraries)
        self.variables = dict(variables)
        self.cells = tuple(cells)
        self.functions: dict[str, Function] = {}
        self.types = {
            name: type_ for name, type_ in MESSAGE_TYPES.items() if type_.kind is TypeKind.STRUCT
        }
        self.python_types: dict[type, Type] = {}
        self.macros: tuple[Macro, ...] = ()
        self.validators: tuple[Validator, ...] = ()
        self._fields = {**MESSAGE_FIELDS, **structs}
        self._type_names = {
            **MESSAGE_TYPES,
            **{name: struct(name) for name in structs},
            **(type_names or {}),
        }
        for library in self.libraries:
            self._add(library)

    def identifier(self, name: str) -> Identifier | None:
        """Return the declaration of a name outside of all loops, if there is one."""
        name = name.removeprefix(".")
        if name in self.variables:
            return Identifier(name, self.variables[name])
        found = self.type_identifier(name)
        if found is None and name in ENUM_VALUES:
            return Identifier(name, INT, ENUM_VALUES[name])
        return found

    def type_identifier(self, name: str) -> Identifier | None:
        """Return the type of a name, if it is one."""
        name = name.removeprefix(".")
        if name in self.types:
            type_ = self.types[name]
            return Identifier(name, type_of(type_), TypeValue(type_))
        if name in self._type_names:
            return Identifier(name, type_of(self._type_names[name]))
        return None

    def function(self, name: str) -> Function | None:
        """Return the function of a name."""
        return self.functions.get(name.removeprefix("."))

    def overload(self, function: str, overload_id: str) -> Overload | None:
        """Return an overload of a function."""
        declared = self.function(function)
        overloads = () if declared is None else declared.overloads
        return next((each for each in overloads if each.id == overload_id), None)

    def has_struct(self, name: str) -> bool:
        """Return whether a name may have fields."""
        return name in self._fields or name in self._type_names

    def field_type(self, struct_name: str, field_name: str) -> Type | None:
        """Return the type of a field of a struct, None if it has no such field."""
        if struct_name in self._fields:
            return self._fields[struct_name].get(field_name)
        named = self._type_names[struct_name]
        return named.params[1] if named.kind is TypeKind.MAP else None

    def struct_maker(self, struct_name: str) -> StructMaker | None:  # noqa: ARG002
        """Return what makes values of a struct; None: expressions cannot make them."""
        return None

    def extended(
        self, *, variables: Mapping[str, Type], structs: Mapping[str, Mapping[str, Type]]
    ) -> Environment:
        """Return the same environment with more variables and structs."""
        made = copy(self)
        made.variables = {**self.variables, **variables}
        made._fields = {**self._fields, **structs}
        made._type_names = {**self._type_names, **{name: struct(name) for name in structs}}
        return made

    def _add(self, library: Library) -> None:
        for function in library.functions:
            present = self.functions.get(function.name)
            self.functions[function.name] = merge(present, function)
        self.types.update({type_.name: type_ for type_ in library.types})
        self.python_types.update(library.python_types)
        self.macros += library.macros
        self.validators += library.validators


def merge(present: Function | None, added: Function) -> Function:
    """Return a function with the overloads of both; one declared twice keeps its first place."""
    if present is None:
        return added
    overloads = {overload.id: overload for overload in present.overloads}
    for overload in added.overloads:
        declared = overloads.get(overload.id, overload)
        if (declared.params, declared.is_member) != (overload.params, overload.is_member):
            raise ValueError(f"{added.name}: overload {overload.id} is declared in two ways")
        overloads[overload.id] = overload
    return Function(added.name, tuple(overloads.values()))


class Scopes:
    """The iteration variables of the loops around a node, and the environment around those."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._scopes: list[Mapping[str, Type]] = []  # innermost last

    def enter(self, variables: Mapping[str, Type]) -> None:
        """Add the variables of an inner scope."""
        self._scopes.append(variables)

    def leave(self) -> None:
        """Remove the innermost scope."""
        self._scopes.pop()

    def find(self, name: str) -> Identifier | None:
        """Return the declaration of a name, simple or dotted, if there is one.

        A name with a leading dot is never an iteration variable; if one has the same name, the dot
        stays part of the identifier's name.
        """
        first, _, rest = name.removeprefix(".").partition(".")
        local = next((scope[first] for scope in reversed(self._scopes) if first in scope), None)
        if local is not None and not name.startswith("."):
            # The rest is a field of the variable.
            return None if rest else Identifier(name, local)
        found = self._environment.identifier(name)
        if found is None or local is None:
            return found
        return replace(found, name=f".{found.name}")


# --- dispatch -------------------------------------------------------------------------------------


def _fits(value: Any, wanted: Type, python_types: PythonTypes) -> bool:
    """Return whether a value fits a parameter; lists and maps by their first element."""
    if wanted.is_dyn or wanted.kind is TypeKind.TYPE_PARAM:
        return True
    if runtime_type(value, python_types).name != wanted.name:
        return False
    if wanted.kind is TypeKind.LIST and len(value):
        return _fits(value[0], wanted.params[0], python_types)
    if wanted.kind is TypeKind.MAP and len(value):
        entry = next(iter(value.items()))
        return all(_fits(*pair, python_types) for pair in zip(entry, wanted.params, strict=True))
    return True


def guarded(function: Function, overloads: Iterable[Overload], python_types: PythonTypes) -> Any:
    """Return the call of the first of some overloads that the values fit."""
    callable_ = [each for each in overloads if each.evaluate is not None]
    # Of lists and maps the elements count, of all other values the class.
    depends_on_classes = not any(
        param.kind in (TypeKind.LIST, TypeKind.MAP) for each in callable_ for param in each.params
    )
    by_classes: dict[tuple[type, ...], Callable[..., Any]] = {}

    def call(*args: Any) -> Any:
        classes = tuple(map(type, args))
        known = by_classes.get(classes)
        if known is not None:
            return known(*args)
        for overload in callable_:
            if overload.accepts(args, python_types):
                assert overload.evaluate is not None
                if depends_on_classes:
                    by_classes[classes] = overload.evaluate
                return overload.evaluate(*args)
        names = ", ".join(runtime_type(value, python_types).name for value in args)
        raise EvalError(f"no such overload: {function.name}({names})")

    return call
