"""The text of quantities: a fast reader of plain forms, and a careful one of all forms.

    plain = digits [ "." digits* ] ( "" | SI | binary | ("e" | "E") [ "+" | "-" ] digit )

`read_quantity` reads every form that Kubernetes accepts and gives its errors. `read_plain` reads
the forms that nearly all quantities have, without regular expressions: it recognizes a form by one
lookup of the suffix. A whole number does not begin with a zero, and a number with a point has no
binary suffix. Where `read_plain` answers, `read_quantity` would give the same parts.

Input is hostile: numbers with more than DIGITS_MAX digits before the point are refused, and digits
beyond nano are rounded up as text, before they become a number. So nobody ever handles more than a
few thousand digits, nor meets Python's own limit on digits of an int.

    # sign, whole, fraction, suffix: the pieces of a text, `-`, `1`, `5`, `Gi` in `-1.5Gi`
    # digits: whole and fraction as one run, without leading zeros
    # places: how many of some digits are behind the decimal point
    # cut: where the suffix begins, counted from the end of the text; None if there is none
    # shift: the power of two that the digits are multiplied by
    # period: a number that it divides has a shorter text, so its own text is not canonical
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from moorage.api.errors import QuantityError
from moorage.api.go_integers import INT64_MAX, fits_int64, power_of_ten, wrapped

DIGITS_MAX: Final = 2048
NARROW_DIGITS_MAX: Final = 18
NANO: Final = -9
ONE_IN_NANO: Final = 10**9

FORMAT_WRONG: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
NUMBER_WRONG: Final = "unable to parse numeric part of quantity"
SUFFIX_WRONG: Final = "unable to parse quantity's suffix"


class Format(StrEnum):
    """The notation of a quantity: which family of suffixes it is printed with."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


# What a quantity is made of: unscaled, exponent, whether it is wide, its notation, and its own text
# where that is canonical. A bare tuple, for one is made of each text that is read.
Parts = tuple[int, int, bool, Format, str | None]


# --- suffixes -----------------------------------------------------------------------------------

DECIMAL_NAMES: Final = {
    -9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"
}  # fmt: skip
BINARY_NAMES: Final = {1: "Ki", 2: "Mi", 3: "Gi", 4: "Ti", 5: "Pi", 6: "Ei"}

# suffix: notation, exponent (of ten, or of two for BinarySI), most digits of a narrow number
SUFFIXES: Final[dict[str, tuple[Format, int, int]]] = {
    name: (Format.DECIMAL_SI, exponent, NARROW_DIGITS_MAX)
    for exponent, name in DECIMAL_NAMES.items()
} | {name: (Format.BINARY_SI, 10 * power, 14 - 3 * power) for power, name in BINARY_NAMES.items()}


def _read_suffix(suffix: str) -> tuple[Format, int, int]:
    """suffix = SI | binary | ("e" | "E") [ "+" | "-" ] digits"""
    known = SUFFIXES.get(suffix)
    if known is not None:
        return known
    digits = suffix[1:].lstrip("+-")
    significant = digits.lstrip("0") or "0"
    if suffix[0] not in "eE" or not digits.isdecimal() or len(significant) > 19:
        raise QuantityError(SUFFIX_WRONG)
    exponent = -int(significant) if suffix[1] == "-" else int(significant)
    if not fits_int64(exponent):
        raise QuantityError(SUFFIX_WRONG)
    return Format.DECIMAL_EXPONENT, wrapped(exponent, bits=32), NARROW_DIGITS_MAX


# --- the whole text -----------------------------------------------------------------------------

_match = re.compile(
    r"([+-]?)(0*+)([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?+[0-9]*+)"
).fullmatch


def read_quantity(text: str) -> Parts:
    """quantity = [ "+" | "-" ] digits* [ "." digits* ] suffix

    Return the parts of a quantity or raise QuantityError with Kubernetes' text.
    """
    found = _match(text)
    if found is None or not text:
        raise QuantityError(FORMAT_WRONG)
    if text == "0":
        return 0, 0, False, Format.DECIMAL_SI, text
    sign, zeros, whole, fraction, suffix = found.groups("")
    notation, exponent, narrow_digits_max = _read_suffix(suffix)
    digits = (whole or "0") + fraction
    if len(digits) <= narrow_digits_max:
        if notation is not Format.BINARY_SI and exponent - len(fraction) >= NANO:
            return _narrow(text, sign, digits, exponent - len(fraction), notation)
        if notation is Format.BINARY_SI and not fraction:
            return _narrow_binary(text, sign, int(digits), exponent)
    if not (zeros or whole or fraction):
        raise QuantityError(NUMBER_WRONG)
    return _wide(sign, digits, len(fraction), exponent, notation)


def _narrow(text: str, sign: str, digits: str, exponent: int, notation: Format) -> Parts:
    number = int(digits)
    is_canonical = exponent % 3 == 0 and digits[0] != "0" and not digits.endswith("000")
    if number == 0:
        exponent = min(exponent, DIGITS_MAX)
    _check_size(len(digits) + exponent if number else 0)
    signed = -number if sign == "-" else number
    return signed, exponent, False, notation, text if is_canonical else None


def _narrow_binary(text: str, sign: str, number: int, power: int) -> Parts:
    # Kubernetes' cheap test for "cannot be written with a larger suffix": not a multiple of 8.
    is_canonical = number & 7 != 0
    signed = -number if sign == "-" else number
    return signed << power, 0, False, Format.BINARY_SI, text if is_canonical else None


def _wide(sign: str, digits: str, places: int, exponent: int, notation: Format) -> Parts:
    significant = digits.lstrip("0")
    is_binary = notation is Format.BINARY_SI
    if not significant:
        kept = (0 if is_binary else exponent) - places
        return 0, max(-DIGITS_MAX, min(kept, DIGITS_MAX)), True, notation, None
    if is_binary:
        nano = _binary_nano(significant, places, exponent)
    else:
        nano = _decimal_nano(significant, exponent - places)
    signed = -nano if sign == "-" else nano
    if is_binary and nano > INT64_MAX * ONE_IN_NANO:
        return -INT64_MAX if sign == "-" else INT64_MAX, 0, True, notation, None
    if is_binary and nano < ONE_IN_NANO:
        notation = Format.DECIMAL_SI
    return signed, NANO, True, notation, None


def _decimal_nano(digits: str, exponent: int) -> int:
    """Return digits × 10^exponent in nano units, rounded up."""
    _check_size(len(digits) + exponent)
    surplus = NANO - exponent
    if surplus <= 0:
        return int(digits) * power_of_ten(-surplus)
    has_rest = digits[-surplus:].strip("0") != ""
    return int(digits[:-surplus] or "0") + has_rest


def _binary_nano(digits: str, places: int, power: int) -> int:
    """Return digits / 10^places × 2^power in nano units, rounded up; if over the cap, just more."""
    if len(digits) - places > 19:
        return (INT64_MAX + 1) * ONE_IN_NANO
    surplus = places - _BINARY_PLACES_MAX
    if surplus > 0:
        has_rest = digits[-surplus:].strip("0") != ""
        digits = digits[:-surplus] + ("1" if has_rest else "0")
        places = _BINARY_PLACES_MAX + 1
    return -((-int(digits) << power) * ONE_IN_NANO // power_of_ten(places))


# 9 places for nano and 60 for the factors of two in Ei: with that many, further digits only matter
# by not being zero.
_BINARY_PLACES_MAX: Final = 69


def _check_size(digits: int) -> None:
    if digits > DIGITS_MAX:
        raise QuantityError(f"{NUMBER_WRONG}: more than {DIGITS_MAX} digits")


# --- plain texts -------------------------------------------------------------------------------


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
    """Return the parts of a plain text, or None if read_quantity must read it."""
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
    """Return the parts of a plain text with a point: `0.5`, `1.25k`."""
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
