"""Numbers as Kubernetes sees them in JSON.

Kubernetes converts YAML to JSON, and parses quantities from the JSON text of a number. So a number
that is not an integer keeps that text.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal

DIGITS_MAX = 400
"""Longer than any float64 in decimal, far below where Python's int() becomes slow."""


class ScalarRefusedError(ValueError):
    """A scalar has no meaning in JSON; the message is the fact, its position is added later."""


def excerpt(text: str) -> str:
    """Shorten a text for a message."""
    return text if len(text) <= 40 else f"{text[:37]}..."


class NumberText(float):
    """A JSON number that is not an integer, with the text it has in JSON."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> NumberText:
        """Parse a JSON number."""
        if len(text) > DIGITS_MAX:
            raise too_long(text)
        number = super().__new__(cls, text)
        if not math.isfinite(number):
            raise out_of_range(text)
        number.text = text
        return number

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]  # copies keep the text
        return (self.text,)

    def __repr__(self) -> str:
        return f"NumberText({self.text!r})"


def too_long(text: str) -> ScalarRefusedError:
    """Return the error for a number with too many digits."""
    return ScalarRefusedError(
        f"number {excerpt(text)} has {len(text)} characters, at most {DIGITS_MAX} are read"
    )


def out_of_range(text: str) -> ScalarRefusedError:
    """Return the error for a number that no float64 can hold."""
    return ScalarRefusedError(f"number {excerpt(text)} is out of range")


def from_yaml_float(value: float) -> int | NumberText:
    """Return a YAML float as Kubernetes sees it in JSON, where 1e3 and 1.0 are integers."""
    if not math.isfinite(value):
        raise ScalarRefusedError(f"{float_key(value)} is not a JSON number")
    text = json_text(value)
    return NumberText(text) if "." in text or "e" in text else int(text)


def json_text(value: float) -> str:
    """Return a finite float as Go's JSON encoder writes it: 1000, 0.1, 1e+21, 1e-7."""
    magnitude = abs(value)
    if magnitude and not 1e-6 <= magnitude < 1e21:
        return repr(value).replace("e-0", "e-")
    return format(Decimal(repr(value)), "f").removesuffix(".0")


def float_key(value: float) -> str:
    """Return a float as sigs.k8s.io/yaml writes a mapping key: float32 digits, %g."""
    if math.isnan(value):
        return ".nan"
    single = _to_single(value)
    if math.isinf(single):
        return ".inf" if single > 0 else "-.inf"
    for precision in range(9):
        text = f"{single:.{precision}e}"
        if _to_single(float(text)) == single:
            break
    exponent = int(text.partition("e")[2])
    return text if exponent < -4 or exponent >= 6 else format(Decimal(text), "f")


def _to_single(value: float) -> float:
    try:
        single: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return single
