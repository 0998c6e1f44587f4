"""Doubles as `format` writes them: in American English, with the quirks of the original.

`%f` groups digits (`1,234.500000`); `%e` writes the exponent as a power (`1.234500×10⁰³`). Both
come from golang.org/x/text, whose fields are small and run over, and that stays visible:

- `%.Nf`: at least N mod 256 and at most N digits follow the point, N taken as a signed number of
  16 bits, of which a negative one is no limit at all;
- `%.Ne`: N is not the precision but the width, at most 65,535, and six digits follow the point;
- a number of eight digits or more is not understood.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

NOT_UNDERSTOOD: Final = "%!(NOVERB)"

DEFAULT_PRECISION: Final = 6
_READABLE_MAX: Final = 10_000_009
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def fixed(value: float, precision: int) -> str:
    """Return a double in plain digits, grouped by thousands."""
    if precision > _READABLE_MAX:
        return NOT_UNDERSTOOD
    if not math.isfinite(value):
        return _special(value)
    fraction_min = precision % 2**8
    fraction_max = (precision + 2**15) % 2**16 - 2**15
    if fraction_max >= 0:
        text = f"{abs(value):.{fraction_max}f}"
    else:
        text = format(Decimal(repr(abs(value))), "f")
    integer, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0").ljust(fraction_min, "0")
    point = "." if fraction else ""
    return f"{_sign(value)}{int(integer):,}{point}{fraction}"


def scientific(value: float, width: int) -> str:
    """Return a double as a power of ten, filled up with spaces to a width."""
    if width > _READABLE_MAX:
        return NOT_UNDERSTOOD
    return _power(value).rjust(width % 2**16)


def _power(value: float) -> str:
    if not math.isfinite(value):
        return _special(value)
    mantissa, exponent = f"{abs(value):.{DEFAULT_PRECISION}e}".split("e")
    number = int(exponent)
    power = f"{'-' if number < 0 else ''}{abs(number):02d}".translate(_SUPERSCRIPTS)
    return f"{_sign(value)}{mantissa}×10{power}"


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{_sign(value)}∞"


def _sign(value: float) -> str:
    return "-" if value < 0 else ""
