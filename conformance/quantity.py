"""Quantities: parsing, text, numbers, comparison and sums, against apimachinery's `resource`."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

from conformance.runner import Case, Outcome, Suite, compared
from moorage.api.errors import QuantityError
from moorage.api.quantity import Quantity


def open_suite() -> Suite:
    """Return the suite."""
    return QuantitySuite()


class QuantitySuite(Suite):
    """A case has two texts, `a` and `b`; every recorded answer is compared."""

    def fits(self, case: Case) -> bool:
        """Return whether the case has two texts and no answers about versions."""
        expected = case.fields.get("expect")
        if not isinstance(expected, dict) or not {"a", "b"} <= case.fields.keys():
            return False
        return {"a", "b"} <= expected.keys() and "api_regex" not in expected["a"]

    def compare(self, case: Case) -> Outcome:
        """Compare our whole record of the case with the recorded one."""
        return compared(case.fields["expect"], answers(case.fields["a"], case.fields["b"]))


def answers(a: str, b: str) -> dict[str, Any]:
    """Return our record of a case, in the shape of the recorded one."""
    left, right = _parsed(a), _parsed(b)
    record: dict[str, Any] = {"a": _described(left), "b": _described(right)}
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        record["cmp"] = left.compare(right)
        record["equal"] = left == right
        record["add"], record["add_exact"] = str(left + right), (left + right).exact
        record["sub"], record["sub_exact"] = str(left - right), (left - right).exact
    return record


def _parsed(text: str) -> Quantity | QuantityError:
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        return error


def _described(quantity: Quantity | QuantityError) -> dict[str, Any]:
    if isinstance(quantity, QuantityError):
        return {"ok": False, "error": str(quantity)}
    whole = quantity.as_int64()
    return {
        "ok": True,
        "string": str(quantity),
        "json": json.dumps(str(quantity)),
        "format": str(quantity.format),
        "exact": quantity.exact,
        "as_int64_ok": whole is not None,
        **({} if whole is None else {"as_int64": whole}),
        "value": quantity.value,
        "milli_value": quantity.milli_value,
        "approx_float64": float_text(quantity.approximate_float),
        "approx_float64_bits": struct.pack(">d", quantity.approximate_float).hex(),
        "sign": quantity.sign,
        "is_zero": quantity.is_zero,
    }


def float_text(number: float) -> str:
    """Return the shortest text of a float as Go prints it with the verb g."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    mantissa, exponent = _scientific(number)
    if -4 <= exponent < 6:
        # Python switches to exponents later than Go, at 16, so it writes these out as well.
        return repr(number).removesuffix(".0")
    return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"


def _scientific(number: float) -> tuple[str, int]:
    """Return the shortest mantissa that identifies the float, and its exponent of ten."""
    for precision in range(17):
        mantissa, _, exponent = f"{number:.{precision}e}".partition("e")
        if float(f"{mantissa}e{exponent}") == number:
            return mantissa, int(exponent)
    raise AssertionError(f"17 digits do not tell {number!r} apart")
