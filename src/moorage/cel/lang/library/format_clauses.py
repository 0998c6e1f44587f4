"""Templates of `format`, and its doubles.

    template  = { character | "%%" | clause }
    clause    = "%" [ "." digits ] verb

The filler fills in values when the expression is evaluated, nothing when it is only checked.

Doubles are printed in American English, with the quirks of golang.org/x/text, whose fields are
small and overflow. `%f` groups digits (`1,234.500000`); `%e` prints a power (`1.234500×10⁰³`).

- `%.Nf`: at least N mod 256 and at most N digits follow the point, N taken as a signed number of
  16 bits, of which a negative one is no limit;
- `%.Ne`: N is not the precision but the width, at most 65,535, and six digits follow the point;
- a number of eight digits or more is not understood.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Protocol

from moorage.cel.lang.ast import Expr
from moorage.cel.lang.values import parse_int

VERBS: Final = frozenset("sdfebxXo")
_DIGITS: Final = frozenset("0123456789")


class FormatError(Exception):
    """An error in a template or its arguments, and its node if that is known."""

    def __init__(self, message: str, node: Expr | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.node = node


@dataclass(frozen=True, slots=True)
class Clause:
    """A place in a template where a value is shown."""

    verb: str
    precision: int | None


class Filler(Protocol):
    """The arguments of a template's clauses."""

    @property
    def count(self) -> int:
        """How many arguments there are."""
        ...

    @property
    def looks_first(self) -> bool:
        """Whether an argument that is missing is noticed before anything else."""
        ...

    def fill(self, clause: Clause, index: int) -> str:
        """Return an argument as a clause formats it."""
        ...


def filled(template: str, filler: Filler) -> Iterator[str]:
    """Yield the parts of the template, with a filling for every clause."""
    position = index = 0
    while (mark := template.find("%", position)) >= 0:
        yield template[position:mark]
        if template.startswith("%%", mark):
            yield "%"
            position = mark + 2
            continue
        is_missing = index >= filler.count
        if is_missing and filler.looks_first:
            raise FormatError(f"index {index} out of range")
        if mark + 1 == len(template):
            raise FormatError("unexpected end of string")
        if is_missing:
            raise FormatError(f"index {index} out of range")
        clause, position = _parse_clause(template, mark + 1)
        try:
            yield filler.fill(clause, index)
        except FormatError as error:
            raise FormatError(f"error during formatting: {error.message}", error.node) from None
        index += 1
    yield template[position:]


def _parse_clause(template: str, position: int) -> tuple[Clause, int]:
    """clause = [ "." digits ] verb"""
    try:
        precision, position = _parse_precision(template, position)
    except FormatError as error:
        raise _unparsable(f"error while parsing precision: {error.message}") from None
    verb = template[position]
    if verb not in VERBS:
        # The original looks at bytes.
        byte = verb.encode("utf-8", "surrogateescape")[0]
        raise _unparsable(f'unrecognized formatting clause "{chr(byte)}"')
    return Clause(verb, precision), position + 1


def _parse_precision(template: str, position: int) -> tuple[int | None, int]:
    if template[position] != ".":
        return None, position
    start = position = position + 1
    while position < len(template) and template[position] in _DIGITS:
        position += 1
    if position == len(template):
        raise FormatError("could not find end of precision specifier")
    return _parse_number(template[start:position]), position


def _parse_number(digits: str) -> int:
    number = parse_int(digits)
    if number is None:
        reason = "value out of range" if digits else "invalid syntax"
        raise FormatError(
            "error while converting precision to integer: "
            f'strconv.Atoi: parsing "{digits}": {reason}'
        )
    return number


def _unparsable(reason: str) -> FormatError:
    return FormatError(f"could not parse formatting clause: {reason}")


# --- doubles --------------------------------------------------------------------------------------


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
