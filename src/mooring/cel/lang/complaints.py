"""What the checker says about mistakes, word by word as the reference implementation says it."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.cel.lang.types import Type

# Ours: there, such an expression is never done.
TOO_COMPLEX = "expression is too complex to be checked"


def undeclared(name: str) -> str:
    """Return the complaint about a name that nothing has."""
    return f"undeclared reference to '{name}' (in container '')"


def mismatch(wanted: Type, given: Type) -> str:
    """Return the complaint about a value of the wrong type."""
    return f"expected type '{wanted}' but found '{given}'"


def no_overload(function: str, types: Sequence[Type], *, is_member: bool) -> str:
    """Return the complaint about arguments (the target first) that no overload takes."""
    shown = [str(type_) for type_ in types]
    target = f"{shown.pop(0)}." if is_member else ""
    return f"found no matching overload for '{function}' applied to '{target}({', '.join(shown)})'"


def no_fields(type_: Type) -> str:
    """Return the complaint about a field of something that has none."""
    return f"type '{type_}' does not support field selection"


def undefined_field(field: str) -> str:
    """Return the complaint about a field that a struct does not have."""
    return f"undefined field '{field}'"


def unknown_struct(name: str) -> str:
    """Return the complaint about a field of a struct whose fields nobody declared."""
    return f"unexpected failed resolution of '{name}'"


def not_a_message(type_: Type) -> str:
    """Return the complaint about `T{}` where T has no fields to set."""
    return f"'{type_.name}' is not a message type"


def field_mismatch(field: str, wanted: Type, given: Type) -> str:
    """Return the complaint about a field that is given a value of the wrong type."""
    return f"expected type of field '{field}' is '{wanted}' but provided type is '{given}'"


def not_a_range(type_: Type) -> str:
    """Return the complaint about a loop over something without elements."""
    return (
        f"expression of type '{type_}' cannot be range of a comprehension"
        " (must be list, map, or dynamic)"
    )
