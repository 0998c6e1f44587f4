"""Values at run time.

| CEL | Python | | CEL | Python |
|---|---|---|---|---|
| null | None | | bytes | bytes |
| bool | bool | | list | list or tuple |
| int | int | | map | dict, see map_key |
| uint | UInt | | timestamp | Timestamp |
| double | float | | duration | Duration |
| string | str | | type | TypeValue |
| optional | Optional | | opaque | an instance of its own class |

An error is raised, never a value. `EvalError` is what `&&`, `||` and the macros absorb;
`Cancelled` ends the evaluation whatever is around it.
"""

from __future__ import annotations

from typing import Any, Final

from mooring.cel.lang.types import Type

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1


class EvalError(Exception):
    """An expression that has no value for this input."""


class Cancelled(Exception):  # noqa: N818 - it is not an error of the expression
    """An evaluation that was ended from outside: its cost limit, or an interrupt."""


NO_SUCH_OVERLOAD = "no such overload"


def no_such_overload() -> EvalError:
    """Return the error of a function that has no overload for its arguments."""
    return EvalError(NO_SUCH_OVERLOAD)


class UInt(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


class TypeValue:
    """A type as a value: `type(1)`, `int`; equal by name."""

    __slots__ = ("name", "type")

    def __init__(self, type_: Type) -> None:
        self.type = type_
        self.name = type_.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeValue) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"TypeValue({self.name})"


class Optional:
    """A value that may be absent; NONE is the absent one."""

    __slots__ = ("_value", "has_value")

    def __init__(self, value: Any = None, *, has_value: bool = True) -> None:
        self._value = value
        self.has_value = has_value

    @property
    def value(self) -> Any:
        """The value, or an EvalError."""
        if not self.has_value:
            raise EvalError("optional.none() dereference")
        return self._value

    def __repr__(self) -> str:
        return f"Optional({self._value!r})" if self.has_value else "NONE"


NONE: Final = Optional(has_value=False)


class BoolKey:
    """A bool as the key of a map: to Python, True and 1 would be the same key."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"BoolKey({self.value})"


TRUE_KEY: Final = BoolKey(True)
FALSE_KEY: Final = BoolKey(False)


def map_key(value: Any) -> Any:
    """Return how a CEL value stands as a key in a dict.

    Numbers that are equal are equal keys, whatever their types; strings are themselves.
    """
    if value is True:
        return TRUE_KEY
    if value is False:
        return FALSE_KEY
    return value


def key_value(key: Any) -> Any:
    """Return the CEL value of a key of a dict."""
    return key.value if type(key) is BoolKey else key
