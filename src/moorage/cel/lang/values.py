"""Values at run time: their Python classes, their CEL types, and Go's texts of them.

| CEL | Python | | CEL | Python |
|---|---|---|---|---|
| null | None | | bytes | bytes |
| bool | bool | | list | list or tuple |
| int | int | | map | dict, see map_key |
| uint | UInt | | timestamp | Timestamp |
| double | float | | duration | Duration |
| string | str | | type | TypeValue |
| optional | Optional | | opaque | an instance of its own class |

Parsers of numbers return None for a text that is no such number. Texts are hostile: nothing here
turns a long text into an int, which Python does slowly or not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from moorage.cel.lang import types as t
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.types import Type

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1


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
    """Return the dict key of a CEL value.

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


PythonTypes = Mapping[type, Type]
_BASE_TYPES: Final[PythonTypes] = {
    type(None): t.NULL,
    bool: t.BOOL,
    int: t.INT,
    UInt: t.UINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    list: t.list_of(t.DYN),
    tuple: t.list_of(t.DYN),
    dict: t.map_of(t.DYN, t.DYN),
    Optional: t.optional_of(t.DYN),
    TypeValue: t.TYPE,
}


def runtime_type(value: Any, python_types: PythonTypes) -> Type:
    """Return the CEL type of a value; `python_types` are those of the libraries' classes."""
    found = _BASE_TYPES.get(type(value)) or python_types.get(type(value))
    if found is not None:
        return found
    for class_, type_ in (*_BASE_TYPES.items(), *python_types.items()):
        if isinstance(value, class_):
            return type_
    raise TypeError(f"{type(value).__name__} is no CEL value")


# --- 64-bit numbers -------------------------------------------------------------------------------


INT_OVERFLOW: Final = "integer overflow"
UINT_OVERFLOW: Final = "unsigned integer overflow"
_UINT64_DIGITS_MAX: Final = 20
_UINT64: Final = 2**64
_INT64_MAGNITUDE_MAX: Final = 2**63


def fitting_int(number: int) -> int:
    """Return the number if it fits an int64, or raise an overflow."""
    if INT_MIN <= number <= INT_MAX:
        return number
    raise EvalError(INT_OVERFLOW)


def fitting_uint(number: int) -> UInt:
    """Return the number as an unsigned one if it fits a uint64, or raise an overflow."""
    if 0 <= number <= UINT_MAX:
        return UInt(number)
    raise EvalError(UINT_OVERFLOW)


def wrapped_int(number: int) -> int:
    """Return the int64 that has the number's low 64 bits."""
    return (number + _INT64_MAGNITUDE_MAX) % _UINT64 - _INT64_MAGNITUDE_MAX


def truncated(number: int, unit: int) -> tuple[int, int]:
    """Return quotient and remainder of a division towards zero by a positive unit."""
    quotient, remainder = divmod(abs(number), unit)
    return (quotient, remainder) if number >= 0 else (-quotient, -remainder)


# --- texts ----------------------------------------------------------------------------------------


_is_int = re.compile(r"[+-]?[0-9]++").fullmatch
_is_uint = re.compile(r"[0-9]++").fullmatch
_is_infinity = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE | re.ASCII).fullmatch
_is_decimal = re.compile(
    r"[+-]?(?=[._]*[0-9])[0-9_]*+(?:\.[0-9_]*+)?+(?:[eE][+-]?[0-9][0-9_]*+)?+"
).fullmatch
_is_hexadecimal = re.compile(
    r"[+-]?0[xX](?=[._]*[0-9a-fA-F])[0-9a-fA-F_]*+(?:\.[0-9a-fA-F_]*+)?+[pP][+-]?[0-9][0-9_]*+"
).fullmatch
# An underscore must be between digits; it may also follow `0x`.
_misplaced = re.compile(r"(?<![0-9])_|_(?![0-9])").search
_misplaced_in_hexadecimal = re.compile(r"(?<![0-9a-fA-FxX])_|_(?![0-9a-fA-F])").search
_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def parse_bool(text: str) -> bool | None:
    """bool = "1" | "t" | "T" | "true" | "TRUE" | "True", or the like for false"""
    return _BOOLS.get(text)


def is_int_text(text: str) -> bool:
    """Return whether the text is a whole number, of whatever size."""
    return _is_int(text) is not None


def parse_int(text: str) -> int | None:
    """int = [ "+" | "-" ] digits, in the range of an int64"""
    if not _is_int(text):
        return None
    magnitude = _magnitude(text.lstrip("+-"))
    number = -magnitude if text[0] == "-" else magnitude
    return number if INT_MIN <= number <= INT_MAX else None


def parse_uint(text: str) -> UInt | None:
    """uint = digits, in the range of a uint64"""
    if not _is_uint(text):
        return None
    number = _magnitude(text)
    return UInt(number) if number <= UINT_MAX else None


def _magnitude(digits: str) -> int:
    """Return the number, or one beyond all ranges."""
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) <= _UINT64_DIGITS_MAX else _UINT64


def parse_double(text: str) -> float | None:
    """double = Go's floating-point literals with a sign, `NaN`, `Inf`, `Infinity` in any case"""
    if text.isascii() and text.lower() == "nan":
        return math.nan
    if _is_infinity(text):
        return -math.inf if text[0] == "-" else math.inf
    if _is_decimal(text):
        return None if _misplaced(text) else _finite(float(text.replace("_", "")))
    if _is_hexadecimal(text) and not _misplaced_in_hexadecimal(text):
        try:
            return float.fromhex(text.replace("_", ""))
        except OverflowError:
            return None
    return None


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def double_text(number: float) -> str:
    """Return the shortest text of a double, as `%g` prints it: `1.5`, `1e+06`, `+Inf`."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else ("+Inf" if number > 0 else "-Inf")
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    magnitude = len(digits) + exponent - 1 if number else 0
    if -4 <= magnitude < 6:
        return positional_text(number)
    first, *rest = map(str, digits)
    mantissa = f"{first}.{''.join(rest)}" if rest else first
    return f"{'-' if sign else ''}{mantissa}e{'-' if magnitude < 0 else '+'}{abs(magnitude):02d}"


def positional_text(number: float) -> str:
    """Return the shortest text of a finite double without an exponent: `1000000`, `0.001`."""
    text = repr(number)
    if "e" in text:
        text = format(Decimal(text), "f")
    return text.removesuffix(".0")


def shown_key(key: Any) -> str:
    """Return a key as error messages show it."""
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, float):
        return str(int(key)) if key.is_integer() else str(key)
    return str(int(key)) if isinstance(key, UInt) else str(key)


def shown(value: Any) -> str:
    """Return a value as error messages show it."""
    match value:
        case None:
            return "0"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return double_text(value)
        case bytes():
            return f"[{' '.join(map(str, value))}]"
        case list() | tuple():
            return f"[{', '.join(map(shown, value))}]"
        case dict():
            entries = (f"{shown(key_value(key))}: {shown(item)}" for key, item in value.items())
            return f"{{{', '.join(entries)}}}"
        case Optional():
            return f"optional({shown(value.value)})" if value.has_value else "optional.none()"
        case TypeValue():
            return value.name
        case _:
            return str(value)
