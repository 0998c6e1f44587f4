"""Kubernetes quantities: `10Gi`, `500m`, `1e3`, with Kubernetes' own rounding, text and errors.

A quantity is a decimal number, unscaled × 10^exponent, and the notation it is printed in. As in
Kubernetes there are two shapes, and they answer differently at the edges:

    narrow   the unscaled number fits an int64 (up to 18 digits as parsed): the usual case
    wide     everything else: any number of digits; parsed ones are in whole nano units

`as_int64` knows narrow quantities only, and `value` overflows in another way for each shape.

    # unscaled, exponent: the number is unscaled × 10^exponent
    # places: how many of some digits stand behind the decimal point
    # notation: which of the three families of suffixes the text uses (Format)

Input is hostile: numbers with more than DIGITS_MAX digits before the point are refused, and what
lies behind nano is rounded up as text, before it becomes a number. So no operation here ever
handles more than a few thousand digits, nor meets Python's own limit on digits of an int.
"""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from functools import lru_cache
from typing import ClassVar, Final, final

from mooring.api.errors import QuantityError

DIGITS_MAX: Final = 2048
MEMO_SIZE: Final = 8192
MEMO_TEXT_LENGTH_MAX: Final = 32

FORMAT_WRONG: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
NUMBER_WRONG: Final = "unable to parse numeric part of quantity"
SUFFIX_WRONG: Final = "unable to parse quantity's suffix"

_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1
_NANO: Final = -9
_ONE_IN_NANO: Final = 10**9
_NARROW_DIGITS_MAX: Final = 18
# What unicode.IsSpace of Go knows; str.strip() would take \x1c to \x1f as well.
_BLANKS: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
    "\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


class Format(StrEnum):
    """The notation of a quantity: which family of suffixes it is printed with."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@final
class Quantity:
    """An exact number with a notation; equality, order and hash go by the number alone."""

    __slots__ = ("_exponent", "_format", "_is_wide", "_text", "_unscaled")

    ZERO: ClassVar[Quantity]

    def __init__(
        self, unscaled: int, exponent: int, is_wide: bool, notation: Format, text: str | None = None
    ) -> None:
        self._unscaled = unscaled
        self._exponent = exponent
        self._is_wide = is_wide
        self._format = notation
        self._text = text

    # --- making -------------------------------------------------------------------------------

    @staticmethod
    def parse(text: str) -> Quantity:
        """quantity = [ "+" | "-" ] digits* [ "." digits* ] ( "" | SI | binary | ("e"|"E") int )

        Return the quantity or raise QuantityError with Kubernetes' text. As in Kubernetes the
        digits may be missing altogether (`+`, `.`, `Ki` are zero), and an exponent is an int64
        of which the low 32 bits count.
        """
        if len(text) <= MEMO_TEXT_LENGTH_MAX:
            return _remembered(text)
        return _parse(text)

    @staticmethod
    def from_json(text: str) -> Quantity:
        """Return the quantity in the text of a JSON string or number; blanks may surround it."""
        return Quantity.parse(text.strip(_BLANKS))

    @staticmethod
    def from_int(value: int, notation: Format = Format.DECIMAL_SI) -> Quantity:
        """Return the quantity of a whole number."""
        return Quantity(value, 0, not _fits_int64(value), notation)

    @staticmethod
    def from_milli(value: int, notation: Format = Format.DECIMAL_SI) -> Quantity:
        """Return the quantity of a number of thousandths."""
        return Quantity(value, -3, not _fits_int64(value), notation)

    # --- reading ------------------------------------------------------------------------------

    @property
    def format(self) -> Format:
        """The notation."""
        return self._format

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self._unscaled > 0) - (self._unscaled < 0)

    @property
    def is_zero(self) -> bool:
        """Whether the number is zero."""
        return self._unscaled == 0

    @property
    def value(self) -> int:
        """The number rounded up to a whole one, as an int64: see scaled_value."""
        return self.scaled_value(0)

    @property
    def milli_value(self) -> int:
        """The number in thousandths, rounded up, as an int64: see scaled_value."""
        return self.scaled_value(-3)

    def scaled_value(self, exponent: int) -> int:
        """Return the number in units of 10^exponent, rounded up, as Kubernetes' ScaledValue does.

        Beyond the range of an int64 the answer is the one that Kubernetes' arithmetic leaves
        behind. Wide negative numbers round towards zero and then up by one, as there.
        """
        if self._is_wide:
            return _wide_scaled(self._unscaled, exponent - self._exponent)
        return _narrow_scaled(self._unscaled, exponent - self._exponent)

    def as_int64(self) -> int | None:
        """Return the number if it is narrow, written without decimal places and an int64."""
        if self._is_wide or self._exponent < 0:
            return None
        number = self._unscaled * _power_of_ten(self._exponent)
        return number if _fits_int64(number) else None

    @property
    def nano(self) -> int:
        """The number in billionths; exact, since nothing finer is ever kept."""
        return self._unscaled * _power_of_ten(self._exponent - _NANO)

    @property
    def approximate_float(self) -> float:
        """A float near the number, by the same two roundings as Kubernetes; maybe infinite."""
        try:
            base = float(self._unscaled)
        except OverflowError:
            base = float("inf") * self.sign
        return base * _float_power_of_ten(self._exponent) if self._exponent else base

    @property
    def exact(self) -> str:
        """The number in plain decimals, with all the decimal places it is kept with."""
        if self._exponent >= 0:
            return str(self._unscaled * _power_of_ten(self._exponent))
        places = -self._exponent
        digits = str(abs(self._unscaled)).rjust(places + 1, "0")
        minus = "-" if self._unscaled < 0 else ""
        return f"{minus}{digits[:-places]}.{digits[-places:]}"

    def __str__(self) -> str:
        text = self._text
        if text is None:
            text = self._text = self._canonical_text()
        return text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def _canonical_text(self) -> str:
        if self._unscaled == 0:
            return "0"
        if self._format is Format.DECIMAL_EXPONENT:
            number, exponent = self._in_thousands()
            return f"{number}e{exponent}" if exponent else number
        if self._format is Format.BINARY_SI:
            whole, rest = self._whole_and_rest()
            if rest == 0 and abs(whole) >= 1024:
                power = _trailing_zero_bits(whole) // 10
                return f"{whole >> 10 * power}{_BINARY_NAMES.get(power, '')}"
        number, exponent = self._in_thousands()
        # Kubernetes has no suffix above E and prints none: 1000E is "1" there as well.
        return number + _DECIMAL_NAMES.get(exponent, "")

    def _in_thousands(self) -> tuple[str, int]:
        """Return the shortest digits, and their exponent, which is a multiple of three."""
        digits = str(self._unscaled)
        stripped = digits.rstrip("0")
        exponent = self._exponent + len(digits) - len(stripped)
        surplus = exponent % 3
        return stripped + "0" * surplus, exponent - surplus

    def _whole_and_rest(self) -> tuple[int, int]:
        if self._exponent >= 0:
            return self._unscaled * _power_of_ten(self._exponent), 0
        return divmod(self._unscaled, _power_of_ten(-self._exponent))

    # --- calculating --------------------------------------------------------------------------

    def __add__(self, other: Quantity) -> Quantity:
        return self._plus(other, other._unscaled)

    def __sub__(self, other: Quantity) -> Quantity:
        return self._plus(other, -other._unscaled)

    def _plus(self, other: Quantity, unscaled: int) -> Quantity:
        """Return the sum with other, given its unscaled number; zero takes over its notation."""
        notation = self._format if self._unscaled else other._format
        are_narrow = not (self._is_wide or other._is_wide)
        # Adding zero leaves the decimal places alone, but only in narrow arithmetic.
        if are_narrow and unscaled == 0:
            return Quantity(self._unscaled, self._exponent, False, notation)
        if are_narrow and self._unscaled == 0:
            return Quantity(unscaled, other._exponent, not _fits_int64(unscaled), notation)
        mine, theirs = _aligned(self._unscaled, self._exponent, unscaled, other._exponent)
        total = mine + theirs
        is_narrow = are_narrow and _fits_int64(mine) and _fits_int64(theirs) and _fits_int64(total)
        return Quantity(total, min(self._exponent, other._exponent), not is_narrow, notation)

    def negated(self) -> Quantity:
        """Return the number with the opposite sign, in the same notation."""
        is_wide = self._is_wide or not _fits_int64(-self._unscaled)
        return Quantity(-self._unscaled, self._exponent, is_wide, self._format)

    __neg__ = negated

    # --- comparing ----------------------------------------------------------------------------

    def compare(self, other: Quantity) -> int:
        """Return -1, 0 or 1: less than, equal to or greater than other."""
        mine, theirs = self._beside(other)
        return (mine > theirs) - (mine < theirs)

    def _beside(self, other: Quantity) -> tuple[int, int]:
        return _aligned(self._unscaled, self._exponent, other._unscaled, other._exponent)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        mine, theirs = self._beside(other)
        return mine == theirs

    def __hash__(self) -> int:
        # The number modulo a prime: equal for equal numbers, whatever their exponents.
        return self._unscaled * pow(10, self._exponent, _HASH_MODULUS) % _HASH_MODULUS

    def __lt__(self, other: Quantity) -> bool:
        return self.compare(other) < 0

    def __le__(self, other: Quantity) -> bool:
        return self.compare(other) <= 0

    def __gt__(self, other: Quantity) -> bool:
        return self.compare(other) > 0

    def __ge__(self, other: Quantity) -> bool:
        return self.compare(other) >= 0


Quantity.ZERO = Quantity(0, 0, False, Format.DECIMAL_SI, "0")

_HASH_MODULUS: Final = sys.hash_info.modulus


# --- suffixes -----------------------------------------------------------------------------------

_DECIMAL_NAMES: Final = {
    -9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"
}  # fmt: skip
_BINARY_NAMES: Final = {1: "Ki", 2: "Mi", 3: "Gi", 4: "Ti", 5: "Pi", 6: "Ei"}

# suffix: notation, exponent (of ten, or of two for BinarySI), most digits of a narrow number
_SUFFIXES: Final[dict[str, tuple[Format, int, int]]] = {
    name: (Format.DECIMAL_SI, exponent, _NARROW_DIGITS_MAX)
    for exponent, name in _DECIMAL_NAMES.items()
} | {name: (Format.BINARY_SI, 10 * power, 14 - 3 * power) for power, name in _BINARY_NAMES.items()}


def _read_suffix(suffix: str) -> tuple[Format, int, int]:
    """suffix = SI | binary | ("e" | "E") [ "+" | "-" ] digits"""
    known = _SUFFIXES.get(suffix)
    if known is not None:
        return known
    digits = suffix[1:].lstrip("+-")
    significant = digits.lstrip("0") or "0"
    if suffix[0] not in "eE" or not digits.isdecimal() or len(significant) > 19:
        raise QuantityError(SUFFIX_WRONG)
    exponent = -int(significant) if suffix[1] == "-" else int(significant)
    if not _fits_int64(exponent):
        raise QuantityError(SUFFIX_WRONG)
    return Format.DECIMAL_EXPONENT, _wrapped(exponent, bits=32), _NARROW_DIGITS_MAX


# --- parsing ------------------------------------------------------------------------------------

# A member of an enum costs a search each time it is named.
_BINARY_SI: Final = Format.BINARY_SI

_match_any = re.compile(
    r"([+-]?)(0*+)([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?+[0-9]*+)"
).fullmatch


def _parse(text: str) -> Quantity:
    """Return what _parse_any would, only sooner for plain numbers such as `4`, `500m`, `80Gi`."""
    suffix = text.lstrip("0123456789")
    known = _SUFFIXES.get(suffix)
    if known is None:
        return _parse_any(text)
    notation, exponent, narrow_digits_max = known
    digits = text[: -len(suffix)] if suffix else text
    if not 0 < len(digits) <= narrow_digits_max or digits[0] == "0":
        return _parse_any(text)
    number = int(digits)
    if notation is _BINARY_SI:
        return Quantity(number << exponent, 0, False, notation, text if number & 7 else None)
    return Quantity(number, exponent, False, notation, text if number % 1000 else None)


_remembered = lru_cache(maxsize=MEMO_SIZE)(_parse)


def _parse_any(text: str) -> Quantity:
    found = _match_any(text)
    if found is None or not text:
        raise QuantityError(FORMAT_WRONG)
    if text == "0":
        return Quantity(0, 0, False, Format.DECIMAL_SI, text)
    sign, zeros, whole, fraction, suffix = found.groups("")
    notation, exponent, narrow_digits_max = _read_suffix(suffix)
    digits = (whole or "0") + fraction
    if len(digits) <= narrow_digits_max:
        if notation is not _BINARY_SI and exponent - len(fraction) >= _NANO:
            return _parse_narrow(text, sign, digits, exponent - len(fraction), notation)
        if notation is _BINARY_SI and not fraction:
            return _parse_narrow_binary(text, sign, int(digits), exponent)
    if not (zeros or whole or fraction):
        raise QuantityError(NUMBER_WRONG)
    return _parse_wide(sign, digits, len(fraction), exponent, notation)


def _parse_narrow(text: str, sign: str, digits: str, exponent: int, notation: Format) -> Quantity:
    number = int(digits)
    is_canonical = exponent % 3 == 0 and digits[0] != "0" and not digits.endswith("000")
    if number == 0:
        exponent = min(exponent, DIGITS_MAX)
    _check_size(len(digits) + exponent if number else 0)
    signed = -number if sign == "-" else number
    return Quantity(signed, exponent, False, notation, text if is_canonical else None)


def _parse_narrow_binary(text: str, sign: str, number: int, power: int) -> Quantity:
    # Kubernetes' cheap test for "cannot be written with a larger suffix": not a multiple of 8.
    is_canonical = number & 7 != 0
    signed = -number if sign == "-" else number
    return Quantity(signed << power, 0, False, _BINARY_SI, text if is_canonical else None)


def _parse_wide(sign: str, digits: str, places: int, exponent: int, notation: Format) -> Quantity:
    significant = digits.lstrip("0")
    is_binary = notation is _BINARY_SI
    if not significant:
        kept = (0 if is_binary else exponent) - places
        return Quantity(0, max(-DIGITS_MAX, min(kept, DIGITS_MAX)), True, notation)
    if is_binary:
        nano = _binary_nano(significant, places, exponent)
    else:
        nano = _decimal_nano(significant, exponent - places)
    signed = -nano if sign == "-" else nano
    if is_binary and nano > _INT64_MAX * _ONE_IN_NANO:
        return Quantity(-_INT64_MAX if sign == "-" else _INT64_MAX, 0, True, notation)
    if is_binary and nano < _ONE_IN_NANO:
        notation = Format.DECIMAL_SI
    return Quantity(signed, _NANO, True, notation)


def _decimal_nano(digits: str, exponent: int) -> int:
    """Return digits × 10^exponent in nano units, rounded up."""
    _check_size(len(digits) + exponent)
    surplus = _NANO - exponent
    if surplus <= 0:
        return int(digits) * _power_of_ten(-surplus)
    has_rest = digits[-surplus:].strip("0") != ""
    return int(digits[:-surplus] or "0") + has_rest


def _binary_nano(digits: str, places: int, power: int) -> int:
    """Return digits / 10^places × 2^power in nano units, rounded up; if over the cap, just more."""
    if len(digits) - places > 19:
        return (_INT64_MAX + 1) * _ONE_IN_NANO
    surplus = places - _BINARY_PLACES_MAX
    if surplus > 0:
        has_rest = digits[-surplus:].strip("0") != ""
        digits = digits[:-surplus] + ("1" if has_rest else "0")
        places = _BINARY_PLACES_MAX + 1
    return -((-int(digits) << power) * _ONE_IN_NANO // _power_of_ten(places))


# 9 places for nano and 60 for the factors of two in Ei: with so many, the digits that follow can
# only matter by not being zero.
_BINARY_PLACES_MAX: Final = 69


def _check_size(digits: int) -> None:
    if digits > DIGITS_MAX:
        raise QuantityError(f"{NUMBER_WRONG}: more than {DIGITS_MAX} digits")


# --- arithmetic like Go's -----------------------------------------------------------------------


def _fits_int64(number: int) -> bool:
    return _INT64_MIN <= number <= _INT64_MAX


def _wrapped(number: int, *, bits: int = 64) -> int:
    """Return the low bits of the number as a signed one."""
    half = 1 << bits - 1
    return (number + half) % (2 * half) - half


def _aligned(
    unscaled: int, exponent: int, other_unscaled: int, other_exponent: int
) -> tuple[int, int]:
    """Return both numbers in units of the smaller exponent."""
    if exponent == other_exponent:
        return unscaled, other_unscaled
    if exponent > other_exponent:
        return unscaled * _power_of_ten(exponent - other_exponent), other_unscaled
    return unscaled, other_unscaled * _power_of_ten(other_exponent - exponent)


def _power_of_ten(exponent: int) -> int:
    return _POWERS_OF_TEN[exponent] if exponent < len(_POWERS_OF_TEN) else int(10**exponent)


_POWERS_OF_TEN: Final = tuple(int(10**exponent) for exponent in range(64))


def _trailing_zero_bits(number: int) -> int:
    return (number & -number).bit_length() - 1


def _narrow_scaled(unscaled: int, surplus: int) -> int:
    """Return unscaled / 10^surplus, rounded away from zero; on overflow what Kubernetes leaves."""
    if surplus > 0:
        size = -(-abs(unscaled) // _power_of_ten(surplus))
        return -size if unscaled < 0 else size
    number = unscaled * _power_of_ten(-surplus)
    if _fits_int64(number):
        return number
    # Kubernetes multiplies by these powers at once and wraps; by others step by step, and stops.
    has_one_step = -surplus in (1, 2, 3, 6, 9) and unscaled != _INT64_MIN
    return _wrapped(number) if has_one_step else 0


def _wide_scaled(unscaled: int, surplus: int) -> int:
    """Return unscaled / 10^surplus, rounded as Kubernetes does for wide numbers, as an int64."""
    low = _wrapped(unscaled)
    if surplus == 0:
        return low
    if surplus < 0:
        # A power of ten above int64 becomes the smallest int64 when Go converts it from a float.
        return _wrapped(low * (_power_of_ten(-surplus) if surplus >= -18 else _INT64_MIN))
    divisor = _power_of_ten(surplus)
    if unscaled < _INT64_MAX and surplus < 19:
        quotient = abs(low) // divisor
        has_rest = low % divisor != 0
        return (-quotient if low < 0 else quotient) + has_rest
    quotient, rest = divmod(unscaled, divisor)
    return _wrapped(_wrapped(quotient) + (rest != 0))


def _float_power_of_ten(exponent: int) -> float:
    """Return 10^exponent as Go's math.Pow10: from two tables, so not always the nearest float."""
    if exponent > 308:
        return float("inf")
    if exponent < -323:
        return 0.0
    coarse, fine = divmod(abs(exponent), 32)
    if exponent < 0:
        return float(f"1e-{32 * coarse}") / float(f"1e{fine}")
    return float(f"1e{32 * coarse}") * float(f"1e{fine}")
