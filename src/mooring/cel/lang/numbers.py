"""Numbers of 64 bits, and their texts as Go reads and prints them.

A reader returns None for a text that is no such number: what that means is the caller's business.
Texts are hostile: nothing here turns a long text into an int, which Python does slowly or not.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

from mooring.cel.lang.values import INT_MAX, INT_MIN, UINT_MAX, EvalError, UInt

INT_OVERFLOW: Final = "integer overflow"
UINT_OVERFLOW: Final = "unsigned integer overflow"

_UINT64_DIGITS_MAX: Final = 20
_UINT64: Final = 2**64
_INT64_MAGNITUDE_MAX: Final = 2**63

_is_int = re.compile(r"[+-]?[0-9]++").fullmatch
_is_uint = re.compile(r"[0-9]++").fullmatch
_is_infinity = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE | re.ASCII).fullmatch
_is_decimal = re.compile(
    r"[+-]?(?=[._]*[0-9])[0-9_]*+(?:\.[0-9_]*+)?+(?:[eE][+-]?[0-9][0-9_]*+)?+"
).fullmatch
_is_hexadecimal = re.compile(
    r"[+-]?0[xX](?=[._]*[0-9a-fA-F])[0-9a-fA-F_]*+(?:\.[0-9a-fA-F_]*+)?+[pP][+-]?[0-9][0-9_]*+"
).fullmatch
# An underscore has to stand between digits; behind `0x` it may as well.
_misplaced = re.compile(r"(?<![0-9])_|_(?![0-9])").search
_misplaced_in_hexadecimal = re.compile(r"(?<![0-9a-fA-FxX])_|_(?![0-9a-fA-F])").search

_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


# --- bounds ---------------------------------------------------------------------------------------


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


# --- reading --------------------------------------------------------------------------------------


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


# --- printing -------------------------------------------------------------------------------------


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
