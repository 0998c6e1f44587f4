"""The text of a quantity, read fast: the plain forms that nearly all quantities have.

    plain = digits [ "." digits* ] ( "" | SI | binary | ("e" | "E") [ "+" | "-" ] digit )

A whole number does not begin with a zero, and a number with a point has no binary suffix. What is
not plain, or has too many digits, is for read_quantity; where this reader answers, that one would
give the same parts. It does without regular expressions, and tells a form by one lookup of what
follows the digits.

    # cut: where the suffix begins, counted from the end of the text; None if there is none
    # shift: the power of two that the digits are multiplied by
    # period: a number that it divides has a shorter text, so its own text is not canonical
"""

from __future__ import annotations

from typing import Final

from mooring.api.gointegers import INT64_MAX
from mooring.api.quantitytext import (
    NANO,
    NARROW_DIGITS_MAX,
    ONE_IN_NANO,
    SUFFIXES,
    Format,
    Parts,
)

_DIGITS: Final = "0123456789"

# suffix: notation, exponent, most digits of a narrow number
_KNOWN: Final = SUFFIXES | {
    f"{letter}{sign}{size}": (
        Format.DECIMAL_EXPONENT, -size if sign == "-" else size, NARROW_DIGITS_MAX
    )
    for letter in "eE"
    for sign in ("", "+", "-")
    for size in range(10)
}  # fmt: skip

# suffix: notation, cut, exponent
_DECIMAL: Final = {
    suffix: (notation, -len(suffix) or None, exponent)
    for suffix, (notation, exponent, _) in _KNOWN.items()
    if notation is not Format.BINARY_SI
}

# suffix: notation, cut, shift, exponent, most digits of a narrow number, period
_WHOLE: Final = {
    suffix: (notation, cut, 0, exponent, NARROW_DIGITS_MAX, 1 if exponent % 3 else 1000)
    for suffix, (notation, cut, exponent) in _DECIMAL.items()
} | {
    suffix: (notation, -len(suffix), exponent, 0, narrow_digits_max, 8)
    for suffix, (notation, exponent, narrow_digits_max) in _KNOWN.items()
    if notation is Format.BINARY_SI
}


def read_plain(text: str) -> Parts | None:
    """Return what a plain text stands for, or None where read_quantity must look."""
    if "." in text:
        return _read_decimal(text)
    form = _WHOLE.get(text.lstrip(_DIGITS))
    if form is None:
        return None
    notation, cut, shift, exponent, narrow_digits_max, period = form
    digits = text[:cut]
    if digits < "1" or len(digits) > NARROW_DIGITS_MAX:
        return None
    number = int(digits)
    if len(digits) <= narrow_digits_max:
        return number << shift, exponent, False, notation, text if number % period else None
    if number << shift > INT64_MAX:
        return INT64_MAX, 0, True, notation, None
    return (number << shift) * ONE_IN_NANO, NANO, True, notation, None


def _read_decimal(text: str) -> Parts | None:
    """Return what a plain text with a point stands for: `0.5`, `1.25k`."""
    whole, _, rest = text.partition(".")
    form = _DECIMAL.get(rest.lstrip(_DIGITS))
    if form is None or not (whole.isdecimal() and whole.isascii()):
        return None
    notation, cut, exponent = form
    fraction = rest[:cut]
    digits = whole + fraction
    exponent -= len(fraction)
    is_below_one = whole == "0"
    if exponent < NANO or len(digits) > NARROW_DIGITS_MAX or (whole < "1" and not is_below_one):
        return None
    number = int(digits)
    is_canonical = exponent % 3 == 0 and number % 1000 and not is_below_one
    return number, exponent, False, notation, text if is_canonical else None
