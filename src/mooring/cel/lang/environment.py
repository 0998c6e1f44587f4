"""What an expression may use: functions, macros, variables, types and the fields of structs.

Libraries are merged in order: overloads that a later library adds to a function come last. A name
is looked up first among variables, then types, then structs, then enum values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mooring.cel.lang.ast import Call, Expr
from mooring.cel.lang.cells import Pattern
from mooring.cel.lang.declarations import Function, Library, Macro, Overload
from mooring.cel.lang.types import INT, Kind, Type, struct, type_of
from mooring.cel.lang.values import TypeValue
from mooring.cel.lang.wellknown import ENUM_VALUES, MESSAGE_FIELDS, MESSAGE_TYPES

# A check of one call after type checking; gets the call and the Checked expression.
Validator = Callable[[Call, Any], Iterable[tuple[Expr, str]]]


@dataclass(frozen=True, slots=True)
class Identifier:
    """What a name stands for; `value` if that is a constant, such as a type."""

    name: str
    type: Type
    value: Any = None


class Environment:
    """Declarations, and how names find them.

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
            name: type_ for name, type_ in MESSAGE_TYPES.items() if type_.kind is Kind.STRUCT
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
        """Return what a name stands for outside of all loops, None if nothing has it."""
        name = name.removeprefix(".")
        if name in self.variables:
            return Identifier(name, self.variables[name])
        found = self.type_identifier(name)
        if found is None and name in ENUM_VALUES:
            return Identifier(name, INT, ENUM_VALUES[name])
        return found

    def type_identifier(self, name: str) -> Identifier | None:
        """Return the type that a name stands for, None if it stands for none."""
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
        """Return whether a name can be asked for fields."""
        return name in self._fields or name in self._type_names

    def field_type(self, struct_name: str, field: str) -> Type | None:
        """Return the type of a field of a struct, None if it has no such field."""
        if struct_name in self._fields:
            return self._fields[struct_name].get(field)
        named = self._type_names[struct_name]
        return named.params[1] if named.kind is Kind.MAP else None

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
