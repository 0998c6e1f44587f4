"""Kubernetes quantities: `10Gi`, `500m`, `1e3`, with Kubernetes' own rounding, text and errors.

A quantity is a decimal number, unscaled × 10^exponent, and the notation it is printed in. As in
Kubernetes there are two shapes, and they answer differently at the edges:

    narrow   the unscaled number fits an int64 (up to 18 digits as parsed): the usual case
    wide     everything else: any number of digits; parsed ones are in whole nano units

`as_int64` knows narrow quantities only, and `value` overflows in another way for each shape.

    # unscaled, exponent: the number is unscaled × 10^exponent
    # notation: which of the three families of suffixes the text uses (Format)
"""

from __future__ import annotations

import sys
from typing import ClassVar, Final, final

from moorage.api.go_integers import (
    aligned,
    fits_int64,
    float_power_of_ten,
    narrow_scaled,
    power_of_ten,
    trailing_zero_bits,
    wide_scaled,
)
from moorage.api.quantity_text import (
    BINARY_NAMES,
    DECIMAL_NAMES,
    DIGITS_MAX,
    Format,
    read_plain,
    read_quantity,
)

__all__ = ["DIGITS_MAX", "MEMO_SIZE", "Format", "Quantity"]

MEMO_SIZE: Final = 8192
MEMO_TEXT_LENGTH_MAX: Final = 32
NANO: Final = 10**9

# What unicode.IsSpace of Go knows; str.strip() would take \x1c to \x1f as well.
_BLANKS: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
    "\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


@final
class Quantity:
    """An exact number with a notation; equality, order and hash ignore the notation."""

    __slots__ = ("_exponent", "_format", "_is_wide", "_text", "_unscaled")

    ZERO: ClassVar[Quantity]

    def __init__(
        self,
        unscaled: int,
        exponent: int = 0,
        is_wide: bool = False,
        notation: Format | None = None,
        text: str | None = None,
    ) -> None:
        if notation is None:  # `Quantity("1")`, which type checkers let pass as little as we do
            raise TypeError(_made_otherwise(unscaled))
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
        known = _memo.get(text)
        if known is not None:
            return known
        # Not by __init__, whose call would take as long as the reading of a plain text.
        quantity = _new(Quantity)
        (
            quantity._unscaled,
            quantity._exponent,
            quantity._is_wide,
            quantity._format,
            quantity._text,
        ) = read_plain(text) or read_quantity(text)
        if len(text) <= MEMO_TEXT_LENGTH_MAX:
            if len(_memo) >= MEMO_SIZE:  # Starting over costs less than tracking the oldest.
                _memo.clear()
            _memo[text] = quantity
        return quantity

    @staticmethod
    def from_json(text: str) -> Quantity:
        """Return the quantity in the text of a JSON string or number; blanks may surround it."""
        return _memo.get(text) or Quantity.parse(text.strip(_BLANKS))

    @staticmethod
    def from_int(value: int, notation: Format = Format.DECIMAL_SI) -> Quantity:
        """Return the quantity of a whole number."""
        return Quantity(value, 0, not fits_int64(value), notation)

    @staticmethod
    def from_milli(value: int, notation: Format = Format.DECIMAL_SI) -> Quantity:
        """Return the quantity of a number of thousandths."""
        return Quantity(value, -3, not fits_int64(value), notation)

    @staticmethod
    def instead_of(value: object) -> str:
        """Return the code that makes a quantity of a value; "" if there is none."""
        if isinstance(value, str):
            return f"Quantity.parse({value[:64]!r})"
        if isinstance(value, int) and not isinstance(value, bool):
            return f"Quantity.from_int({value})"
        return f'Quantity.parse("{value}")' if isinstance(value, float) else ""

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

    def is_natural(self, exponent: int) -> bool:
        """Return whether this is surely a whole number of units of 10^exponent, not negative."""
        return self._exponent >= exponent and self._unscaled >= 0 and not self._is_wide

    def scaled_value(self, exponent: int) -> int:
        """Return the number in units of 10^exponent, rounded up, as Kubernetes' ScaledValue does.

        Beyond the range of an int64 the answer is the one that Kubernetes' arithmetic leaves
        behind. Wide negative numbers round towards zero and then up by one, as there.
        """
        if self._is_wide:
            return wide_scaled(self._unscaled, exponent - self._exponent)
        return narrow_scaled(self._unscaled, exponent - self._exponent)

    def as_int64(self) -> int | None:
        """Return the number if it is narrow, written without decimal places and an int64."""
        if self._is_wide or self._exponent < 0:
            return None
        number = self._unscaled * power_of_ten(self._exponent)
        return number if fits_int64(number) else None

    @property
    def nano(self) -> int:
        """The number in billionths; exact, since nothing finer is ever kept."""
        if self._exponent == 0:
            return self._unscaled * NANO
        return self._unscaled * power_of_ten(self._exponent + 9)

    @property
    def approximate_float(self) -> float:
        """A float near the number, by the same two roundings as Kubernetes; maybe infinite."""
        try:
            base = float(self._unscaled)
        except OverflowError:
            base = float("inf") * self.sign
        return base * float_power_of_ten(self._exponent) if self._exponent else base

    @property
    def exact(self) -> str:
        """The number in plain decimals, with all the decimal places it is kept with."""
        if self._exponent >= 0:
            return str(self._unscaled * power_of_ten(self._exponent))
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
                power = trailing_zero_bits(whole) // 10
                return f"{whole >> 10 * power}{BINARY_NAMES.get(power, '')}"
        number, exponent = self._in_thousands()
        # Kubernetes has no suffix above E and prints none: 1000E is "1" there as well.
        return number + DECIMAL_NAMES.get(exponent, "")

    def _in_thousands(self) -> tuple[str, int]:
        """Return the shortest digits, and their exponent, which is a multiple of three."""
        digits = str(self._unscaled)
        stripped = digits.rstrip("0")
        exponent = self._exponent + len(digits) - len(stripped)
        surplus = exponent % 3
        return stripped + "0" * surplus, exponent - surplus

    def _whole_and_rest(self) -> tuple[int, int]:
        if self._exponent >= 0:
            return self._unscaled * power_of_ten(self._exponent), 0
        return divmod(self._unscaled, power_of_ten(-self._exponent))

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
            return Quantity(unscaled, other._exponent, not fits_int64(unscaled), notation)
        mine, theirs = aligned(self._unscaled, self._exponent, unscaled, other._exponent)
        total = mine + theirs
        is_narrow = are_narrow and fits_int64(mine) and fits_int64(theirs) and fits_int64(total)
        return Quantity(total, min(self._exponent, other._exponent), not is_narrow, notation)

    def __mul__(self, factor: Quantity | int) -> Quantity:
        """Return the product, in this notation; anything finer than a billionth is rounded up."""
        other = Quantity.from_int(factor) if isinstance(factor, int) else factor
        unscaled = self._unscaled * other._unscaled
        exponent = self._exponent + other._exponent
        if exponent < -9:
            unscaled = -(-unscaled // power_of_ten(-9 - exponent))
            exponent = -9
        is_wide = self._is_wide or other._is_wide or not fits_int64(unscaled)
        return Quantity(unscaled, exponent, is_wide, self._format)

    def negated(self) -> Quantity:
        """Return the number with the opposite sign, in the same notation."""
        is_wide = self._is_wide or not fits_int64(-self._unscaled)
        return Quantity(-self._unscaled, self._exponent, is_wide, self._format)

    __neg__ = negated

    # --- comparing ----------------------------------------------------------------------------

    def compare(self, other: Quantity) -> int:
        """Return -1, 0 or 1: less than, equal to or greater than other."""
        if self._exponent == other._exponent:
            mine, theirs = self._unscaled, other._unscaled
        else:
            mine, theirs = self._beside(other)
        return (mine > theirs) - (mine < theirs)

    def _beside(self, other: Quantity) -> tuple[int, int]:
        return aligned(self._unscaled, self._exponent, other._unscaled, other._exponent)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        if self._exponent == other._exponent:
            return self._unscaled == other._unscaled
        mine, theirs = self._beside(other)
        return mine == theirs

    def __hash__(self) -> int:
        # The number modulo a prime: equal for equal numbers, whatever their exponents.
        if self._exponent == 0:
            return self._unscaled % _HASH_MODULUS
        return self._unscaled * pow(10, self._exponent, _HASH_MODULUS) % _HASH_MODULUS

    def __lt__(self, other: Quantity) -> bool:
        return self.compare(other) < 0

    def __le__(self, other: Quantity) -> bool:
        return self.compare(other) <= 0

    def __gt__(self, other: Quantity) -> bool:
        return self.compare(other) > 0

    def __ge__(self, other: Quantity) -> bool:
        return self.compare(other) >= 0


def _made_otherwise(value: object) -> str:
    instead = Quantity.instead_of(value) or 'Quantity.parse("10Gi")'
    return f"a quantity is made of its text or of a whole number: write {instead}"


Quantity.ZERO = Quantity(0, 0, False, Format.DECIMAL_SI, "0")

_HASH_MODULUS: Final = sys.hash_info.modulus

_memo: Final[dict[str, Quantity]] = {}
_new: Final = object.__new__
